"""Write crates of finished runs where no configuration is, in the layout that `clpapers import` reads.

A run's path is results/<scale>/imported/…, as in a published crate; `records` there holds the records of its inputs.
"""

import functools
from collections.abc import Collection
from pathlib import Path

from clpapers.archive import packing
from clpapers.provenance import read_record, record_by_digest, record_of_input, record_path, records_behind


def name(run: Path) -> str:
    """The path of a finished run in a crate."""
    return str(Path(*run.parts[:2], "imported", *run.parts[3:]))


def pack(out: Path, runs: Collection[Path]) -> None:
    """Write a crate of finished runs, a zip; it appears complete or not at all."""
    contents: dict[str, Path | bytes] = {}
    for run in runs:
        scale = run.parts[1]
        behind = records_behind(read_record(run), functools.partial(record_of_input, scale))
        contents |= {name(run): run, str(record_path(name(run))): record_path(run)}
        contents |= {str(record_by_digest(scale, digest)): text for digest, text in behind.items()}
    records = {str(record_path(name(run))): read_record(run) for run in runs}
    about = {"name": f"clpapers: {len(runs)} runs of a bundle", "description": "Runs of a node.", "authors": "clpapers"}
    packing.pack(contents, records, out, about, "train it anew")
