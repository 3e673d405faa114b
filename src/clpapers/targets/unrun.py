"""The runs that a build leaves out of a target. Imports nothing heavy."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Unrun:
    """What a build leaves out of a target.

    cells: the factors of cells without a run. runs, wanted: how many runs it leaves out, and wants in all. hours: what
    those take that could be run; None where that was not measured. absent: data that cannot be had, with the remedies.
    """

    cells: tuple[dict, ...] = ()
    runs: int = 0
    wanted: int = 0
    hours: float | None = 0.0
    absent: dict[str, str] = dataclasses.field(default_factory=dict)
