"""The runs that a build leaves out of a target. Imports nothing heavy."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Unrun:
    """Runs that a build leaves out of a target.

    cells: the factors of cells without a run. runs, wanted: the numbers of runs left out, and wanted in all. hours:
    core-hours of the runs left out whose data can be had; None where not measured. absent: data that cannot be had,
    with the remedies.
    """

    cells: tuple[dict, ...] = ()
    runs: int = 0
    wanted: int = 0
    hours: float | None = 0.0
    absent: dict[str, str] = dataclasses.field(default_factory=dict)
