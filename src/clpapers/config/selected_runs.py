"""The choice of a build: which of a plan's runs it uses, as they are there or may be trained."""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from clpapers.config.paths import RESULTS
from clpapers.config.refusals import ConfigError
from clpapers.home import project_path
from clpapers.provenance import is_path, write_text

FOLDER = "choices"  # below results/<scale>/
EVERY = "all"  # instead of a file: all runs of the targets


@dataclasses.dataclass(frozen=True)
class SelectedRuns:
    """The runs that a build uses, and the methods from outside that are among its learners.

    runs: a cell's hash → result file → the seeds to read from it.
    unrun: a cell's hash → the core-hours of its seeds that are not chosen; None where nobody measured.
    absent: a data set or weights that cannot be had → the remedy.
    methods: the methods from outside that the build has, as copies of their files.
    prices: a target that it asks for, `<paper>/<name>` → the core-hours of the runs that the target's own command
        trains next.
    """

    runs: Mapping[str, Mapping[Path, list[int]]] = dataclasses.field(default_factory=dict)
    unrun: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)
    methods: tuple[str, ...] = ()
    prices: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def seeds(self, cell: str) -> set[int]:
        """The chosen seeds of a cell."""
        return {seed for seeds in self.runs.get(cell, {}).values() for seed in seeds}

    @functools.cached_property
    def text(self) -> str:
        """The content of its file."""
        runs = {cell: {str(path): seeds for path, seeds in files.items()} for cell, files in self.runs.items()}
        content: dict[str, object] = {"runs": runs, "unrun": self.unrun, "absent": self.absent}
        content |= {"methods": list(self.methods)} if self.methods else {}
        content |= {"prices": self.prices} if self.prices else {}
        return json.dumps(content, indent=0, sort_keys=True)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def write(self, scale: str) -> Path:
        """Write it under its digest, so that it overwrites no other build's choice; returns the file."""
        path = RESULTS / scale / FOLDER / f"{self.digest}.json"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, self.text)
        return path


def read(path: Path) -> SelectedRuns:
    """Read a choice from its file, whose name is the digest of its content; raises `ConfigError` for any other file."""
    try:
        text = path.read_text(encoding="utf-8")
        if hashlib.sha256(text.encode()).hexdigest()[:16] != path.stem:
            raise ConfigError(f"{path}: edited: its name is not the digest of its content; delete it and build again")
        content = json.loads(text)
        runs = {cell: {project_path(p): list(s) for p, s in files.items()} for cell, files in content["runs"].items()}
        methods = tuple(map(str, content.get("methods", ())))
        made = SelectedRuns(
            runs, dict(content["unrun"]), dict(content["absent"]), methods, dict(content.get("prices", {}))
        )
        named = [*methods, *(str(file) for files in runs.values() for file in files)]
        if not all(is_path(each) and Path(each).parts[0] == "results" for each in named):
            raise ValueError
        return made
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path}: no choice of runs can be read ({type(error).__name__}); build again") from None
