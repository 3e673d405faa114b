"""Reads config/claims.yaml, the papers' claims as tests on metrics, against a plan. Imports nothing heavy.

A claim quotes a sentence and names the numbers that decide it. It consists of parts, each one comparison, and holds if
all of them do. `evidence.verdicts` decides them.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.methods import method_of
from clpapers.catalogue.names import CURVE, row_and_column
from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.model import Cell, Target
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.schemas import schema, validate
from clpapers.evidence.claim import SOURCE, TRENDS, Claim, Part, Side
from clpapers.metrics.factors import flat

FILE = CONFIG / "claims.yaml"
Measured = tuple[dict, tuple[str, str] | None, Cell | None]  # flat factors, the stream of a run, its cell


def claiming(papers: Collection[str]) -> list[str]:
    """The papers that have claims, in the order of the file."""
    return [paper for paper in read_yaml(FILE) if paper in papers]


def read(plan: Plan, originals: Mapping[str, Target]) -> dict[str, list[Claim]]:
    """The claims by paper, each resolved into its parts at the plan's scale.

    plan: of all papers. originals: their targets at the scale `paper`, by name.

    Raises `ConfigError` if the schema refuses the file, or if no target has a claim's numbers at any scale. A side that
    only this scale leaves out is no error: its `runs` is False.
    """
    content = read_yaml(FILE)
    validate(content, schema("claims"), FILE)
    for paper in content:
        if paper not in plan.titles:
            raise ConfigError(f"{FILE}: '{paper}' is not one of {', '.join(plan.titles)}")
        if f"{paper}/claims" in plan.targets:
            raise ConfigError(f"{CONFIG}/papers/{paper}.yaml: targets.claims: the table of claims has that name")
    return {
        paper: [
            Claim(paper, name, spec, tuple(_Reader(plan.targets, originals, paper, name, spec).parts()))
            for name, spec in claims.items()
        ]
        for paper, claims in content.items()
    }


class _Reader:
    """Resolves one claim."""

    def __init__(
        self, targets: Mapping[str, Target], originals: Mapping[str, Target], paper: str, name: str, spec: dict
    ):
        self.targets, self.originals, self.paper, self.spec = targets, originals, paper, spec
        self.location = f"{FILE}: {paper}.{name}"

    def parts(self) -> Iterator[Part]:
        spec = self.spec
        self._coherent()
        where, than = spec.get("where", {}), spec.get("than")
        if spec["test"] in TRENDS:
            for first in self._sides("of", where | spec["of"]):
                key = spec["along"]
                if key in CURVE:
                    yield Part((first,))
                    continue
                yield Part(tuple(self._sides("of", where | spec["of"] | first.levels | {key: "all"})) or (first,))
            return
        for first in self._sides("of", where | spec["of"]):
            if not isinstance(than, dict):
                yield Part((first,), than)
                continue
            shared = {key: first.levels[key] for key in where}
            seconds = list(self._sides("than", shared | than, first.levels))
            for second in seconds or [dataclasses.replace(first, runs=False)]:
                yield Part((first, second))

    def _coherent(self) -> None:
        """Refuse keys that do not fit the test."""
        spec, trend = self.spec, self.spec["test"] in TRENDS
        needed = {"along": trend, "than": not trend, "margin": spec["test"] == "within"}
        for key, required in needed.items():
            if required != (key in spec):
                raise ConfigError(f"{self.location}: test {spec['test']} {'needs' if required else 'takes no'} '{key}'")
        if trend and ("ratio" in spec or "by" in spec):
            raise ConfigError(f"{self.location}: test {spec['test']} takes no 'ratio' and no 'by'")
        if spec.get("most") and trend:
            raise ConfigError(f"{self.location}: test {spec['test']} takes no 'most'")
        if spec.get("ratio") and min(spec.get("by", 1), spec.get("margin", 2) - 1) <= 0:
            raise ConfigError(f"{self.location}: of a ratio 'by' must be above 0 and 'margin', a factor, above 1")

    def _sides(self, key: str, description: Mapping, other: Mapping | None = None) -> Iterator[Side]:
        """The sides that the description at `key` names: one for each combination of levels."""
        source = {k: description.get(k, self.spec.get(k)) for k in SOURCE}
        requested = {k: v for k, v in description.items() if k not in SOURCE}
        name, location = f"{self.paper}/{source['target']}", f"{self.location}.{key}"
        if name not in self.targets:
            available = ", ".join(target.name for target in self.targets.values() if target.paper == self.paper)
            raise ConfigError(f"{location}.target: '{source['target']}' is not one of {available}")
        target, original = self.targets[name], self.originals[name]
        metrics = catalogue.metrics_of(target.spec)
        if source["metric"] not in metrics:
            raise ConfigError(f"{location}.metric: '{source['metric']}' is not one of {', '.join(metrics)}")
        cells, originals = _cells(target), _cells(original)
        factors = dict.fromkeys(factor for levels, *_ in (*cells, *originals) for factor in levels)
        along = self.spec.get("along")
        for factor in requested:
            if factor not in (*factors, *CURVE):
                raise ConfigError(f"{location}: '{factor}' is not one of {', '.join((*factors, *CURVE, *SOURCE))}")
            if factor in CURVE and isinstance(requested[factor], str):
                raise ConfigError(f"{location}.{factor}: '{requested[factor]}': write a number, or take")
        if along not in (None, *factors, *CURVE):
            raise ConfigError(f"{self.location}.along: '{along}' is not one of {', '.join((*factors, *CURVE))}")
        if along in requested and requested[along] != "all":
            raise ConfigError(f"{location}.{along}: the trend is along all its levels; leave it out")
        for levels in _combinations(cells, requested, other or {}):
            fixed = _without_curve(levels)
            matches, original_matches = _matching(cells, fixed), _matching(originals, fixed)
            if not matches and not original_matches:
                raise ConfigError(f"{location}{_absent([*cells, *originals], fixed)}")
            self._determined(key, along, fixed, matches, original_matches)
            if fixed.get("learner") in target.spec.get("undefined", {}).get(source["metric"], []):
                raise ConfigError(
                    f"{location}.metric: '{source['metric']}' is undefined for learner {fixed['learner']}"
                )
            cell, stream, run = matches[0] if matches else (fixed, None, None)
            less = self._less(key, levels, cells, originals)
            side = Side(
                name,
                source["metric"],
                source["take"] or "mean",
                levels,
                runs=bool(matches) and (less is None or bool(_matching(cells, _without_curve(less)))),
                dataset=cell.get("dataset"),
                stream=stream,
                run=(run.hash, run.test_restriction) if run else None,
                guesses=run is not None and method_of(run.spec["learner"]).guesses,
                calibrated=_calibrated(target.spec, fixed),
            )
            yield side if less is None else dataclasses.replace(side, less=dataclasses.replace(side, levels=less))

    def _less(self, key: str, levels: dict, *grids: list[Measured]) -> dict | None:
        """The levels of the side whose values are subtracted from those at `levels`, if any are."""
        if "less" not in self.spec:
            return None
        learner = levels.get("learner")
        if learner not in self.spec["less"]:
            raise ConfigError(
                f"{self.location}.less: no learner to subtract from {self.location}.{key}.learner '{learner}'; add one"
            )
        less = levels | {"learner": self.spec["less"][learner]}
        fixed = _without_curve(less)
        if not any(_matching(cells, fixed) for cells in grids):
            raise ConfigError(f"{self.location}.less{_absent([cell for cells in grids for cell in cells], fixed)}")
        return less

    def _determined(self, key: str, along: str | None, fixed: Mapping, *matches: list[Measured]) -> None:
        """Refuse levels that fit several cells."""
        for cells in matches:
            for factor in dict.fromkeys(factor for levels, *_ in cells for factor in levels):
                choices = list(dict.fromkeys(levels.get(factor) for levels, *_ in cells))
                if len(choices) > 1 and factor != along and factor not in fixed:
                    raise ConfigError(
                        f"{self.location}.{key}: {factor} is left open; "
                        f"write one of {', '.join(map(str, choices))}, a list, or all"
                    )


def _cells(target: Target) -> list[Measured]:
    """The cells that a target measures."""
    target = target.of_paper
    if target.cells:
        return [(flat(factors), (cell.spec["dataset"], cell.slug), cell) for factors, cell in target.cells]
    if target.streams:
        return [({"dataset": dataset, "order": order["name"]}, None, None) for dataset, order, _ in target.streams]
    return [({}, None, None)]


def _calibrated(target: dict, levels: Mapping) -> str:
    """The choice that was read off the number that a target prints of a cell; empty if none was."""
    row, column = row_and_column(target)
    for each in target.get("calibrated", []):
        if levels.get(row) in each["rows"] and levels.get(column) in each["columns"]:
            return each["choice"]
    return ""


def _without_curve(levels: Mapping) -> dict:
    """The levels that are factors of a grid, without places on a curve's axis."""
    return {key: level for key, level in levels.items() if key not in CURVE}


