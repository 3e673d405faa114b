"""The parts of a plan: cells, selections of hyper-parameters, and targets, each with its files."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from clpapers.catalogue import metrics as catalogue
from clpapers.config.paths import RESULTS, dataset_path, seeds_text, stream_path, weights_path
from clpapers.home import project_path
from clpapers.streams.orders import slug

SELECTED = "selected"  # in a cell's description: the value is read from a selection's file


def digest(content: object) -> str:
    """16 hexadecimal digits of the SHA-256 of the content's JSON, keys sorted."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class Cell:
    """Everything that decides a result except the seed, and the restriction at test under which a target reads it.

    test_restriction: one under which the run is evaluated (`runs.scenario.restrictions_at_test`). It is no part of the
    hash: targets that differ in it alone share their runs.
    """

    scale: str
    spec: dict = dataclasses.field(hash=False)
    hash: str
    test_restriction: str = "none"

    @classmethod
    def make(cls, scale: str, spec: dict, test_restriction: str = "none") -> Cell:
        """Make a cell from its complete description, whose `digest` begins with the cell's hash."""
        return cls(scale, spec, digest(spec)[:10], test_restriction)

    @property
    def dataset(self) -> Path:
        return dataset_path(self.scale, self.spec["dataset"])

    @property
    def weights(self) -> Path | None:
        """The file of its net's pre-trained weights; None for a net without."""
        name = pretrained(self.spec["net"])
        return weights_path(self.scale, name) if name else None

    @property
    def method(self) -> Path | None:
        """The copy of the file of its method, if that is from outside."""
        return project_path(self.spec["learner"]["file"]) if "file" in self.spec["learner"] else None

    @functools.cached_property  # every job asks for it, and there may be very many
    def slug(self) -> str:
        """Its order's part of a path."""
        return slug(self.spec["order"])

    @functools.cached_property
    def folder(self) -> Path:
        place = RESULTS / self.scale / "runs" / self.spec["dataset"] / self.slug
        return place / f"{self.spec['learner']['name']}-{self.hash}"

    def stream(self, seed: int) -> Path:
        return stream_path(self.scale, self.spec["dataset"], self.slug, seed)


def pretrained(net: dict) -> str | None:
    """The name in config/weights.yaml of a net's pre-trained weights; None for a net without."""
    return None if net.get("weights", "none") == "none" else f"{net['name']}_{net['weights']}"


@dataclasses.dataclass(frozen=True)
class Selection:
    """The choice of a learner's hyper-parameters, on tasks and seeds that are not reported.

    learner: the label that the paper's file gives it.
    points: for each point of the grid, its values by dotted key and the cell that is trained with them.
    published: dotted key → the value in the paper's file.
    per_class: whether a task's accuracy is the mean over its classes.
    """

    scale: str
    paper: str
    dataset: str
    learner: str
    metric: str
    seeds: Sequence[int]
    per_class: bool
    points: tuple[tuple[dict, Cell], ...] = dataclasses.field(hash=False)
    published: dict = dataclasses.field(hash=False)

    @property
    def name(self) -> str:
        return f"{self.paper}/{self.dataset}-{self.learner}"

    @property
    def file(self) -> Path:
        return RESULTS / self.scale / "selection" / f"{self.name}.json"

    @property
    def spec(self) -> dict:
        """Everything that decides the choice."""
        return {
            "name": self.name,
            "metric": self.metric,
            "seeds": seeds_text(self.seeds),
            "per_class": self.per_class,
            "grid": {key: list(dict.fromkeys(values[key] for values, _ in self.points)) for key in self.published},
            "points": [cell.hash for _, cell in self.points],
        }

    def to_fill(self, cell: Cell) -> Cell:
        """A cell with its searched values replaced by `SELECTED`, to be read from the selection's file."""
        spec = cell.spec
        for key in self.published:
            part, option = key.split(".")
            if option in spec[part]:
                spec = spec | {part: spec[part] | {option: SELECTED}}
        return Cell.make(self.scale, spec | {"selection": self.spec}, cell.test_restriction)


@dataclasses.dataclass(frozen=True)
class Target:
    """One table or figure of one paper at one scale, resolved."""

    scale: str
    paper: str
    name: str
    spec: dict = dataclasses.field(hash=False)
    seeds: Sequence[int]
    cells: tuple[tuple[dict, Cell], ...] = dataclasses.field(hash=False, default=())  # (factors, cell)
    streams: tuple[tuple[str, dict, int], ...] = dataclasses.field(hash=False, default=())  # (dataset, order, seed)
    nets: tuple[dict, ...] = dataclasses.field(hash=False, default=())
    selections: tuple[tuple[dict, Selection], ...] = dataclasses.field(hash=False, default=())  # (factors, selection)
    reported: Path | None = None  # the file of printed numbers; None where the paper prints none

    @property
    def of_paper(self) -> Target:
        """The same without the methods from outside, as claims and departures from the paper's settings see it."""
        own = self.spec.get("own", {})
        if not own:
            return self
        cells = tuple((factors, cell) for factors, cell in self.cells if factors["learner"] not in own)
        selections = tuple((factors, search) for factors, search in self.selections if factors["learner"] not in own)
        grid = self.spec["grid"]
        grid = grid | {"learner": [label for label in grid["learner"] if label not in own]}
        spec = {key: value for key, value in self.spec.items() if key != "own"} | {"grid": grid}
        return dataclasses.replace(self, cells=cells, selections=selections, spec=spec)

    def divisors(self, factors: dict) -> list[Cell]:
        """The cell of the target's ideal, where it has one: its runs divide the runs of other factors."""
        if not (ideal := self.spec.get("ideal")):
            return []
        return [cell for other, cell in self.cells if other == factors | {"learner": ideal}]

    @property
    def metrics(self) -> Path:
        return RESULTS / self.scale / "metrics" / self.paper / f"{self.name}.csv"

    @property
    def stem(self) -> Path:
        """The path of the rendered files without suffix."""
        return RESULTS / self.scale / "targets" / self.paper / self.name

    @property
    def outputs(self) -> list[Path]:
        """The rendered files."""
        endings = {
            "table": ["csv", "md", "tex", "html"],
            "figure": ["pdf", "svg", "png", "caption.md", "caption.tex"],
        }[self.spec["kind"]]
        endings += ["reported.csv"] if self.reported else []
        endings += ["paired.csv"] if self.spec.get("paired") else []
        return [self.stem.with_name(f"{self.name}.{ending}") for ending in endings]

    @property
    def note(self) -> Path:
        """The file that tells which runs a figure waits for, instead of the pictures of one without any run."""
        return self.stem.with_name(f"{self.name}.unrun.md")

    @property
    def digest(self) -> str:
        """The digest of all settings that decide the rendered files; as a rule's param, it rebuilds them on an edit."""
        facts = [repr(catalogue.metrics()[metric]) for metric in catalogue.metrics_of(self.spec)]
        return digest([self.spec, facts, self._parts])

    @property
    def measured(self) -> dict:
        """The keys that decide its metrics, all that its measure is given."""
        keys = catalogue.measures()[self.spec["measure"]].keys
        return {key: value for key, value in self.spec.items() if key in keys}

    @property
    def measured_digest(self) -> str:
        """The digest of all settings that decide its metrics: a caption's edit measures nothing again."""
        return digest([self.measured, self._parts])

    @property
    def _parts(self) -> list:
        cells = [(factors, cell.hash, cell.test_restriction) for factors, cell in self.cells]
        chosen = [(factors, selection.spec, selection.published) for factors, selection in self.selections]
        return [list(self.seeds), cells, self.streams, self.nets, chosen]
