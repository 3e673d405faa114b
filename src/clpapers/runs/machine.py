"""What was measured of a machine once, kept in results/<scale>/machine.json: by processor, as nodes share results."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

from clpapers.provenance import hardware, write_text


def measured(folder: Path, what: str, measure: Callable[[], float]) -> float:
    """A measurement of this machine: as it is kept, else taken now, and kept where the folder can be written to."""
    file, processor = folder / "machine.json", hardware()["processor"]
    kept = _read(file).get(processor, {}).get(what)
    if kept is not None:
        return kept
    value = measure()
    with contextlib.suppress(OSError):  # a folder that cannot be written to is told of elsewhere
        there = _read(file)  # anew, as measuring took its time
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(there | {processor: there.get(processor, {}) | {what: value}}))
    return value


def _read(file: Path) -> dict[str, dict[str, float]]:
    """What is kept; nothing where the file is not there or is not of this form."""
    try:
        there = json.loads(file.read_text(encoding="utf-8"))
        return {processor: {what: float(value) for what, value in of.items()} for processor, of in there.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
