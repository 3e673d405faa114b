"""A claim of a paper: a sentence, and the comparisons of numbers that decide it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import CURVE

TRENDS = ("increasing", "decreasing")
SOURCE = ("target", "metric", "take")  # keys of a side that are no factors


@dataclasses.dataclass(frozen=True)
class Side:
    """One of the numbers that a claim compares: a metric of one cell, with a value for each seed.

    take: how a seed's rows, if several (a curve), become its value.
    runs: whether the scale has the cell.
    dataset: the cell's.
    stream: the cell's data set and order; None if the metric is not measured on runs.
    less: the side whose values are subtracted, seed by seed, if any.
    run: the cell's hash and the restriction at test under which it is read; None without a run.
    guesses: whether nothing is trained.
    calibrated: the choice that was read off its printed number.
    """

    target: str
    metric: str
    take: str
    levels: Mapping = dataclasses.field(hash=False)
    runs: bool
    dataset: str | None
    stream: tuple[str, str] | None
    less: Side | None = None
    run: tuple[str, str] | None = None
    guesses: bool = False
    calibrated: str = ""

    def at_level(self, key: str, level: object) -> Side:
        """The same side at a level of a curve."""
        less = self.less and self.less.at_level(key, level)
        return dataclasses.replace(self, levels={**self.levels, key: level}, less=less)


@dataclasses.dataclass(frozen=True)
class Part:
    """One comparison: of `sides[0]` with `sides[1]` or with `number`, or the trend along all of `sides`."""

    sides: tuple[Side, ...]
    number: float | None = None

    @property
    def timed(self) -> bool:
        """Whether a value stands for a block of seeds, as of times, not for a seed."""
        return any(catalogue.metrics()[side.metric].sample == "block" for side in self.sides)

    @property
    def paired(self) -> bool:
        """Whether both sides were measured seed by seed on the same streams, so that their seeds are pairs."""
        return not self.timed and len({side.stream for side in self.sides}) == 1 and self.sides[0].stream is not None

    @property
    def constructed(self) -> bool:
        """Whether no run could decide it otherwise: one run on both sides, guesses, or metrics that are computed."""
        if all(side.guesses or catalogue.metrics()[side.metric].sample == "none" for side in self.sides):
            return True
        places = [{key: side.levels[key] for key in CURVE if key in side.levels} for side in self.sides]
        read = [(side.run, side.metric, side.take, place, side.less) for side, place in zip(self.sides, places)]
        return len(read) > 1 and read[0][0] is not None and all(each == read[0] for each in read)


@dataclasses.dataclass(frozen=True)
class Claim:
    """One claim of a paper: its entry in config/claims.yaml, and its parts at a scale."""

    paper: str
    name: str
    spec: Mapping = dataclasses.field(hash=False)
    parts: tuple[Part, ...]

    @property
    def targets(self) -> list[str]:
        """The targets whose metrics decide it, as `paper/target`."""
        sides = [self.spec["of"], self.spec["than"] if isinstance(self.spec.get("than"), dict) else {}]
        return list(dict.fromkeys(f"{self.paper}/{side.get('target', self.spec['target'])}" for side in sides))

    @property
    def calibrated(self) -> str:
        """The choices that were read off it or off a printed number that it stands on, and in how many of its parts."""
        if stated := self.spec.get("calibrated"):
            return stated
        by_part = [[side.calibrated for side in part.sides if side.calibrated] for part in self.parts]
        choices = dict.fromkeys(choice for found in by_part for choice in found)
        count = sum(bool(found) for found in by_part)
        some = f" ({count} of {len(self.parts)} parts)" if 0 < count < len(self.parts) else ""
        return ", ".join(choices) + some

    @property
    def decidable(self) -> bool:
        """Whether runs can decide it: not where it is on other data, a demand, or a time on other hardware."""
        other = {"other_data", "demand", "by_construction"} & {*self.spec}
        return not other and not all(part.timed or part.constructed for part in self.parts)
