"""Reads config/claims.yaml, the papers' claims as tests on metrics, against a plan. Imports nothing heavy.

A claim quotes a sentence and names the numbers that decide it. It consists of parts, each one comparison, and holds if
all of them do. `targets.verdicts` decides them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping

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


def claiming(papers: Collection[str]) -> list[str]:
    """The papers that have claims, in the order of the file."""
    return [paper for paper in read_yaml(FILE) if paper in papers]


def read(plan: Plan, originals: Mapping[str, Target]) -> dict[str, list[Claim]]:
    """The claims by paper, each resolved into its parts at the plan's scale.

    plan: of all papers. originals: their targets at the scale `paper`, by name.

    Raises `ConfigError` if the schema refuses the file, or if a claim is on numbers that no target has at any scale. A
    side that only this scale leaves out is no error: its `runs` is False.
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
        self.at = f"{FILE}: {paper}.{name}"

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
        for key, due in needed.items():
            if due != (key in spec):
                raise ConfigError(f"{self.at}: test {spec['test']} {'needs' if due else 'takes no'} '{key}'")
        if trend and ("ratio" in spec or "by" in spec):
            raise ConfigError(f"{self.at}: test {spec['test']} takes no 'ratio' and no 'by'")
        if spec.get("most") and trend:
            raise ConfigError(f"{self.at}: test {spec['test']} takes no 'most'")
        if spec.get("ratio") and min(spec.get("by", 1), spec.get("margin", 2) - 1) <= 0:
            raise ConfigError(f"{self.at}: of a ratio 'by' must be above 0 and 'margin', a factor, above 1")

    def _sides(self, key: str, given: Mapping, other: Mapping | None = None) -> Iterator[Side]:
        """The sides that `given`, at `key`, describes: one a combination of levels."""
        source = {k: given.get(k, self.spec.get(k)) for k in SOURCE}
        name, wanted = f"{self.paper}/{source['target']}", {k: v for k, v in given.items() if k not in SOURCE}
        if name not in self.targets:
            there = ", ".join(target.name for target in self.targets.values() if target.paper == self.paper)
            raise ConfigError(f"{self.at}.{key}.target: '{source['target']}' is not one of {there}")
        target, original = self.targets[name], self.originals[name]
        metrics = catalogue.metrics_of(target.spec)
        if source["metric"] not in metrics:
            raise ConfigError(f"{self.at}.{key}.metric: '{source['metric']}' is not one of {', '.join(metrics)}")
        cells, originals = _cells(target), _cells(original)
        factors = dict.fromkeys(factor for levels, *_ in (*cells, *originals) for factor in levels)
        along = self.spec.get("along")
        for factor in wanted:
            if factor not in (*factors, *CURVE):
                raise ConfigError(f"{self.at}.{key}: '{factor}' is not one of {', '.join((*factors, *CURVE, *SOURCE))}")
            if factor in CURVE and isinstance(wanted[factor], str):
                raise ConfigError(f"{self.at}.{key}.{factor}: '{wanted[factor]}': write a number, or take")
        if along not in (None, *factors, *CURVE):
            raise ConfigError(f"{self.at}.along: '{along}' is not one of {', '.join((*factors, *CURVE))}")
        if along in wanted and wanted[along] != "all":
            raise ConfigError(f"{self.at}.{key}.{along}: the trend is along all its levels; leave it out")
        for levels in _expanded(cells, wanted, other or {}):
            fixed = {k: v for k, v in levels.items() if k not in CURVE}
            here, there = (_matching(each, fixed) for each in (cells, originals))
            if not here and not there:
                raise ConfigError(f"{self.at}.{key}{_absent([*cells, *originals], fixed)}")
            self._determined(key, along, fixed, here, there)
            if fixed.get("learner") in target.spec.get("undefined", {}).get(source["metric"], []):
                raise ConfigError(
                    f"{self.at}.{key}.metric: '{source['metric']}' is undefined for learner {fixed['learner']}"
                )
            cell, stream, run = here[0] if here else (fixed, None, None)
            less = self._less(key, levels, cells, originals)
            runs = bool(here) and (
                less is None or bool(_matching(cells, {k: v for k, v in less.items() if k not in CURVE}))
            )
            told = (
                {"run": (run.hash, run.test_restriction), "guesses": method_of(run.spec["learner"]).guesses}
                if run
                else {}
            )
            told["calibrated"] = _calibrated(target.spec, fixed)
            take, dataset = source["take"] or "mean", cell.get("dataset")
            side = Side(name, source["metric"], take, levels, runs, dataset, stream, **told)
            yield side if less is None else dataclasses.replace(side, less=dataclasses.replace(side, levels=less))

    def _less(self, key: str, levels: Mapping, *found: list) -> dict | None:
        """The levels of the side whose values are subtracted from those at `levels`, if any are."""
        if "less" not in self.spec:
            return None
        learner = levels.get("learner")
        if learner not in self.spec["less"]:
            raise ConfigError(
                f"{self.at}.less: no learner to subtract from {self.at}.{key}.learner '{learner}'; add one"
            )
        less = levels | {"learner": self.spec["less"][learner]}
        fixed = {k: v for k, v in less.items() if k not in CURVE}
        if not any(_matching(cells, fixed) for cells in found):
            raise ConfigError(f"{self.at}.less{_absent([cell for cells in found for cell in cells], fixed)}")
        return less

    def _determined(self, key: str, along: str | None, fixed: Mapping, *found: list) -> None:
        """Refuse levels that fit several cells."""
        for cells in found:
            for factor in dict.fromkeys(factor for levels, *_ in cells for factor in levels):
                there = list(dict.fromkeys(levels.get(factor) for levels, *_ in cells))
                if len(there) > 1 and factor != along and factor not in fixed:
                    named = ", ".join(map(str, there))
                    raise ConfigError(f"{self.at}.{key}: {factor} is left open; write one of {named}, a list, or all")