def _matching(cells: list[Measured], levels: Mapping) -> list[Measured]:
    return [cell for cell in cells if all(cell[0].get(key) == level for key, level in levels.items())]


def _combinations(cells: list[Measured], requested: Mapping, other: Mapping) -> list[dict]:
    """Every combination of levels that `requested` names.

    A list stands for each of its levels. `all`, `first` and `last` stand for the levels that cells have together with
    the other factors' levels, in the grid's order. `others` stands for all of these but the level of `other`.
    """
    written = {key: value for key, value in requested.items() if not isinstance(value, list) and value not in KEYWORDS}
    combinations: list[dict] = [{}]
    for key, value in requested.items():
        extended = []
        for levels in combinations:
            if isinstance(value, list):
                chosen = value
            elif value in KEYWORDS:
                matches = _matching(cells, _without_curve(written | levels))
                available = list(dict.fromkeys(cell[key] for cell, *_ in matches if key in cell))
                chosen = KEYWORDS[value](available, other.get(key))
            else:
                chosen = [value]
            extended += [levels | {key: level} for level in chosen]
        combinations = extended
    return combinations


KEYWORDS: dict[str, Callable[[list, object], list]] = {
    "all": lambda available, other: available,
    "first": lambda available, other: available[:1],
    "last": lambda available, other: available[-1:],
    "others": lambda available, other: [level for level in available if level != other],
}


def _absent(cells: list[Measured], levels: Mapping) -> str:
    """The end of the message on levels that no cell combines; it names the level that no cell has, or else all."""
    for factor, level in levels.items():
        available = list(dict.fromkeys(cell[factor] for cell, *_ in cells if factor in cell))
        if level not in available:
            return f".{factor}: {level!r} is not one of {', '.join(map(str, available))}"
    return f": no run has {', '.join(f'{factor} {level}' for factor, level in levels.items())}"
