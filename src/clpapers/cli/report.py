"""The command of rules/report.smk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clpapers.cli.task import Task
from clpapers.provenance import Refusal

if TYPE_CHECKING:
    from clpapers.config.model import Target
    from clpapers.targets.notes import Notes


def report(task: Task[list[str]]) -> None:
    """results/<scale>/report/index.html and the other pages beside it, from its papers."""
    from clpapers.evidence.desiderata import sentence
    from clpapers.report import site
    from clpapers.targets.notes import notes_on

    def notes(target: Target) -> Notes:
        return notes_on(task.plan, target, task.reduced(target), sentence(target, task.plan.datasets))

    for path in task.job.inputs:
        if not path.is_file():
            raise Refusal(f"{path}: no such file, which the report shows; build it with snakemake")
    with task.recording(papers=task.job.subject):
        site.write(task.plan, task.job.subject, task.out.parent, notes)