def _cells(target: Target) -> list[tuple[dict, tuple[str, str] | None, Cell | None]]:
    """What a target measures: flat factors, and the stream of a run and its cell."""
    target = target.of_paper
    if target.cells:
        return [(flat(factors), (cell.spec["dataset"], cell.slug), cell) for factors, cell in target.cells]
    if target.streams:
        return [({"dataset": dataset, "order": order["name"]}, None, None) for dataset, order, _ in target.streams]
    return [({}, None, None)]


def _calibrated(target: Mapping, levels: Mapping) -> str:
    """The choice that was read off the number that a target prints of a cell; empty if none was."""
    row, column = row_and_column(target)
    for each in target.get("calibrated", []):
        if levels.get(row) in each["rows"] and levels.get(column) in each["columns"]:
            return each["choice"]
    return ""


def _matching(cells: list, levels: Mapping) -> list:
    return [cell for cell in cells if all(cell[0].get(key) == level for key, level in levels.items())]


def _expanded(cells: list, wanted: Mapping, other: Mapping) -> list[dict]:
    """Every combination of levels that `wanted` names.

    A list stands for each of its levels; `all`, `first` and `last` for the levels that cells have together with the
    other factors' levels, in the grid's order; `others` for all of these but the level of `other`.
    """
    written = {key: value for key, value in wanted.items() if not isinstance(value, list) and value not in WORDS}
    found = [{}]
    for key, value in wanted.items():
        combined = []
        for levels in found:
            if isinstance(value, list):
                chosen = value
            elif value in WORDS:
                known = {k: v for k, v in (written | levels).items() if k not in CURVE}
                there = list(dict.fromkeys(cell[key] for cell, *_ in _matching(cells, known) if key in cell))
                chosen = WORDS[value](there, other.get(key))
            else:
                chosen = [value]
            combined += [levels | {key: level} for level in chosen]
        found = combined
    return found


WORDS = {
    "all": lambda there, other: there,
    "first": lambda there, other: there[:1],
    "last": lambda there, other: there[-1:],
    "others": lambda there, other: [level for level in there if level != other],
}


def _absent(cells: list, levels: Mapping) -> str:
    """The end of the message on levels that no cell combines; it names the level that no cell has, or else all."""
    for factor, level in levels.items():
        there = list(dict.fromkeys(cell[factor] for cell, *_ in cells if factor in cell))
        if level not in there:
            return f".{factor}: {level!r} is not one of {', '.join(map(str, there))}"
    return f": no run has {', '.join(f'{factor} {level}' for factor, level in levels.items())}"
