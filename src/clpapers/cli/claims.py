"""The commands of rules/claims.smk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clpapers.cli.job_context import JobContext

if TYPE_CHECKING:
    from clpapers.graph.jobs import ClaimsJob, PapersJob


def claims(task: JobContext[ClaimsJob]) -> None:
    """results/<scale>/targets/<paper>/claims.{csv,md,tex,html}, from the paper's claims and their targets."""
    import pandas as pd

    from clpapers.evidence.claims_table import render
    from clpapers.evidence.verdicts import decide
    from clpapers.targets.footnotes import notes_on
    from clpapers.targets.formats import write_table

    of_paper, targets = task.job.claims, task.job.targets
    paper = task.out.parent.name
    with task.recording(claims={claim.name: claim.spec for claim in of_paper}):
        by_name = {f"{paper}/{target.name}": target for target in targets}
        notes = {name: notes_on(task.plan, target, task.reduced(target)) for name, target in by_name.items()}
        frames = {name: pd.read_csv(target.metrics) for name, target in by_name.items()}
        verdicts = [decide(claim, frames, notes) for claim in of_paper]
        specs = {name: target.spec for name, target in by_name.items()}
        title = task.plan.titles[paper]
        write_table(render(title, of_paper, verdicts, specs, notes), task.out.with_suffix(""))


def scorecard(task: JobContext[PapersJob]) -> None:
    """results/<scale>/targets/scorecard.{csv,md,tex,html}, from the papers whose claims it counts."""
    import pandas as pd

    from clpapers.evidence.claims_table import scorecard
    from clpapers.targets.formats import write_table

    papers = task.job.papers
    with task.recording(papers=papers):
        frames = {paper: pd.read_csv(file) for paper, file in zip(papers, task.job.inputs)}
        write_table(scorecard(frames, task.plan.titles, task.plan.scale), task.out.with_suffix(""))
