"""The command of rules/metrics.smk."""

from __future__ import annotations

import importlib

from clpapers import provenance
from clpapers.cli.task import Refusal, Task
from clpapers.metrics.factors import flat


def _nothing(task: Task):
    """The metrics of a target of which nothing was measured yet: its columns, without a line."""
    import pandas as pd

    target = task.plan.targets[f"{task.job.subject.paper}/{task.job.subject.name}"]
    factors = dict.fromkeys(key for each, _ in (*target.cells, *target.selections) for key in flat(each))
    columns = [*factors, "dataset", "learner", "seed", "metric", "time", "value"]
    return pd.DataFrame(columns=list(dict.fromkeys(columns)))


def metrics(task: Task) -> None:
    """results/<scale>/metrics/<paper>/<target>.csv, from the target."""
    from clpapers.metrics.inputs import read

    target = task.job.subject
    measure = importlib.import_module(f"clpapers.metrics.{target.spec['measure']}").measure
    with task.recording(target=target.spec, seeds=list(target.seeds)):
        try:
            read_in = task.job.inputs
            frame = measure(target.measured, read(task.plan, target, read_in)) if read_in else None
        except ValueError as error:
            raise Refusal(f"{task.out}: {error}") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            if not any(map(provenance.is_imported, task.job.inputs)):
                raise
            raise Refusal(
                f"{task.out}: imported runs among what it is made of are none ({error!r}); delete "
                f"results/{task.plan.scale}/imported and import other crates"
            ) from None
        if frame is None or frame.empty:  # or what was run reports nothing of this
            frame = _nothing(task)
        provenance.write_text(task.out, frame.to_csv(index=False, lineterminator="\n"))
