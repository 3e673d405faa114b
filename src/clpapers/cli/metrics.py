"""The command of rules/metrics.smk."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from clpapers import provenance
from clpapers.cli.job_context import JobContext
from clpapers.metrics.factors import flat
from clpapers.provenance import Refusal
from clpapers.runs.result_schema import UNFIT

if TYPE_CHECKING:
    import pandas as pd

    from clpapers.graph.jobs import TargetJob


def _without_lines(task: JobContext[TargetJob]) -> pd.DataFrame:
    """The metrics of a target without measurements: its columns, without a line."""
    import pandas as pd

    target = task.plan.targets[f"{task.job.target.paper}/{task.job.target.name}"]
    factors = dict.fromkeys(key for each, _ in (*target.cells, *target.selections) for key in flat(each))
    columns = [*factors, "dataset", "learner", "seed", "metric", "time", "value"]
    return pd.DataFrame(columns=list(dict.fromkeys(columns)))


def _unmeasured(task: JobContext[TargetJob], measure: Callable[[dict, Iterable], object]) -> Path | None:
    """The first of the imported runs that cannot be measured alone either."""
    from clpapers.metrics.inputs import read

    target = task.job.target
    for path in filter(provenance.is_imported, task.job.inputs):
        try:
            measure(target.measured, read(task.plan, target, [path]))
        except UNFIT:
            return path
    return None


def metrics(task: JobContext[TargetJob]) -> None:
    """results/<scale>/metrics/<paper>/<target>.csv, from the target."""
    from clpapers.metrics.inputs import mark_older_streams, read

    target = task.job.target
    measure = importlib.import_module(f"clpapers.metrics.{target.spec['measure']}").measure
    with task.recording(target=target.spec, seeds=list(target.seeds)):
        try:
            inputs = task.job.inputs
            frame = measure(target.measured, read(task.plan, target, inputs)) if inputs else None
            if frame is not None:
                frame = mark_older_streams(frame, task.plan, target, inputs)
        except UNFIT as error:
            if culprit := _unmeasured(task, measure):
                raise Refusal(f"{culprit}: cannot be measured ({error!r}); {task.remedy_for_imported}") from None
            if not isinstance(error, ValueError):
                raise
            raise Refusal(f"{task.out}: {error}") from None
        if frame is None or frame.empty:  # as some runs have no such measurements
            frame = _without_lines(task)
        provenance.write_text(task.out, frame.to_csv(index=False, lineterminator="\n"))
