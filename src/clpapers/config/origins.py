"""Trace each value of a cell to its file, line and layer, or to the reason for which it is derived."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from clpapers.config.facts import Facts
from clpapers.config.files import CONFIG, line_numbers
from clpapers.config.grid import Grid
from clpapers.config.layers import Layer, of_dataset, of_learner, within
from clpapers.config.model import SELECTED, Cell
from clpapers.config.refusals import ConfigError, dotted
from clpapers.config.settings import all_papers
from clpapers.config.targets import Paper, read_paper

# Values that may be written as other counts: iterations of a batch, items of a class.
COUNTED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("order", "items"): ("order", "iterations"),
    ("budget", "memory"): ("budget", "memory_per_class"),
}


class Origin(NamedTuple):
    """A value of a cell by its dotted key, its `file:line` and its layer or, for a derived value, the reason."""

    key: str
    value: object
    place: str
    layer: str


def origins(scale: str, cell_hash: str) -> list[Origin]:
    """Every value of the cell of a scale whose hash is `cell_hash`; raises `ConfigError` where there is none."""
    facts = Facts(scale)
    for name in all_papers():
        paper = read_paper(facts, name)
        for cell, dataset, label, over in _cells(paper):
            if cell.hash == cell_hash:
                return list(_Trace(paper.grid, dataset, label, over, {}).origins(cell))
    listed = f"results/{scale}/runs/index.csv lists them; for another scale, add --scale"
    raise ConfigError(f"{cell_hash}: no cell at scale {scale} has this hash; {listed}")


def _cells(paper: Paper) -> Iterator[tuple[Cell, str, str, list[Layer]]]:
    """The cells of a paper, each with its data set, its learner and the layers over the values of these."""
    for target in paper.targets:
        for factors, cell in target.cells:
            yield cell, factors["dataset"], factors["learner"], paper.grid.of_target(target.spec, factors)
    for search in paper.grid.selections.values():
        for values, cell in search.points:
            yield cell, search.dataset, search.learner, paper.grid.of_point(search.dataset, search.learner, values)


class _Trace:
    """Finds the lines of a paper's and a scale's file that set the values of one cell."""

    def __init__(self, grid: Grid, dataset: str, label: str, over: Sequence[Layer], read: dict[Path, dict]):
        self.grid, self.dataset, self.label, self.over = grid, dataset, label, over
        self.lines = read  # by file, the line of each path; filled as files are read
        self.own = of_learner(grid.content, dataset, label)
        self.written = grid.written(dataset, label, over)

    def origins(self, cell: Cell) -> Iterator[Origin]:
        """The origin of each value of the cell in turn."""
        method = self.grid.method(self.label).with_options(self.written["learner"])
        why = self.grid.seen("", method, self.grid.complete("", self.written)).why
        for path, value in _leaves(cell.spec):
            place, layer = self._layer(path)
            stated = _value_at(self.written, path)
            if value == SELECTED:
                chosen = self.grid.selections[cell.spec["selection"]["name"]]
                place, layer = "derived", f"read from {chosen.file}"
            elif path[0] == "selection":
                place, layer = "derived", "the search that chooses the selected values"
            elif path[0] in why and value != stated:
                place, layer = "derived", why[path[0]]
            elif path[-1] == "aligned":
                place, layer = "derived", "whether its partition of the classes is the data's own"
            elif path == ("evaluation", "oracles"):
                place, layer = "derived", "its test needs no other oracle"
            elif path == ("order", "mu_sigma") and value != stated:
                factor = ("order", "mu_sigma_factor")
                layer += f": {stated}, times {_value_at(self.written, factor)} of {' '.join(self._layer(factor))}"
            elif (count := COUNTED.get(path)) and _value_at(self.written, count) is not None:
                place, layer = "derived", f"from {dotted(count)} of {' '.join(self._layer(count))}"
            yield Origin(".".join(path), value, place or "derived", layer)

    def _layer(self, path: tuple[str, ...]) -> tuple[str, str]:
        """The file and line that set a value, and the layer; empty where no line does."""
        if path[0] == "features":
            declared = Path(self.grid.facts.datasets[self.dataset].get("declared", CONFIG / "datasets.yaml"))
            return self._first_line([(self.grid.facts.file, path), (declared, (self.dataset, *path))])
        if path == ("dataset",):
            over = self.over[0].path
            return self._line_of((*over[:2], "grid", "dataset") if over[0] == "targets" else over)
        if path == ("learner", "name"):
            method = self._line_of(("learners", self.label, "method"))
            return method if method[0] else self._first_line([(self.grid.file, ("learners", self.label))])
        if path[0] == "oracle" and isinstance(self.written["oracle"], str):
            return self._line_of(("oracles", self.written["oracle"], *path[1:]))
        if path[:2] == ("evaluation", "oracles") and len(path) > 2:
            return self._line_of(("oracles", path[2].removesuffix("-unaligned"), *path[3:]))
        layers = [*of_dataset(self.grid.content, self.dataset), *within(self.own, "cell"), *self.over]
        if path[0] == "learner":
            layers, path = [*self.own, *within(self.over, "learner")], path[1:]
        for layer in reversed(layers):
            block = _value_at(layer.block, path[:-1])
            if isinstance(block, dict) and path[-1] in block:
                return self._line_of((*layer.path, *path[layer.named :]))
        return "", ""

    def _line_of(self, path: tuple) -> tuple[str, str]:
        """The file and line that set the value at a path: the scale's part of the paper, or else its file."""
        of_scale = (self.grid.facts.file, ("papers", self.grid.paper, *path))
        own = ("scales", self.grid.facts.scale, *path)
        return self._first_line([of_scale, (self.grid.file, own), (self.grid.file, path)])

    def _first_line(self, candidates: Sequence[tuple[Path, tuple]]) -> tuple[str, str]:
        for file, path in candidates:
            if file not in self.lines:
                self.lines[file] = line_numbers(file)
            line = self.lines[file].get(path)
            if line:
                return f"{file}:{line}", dotted(path[:-1]) if len(path) > 1 else path[0]
        return "", ""


def _leaves(block: dict, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in block.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _value_at(block: object, path: Sequence[str]) -> object:
    """The value at a path in nested mappings; None where there is none."""
    for key in path:
        block = block.get(key) if isinstance(block, dict) else None
    return block
