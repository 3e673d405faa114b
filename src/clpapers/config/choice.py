"""The runs that a build uses, of all that a plan wants: what is there, and what it may train."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from clpapers.config.paths import RESULTS
from clpapers.config.refusals import ConfigError
from clpapers.provenance import write_text

FOLDER = "choices"  # below results/<scale>/
VARIABLE = "CLPAPERS_CHOICE"  # of the environment: the file of the build's choice, which its jobs are told by it


@dataclasses.dataclass(frozen=True)
class Choice:
    """The runs that a build uses, and the methods from outside that are among its learners.

    runs: by a cell's hash, the result files and which of each one's seeds are read.
    unrun: by the hash of a cell, the core-hours that its seeds which are not chosen take; None where nobody measured.
    absent: by data set or weights that cannot be had, the remedy.
    methods: those from outside that the build has, as copies of their files.
    """

    runs: Mapping[str, Mapping[Path, list[int]]] = dataclasses.field(default_factory=dict)
    unrun: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)
    methods: tuple[str, ...] = ()

    def seeds(self, cell: str) -> set[int]:
        """The seeds of a cell that it uses."""
        return {seed for seeds in self.runs.get(cell, {}).values() for seed in seeds}

    @functools.cached_property
    def text(self) -> str:
        """As its file has it."""
        runs = {cell: {str(path): seeds for path, seeds in files.items()} for cell, files in self.runs.items()}
        content: dict[str, object] = {"runs": runs, "unrun": self.unrun, "absent": self.absent}
        content |= {"methods": list(self.methods)} if self.methods else {}
        return json.dumps(content, indent=0, sort_keys=True)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def write(self, scale: str) -> Path:
        """Write it under its digest, so that no other build's choice is ever overwritten; returns the file."""
        path = RESULTS / scale / FOLDER / f"{self.digest}.json"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, self.text)
        return path


def read(path: Path) -> Choice:
    """A choice from its file, which its name is the digest of; raises `ConfigError` for what is none."""
    try:
        text = path.read_text(encoding="utf-8")
        if not hashlib.sha256(text.encode()).hexdigest().startswith(path.stem):
            raise ConfigError(f"{path}: edited: its name is not the digest of its content; delete it and build again")
        content = json.loads(text)
        runs = {cell: {Path(p): list(s) for p, s in files.items()} for cell, files in content["runs"].items()}
        methods = tuple(map(str, content.get("methods", ())))
        return Choice(runs, dict(content["unrun"]), dict(content["absent"]), methods)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: no choice of runs can be read ({type(error).__name__}); build again") from None
