"""The command of rules/metrics.smk."""

from __future__ import annotations

import importlib

from clpapers import provenance
from clpapers.cli.task import Refusal, Task


def metrics(task: Task) -> None:
    """results/<scale>/metrics/<paper>/<target>.csv, from the target."""
    from clpapers.metrics.inputs import read

    target = task.job.subject
    measure = importlib.import_module(f"clpapers.metrics.{target.spec['measure']}").measure
    with task.recording(target=target.spec, seeds=list(target.seeds)):
        try:
            frame = measure(target.measured, read(task.plan, target, task.job.inputs))
        except ValueError as error:
            raise Refusal(f"{task.out}: {error}") from None
        provenance.write_text(task.out, frame.to_csv(index=False, lineterminator="\n"))
