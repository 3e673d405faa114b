"""Measurements of a machine, kept in results/<scale>/machine.json: by processor, as nodes share results."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

from clpapers.provenance import hardware, write_text


def measured(folder: Path, name: str, measure: Callable[[], float]) -> float:
    """A measurement of this machine: as it is kept, else taken now, and kept where the folder can be written to."""
    file, processor = folder / "machine.json", hardware()["processor"]
    kept = _read(file).get(processor, {}).get(name)
    if kept is not None:
        return kept
    value = measure()
    with contextlib.suppress(OSError):  # other messages tell of a folder that cannot be written to
        stored = _read(file)  # again, as measuring took its time
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(stored | {processor: stored.get(processor, {}) | {name: value}}))
    return value


def _read(file: Path) -> dict[str, dict[str, float]]:
    """The measurements in the file; none where it is missing."""
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
