"""The runs that a build leaves out of a target. Imports nothing heavy."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Unrun:
    """Runs that a build leaves out of a target.

    cells: the factors of cells without a run.
    runs, wanted: the numbers of runs left out, and wanted in all.
    lacking: how many of the runs left out wait for data that cannot be had.
    hours: core-hours of the others, with everything that is made before them.
    absent: data that cannot be had, with the remedies.
    """

    cells: tuple[dict, ...] = ()
    runs: int = 0
    wanted: int = 0
    lacking: int = 0
    hours: float = 0.0
    absent: dict[str, str] = dataclasses.field(default_factory=dict)
