"""The command of rules/report.smk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clpapers.cli.job_context import JobContext
from clpapers.provenance import Refusal

if TYPE_CHECKING:
    from clpapers.graph.jobs import PapersJob


def report(task: JobContext[PapersJob]) -> None:
    """results/<scale>/report/index.html and the other pages beside it, from its papers."""
    from clpapers.report import own_methods, reference, site
    from clpapers.report.paper import gather

    for path in task.job.inputs:
        if not path.is_file():
            raise Refusal(f"{path}: no such file, which the report shows; build it with snakemake")
    with task.recording(papers=task.job.papers):
        papers = gather(task.plan, task.job.papers)
        site.write(papers, task.out.parent, reference.texts(task.plan), own_methods.gather(task.plan, papers))
