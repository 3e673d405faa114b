"""The runs that several crates hold together."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from clpapers.archive.check import CrateError, Members, check, opened
from clpapers.archive.imported import RUN, TAKEN_OUT, files_of
from clpapers.provenance import record_path
from clpapers.runs.result_schema import results


class Run(NamedTuple):
    """A result file in a crate: its bytes, and those of its record."""

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
        faults, _ = check(path)
        if not faults:
            with opened(path) as (members, _):
                out |= files_of(_read(members, TAKEN_OUT)).items() if TAKEN_OUT in members else set()
                runs = {name: _run(members, name) for name in filter(RUN.fullmatch, members)}
            faults = list(_unfit(runs))
            found += runs.items()
        if faults:
            file, reason = faults[0]
            raise CrateError(f"{path}: {file}: {reason}; take it from git again, or fetch or make it anew")
    present = [(name, run) for name, run in found if (str(record_path(name)), run.digest) not in out]
    return dict(reversed(present)), out


def _read(members: Members, name: str) -> bytes:
    with members[name]() as stream:
        return stream.read()


def _run(members: Members, name: str) -> Run:
    return Run(_read(members, name), _read(members, str(record_path(name))))


def _unfit(runs: dict[str, Run]) -> Iterable[tuple[str, str]]:
    for name, run in runs.items():
        try:
            results(run.content)
        except ValueError as error:
            yield name, str(error)
