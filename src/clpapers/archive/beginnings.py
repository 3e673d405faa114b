"""How published runs begin by today's code: the file that `clpapers verify --steps` writes."""

import csv
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from clpapers import provenance
from clpapers.archive.imported import PUBLISHED
from clpapers.config.refusals import ConfigError

SAME, ROUNDING, OTHERWISE, UNTRIED = "same digits", "parts as rounding does", "begins otherwise", "not tried"
FILE = PUBLISHED / "steps.csv"  # of the project's own crates, which git tracks


class Beginning(NamedTuple):
    """How a run began again. steps: so many were compared. seconds: on a core, with the data read."""

    run: str
    verdict: str
    steps: int
    why: str
    seconds: float
    date: str
    commit: str
    processor: str

    def __str__(self) -> str:
        return f"{self.run}: {self.verdict}{self.why and f', {self.why}'} ({self.steps} steps, {self.seconds:.1f} s)"


def read(file: Path) -> list[Beginning]:
    """The beginnings in a file; none where there is no file. Raises `ConfigError` for another file."""
    if not file.is_file():
        return []
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            head, *rows = csv.reader(lines)
        if tuple(head) != Beginning._fields:
            raise ValueError
        return [Beginning(run, verdict, int(n), why, float(took), *told) for run, verdict, n, why, took, *told in rows]
    except (ValueError, TypeError, csv.Error):
        raise ConfigError(f"{file}: no file of `clpapers verify --steps`; name another, or delete it") from None


def write(file: Path, beginnings: Collection[Beginning]) -> None:
    """Write beginnings into a file, by run."""
    with provenance.write_atomically(file) as temporary, temporary.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerows([Beginning._fields, *sorted(beginnings)])
