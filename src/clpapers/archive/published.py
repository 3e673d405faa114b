"""The runs that several crates hold together."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from clpapers.archive.check import CrateError, sound
from clpapers.archive.imported import RUN, TAKEN_OUT
from clpapers.provenance import files_of, record_path
from clpapers.runs.result_schema import results


class Run(NamedTuple):
    """A result file in a crate: its bytes and its record's."""

    content: bytes
    recorded: bytes

    @property
    def record(self) -> dict:
        return json.loads(self.recorded)

    @property
    def digest(self) -> str:
        """The SHA-256 of its record, under which a crate takes it out."""
        return hashlib.sha256(self.recorded).hexdigest()


def runs_of(crates: Iterable[Path]) -> tuple[dict[str, Run], set[tuple[str, str]]]:
    """The runs in crates by their paths there, without those that one of the crates takes out; and those ones' records.

    The first run of a path counts. A record is its path and SHA-256. Raises `CrateError` for a crate that is damaged.
    """
    found: list[tuple[str, Run]] = []
    out: set[tuple[str, str]] = set()
    for path in crates:
        remedy = "take it from git again, or fetch or make it anew"
        crate = sound(path, remedy, lambda name: name == TAKEN_OUT or RUN.fullmatch(name))
        out |= files_of(crate.texts.get(TAKEN_OUT, b"")).items()
        for name in filter(RUN.fullmatch, crate.texts):
            try:
                results(crate.texts[name])
            except ValueError as error:
                raise CrateError(f"{path}: {name}: {error}; {remedy}") from None
            found.append((name, Run(crate.texts[name], crate.texts[str(record_path(name))])))
    present = [(name, run) for name, run in found if (str(record_path(name)), run.digest) not in out]
    return dict(reversed(present)), out
