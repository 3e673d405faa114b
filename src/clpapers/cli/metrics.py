"""The command of rules/metrics.smk."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path

from clpapers import provenance
from clpapers.cli.refusal import Refusal
from clpapers.cli.task import Task
from clpapers.metrics.factors import flat
from clpapers.runs.form import UNFIT


def _nothing(task: Task):
    """The metrics of a target of which nothing was measured yet: its columns, without a line."""
    import pandas as pd

    target = task.plan.targets[f"{task.job.subject.paper}/{task.job.subject.name}"]
    factors = dict.fromkeys(key for each, _ in (*target.cells, *target.selections) for key in flat(each))
    columns = [*factors, "dataset", "learner", "seed", "metric", "time", "value"]
    return pd.DataFrame(columns=list(dict.fromkeys(columns)))


def _unmeasured(task: Task, measure: Callable[[dict, Iterable], object]) -> Path | None:
    """The first of the imported runs that cannot be measured alone either."""
    from clpapers.metrics.inputs import read

    target = task.job.subject
    for path in filter(provenance.is_imported, task.job.inputs):
        try:
            measure(target.measured, read(task.plan, target, [path]))
        except UNFIT:
            return path
    return None


def metrics(task: Task) -> None:
    """results/<scale>/metrics/<paper>/<target>.csv, from the target."""
    from clpapers.metrics.inputs import read

    target = task.job.subject
    measure = importlib.import_module(f"clpapers.metrics.{target.spec['measure']}").measure
    with task.recording(target=target.spec, seeds=list(target.seeds)):
        try:
            read_in = task.job.inputs
            frame = measure(target.measured, read(task.plan, target, read_in)) if read_in else None
        except UNFIT as error:
            if culprit := _unmeasured(task, measure):
                raise Refusal(f"{culprit}: cannot be measured ({error!r}); {task.imported_anew}") from None
            if not isinstance(error, ValueError):
                raise
            raise Refusal(f"{task.out}: {error}") from None
        if frame is None or frame.empty:  # or what was run reports nothing of this
            frame = _nothing(task)
        provenance.write_text(task.out, frame.to_csv(index=False, lineterminator="\n"))
