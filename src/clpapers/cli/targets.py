"""The commands of rules/targets.smk: tables, figures, reported beside reproduced, methods compared in pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clpapers import provenance
from clpapers.cli.job_context import JobContext
from clpapers.provenance import Refusal

if TYPE_CHECKING:
    from clpapers.graph.jobs import TargetJob
    from clpapers.targets.footnotes import Notes


def table(task: JobContext[TargetJob]) -> None:
    """results/<scale>/targets/<paper>/<target>.{csv,md,tex,html}, from the target."""
    from clpapers.evidence.comparison import attach, compare, read_reported
    from clpapers.evidence.rendering import table_of
    from clpapers.targets.formats import write_table

    target = task.job.target
    with task.recording(target=target.spec):
        rendered, frame, notes = _draw_with_notes(task, table_of)
        if target.reported:
            printed = read_reported(target.reported, target.paper, target.name)
            rendered = attach(rendered, target.spec, frame, compare(target.spec, frame, printed, notes), notes)
        write_table(rendered, target.stem)


def figure(task: JobContext[TargetJob]) -> None:
    """results/<scale>/targets/<paper>/<target>.{pdf,svg,png,caption.md,caption.tex}, from the target."""
    from clpapers.evidence.rendering import rendered as draw
    from clpapers.targets.figure import write_caption, write_figure

    with task.recording(target=task.job.target.spec):
        target = task.job.target
        rendered, _, notes = _draw_with_notes(task, draw)
        write_figure(rendered, target.stem)
        write_caption(rendered, target.spec, notes, target.stem)
        target.note.unlink(missing_ok=True)  # it holds no longer


def note(task: JobContext[TargetJob]) -> None:
    """results/<scale>/targets/<paper>/<target>.unrun.md, from a figure's metrics without a line."""
    from clpapers.targets.caption import Caption

    with task.recording(target=task.job.target.spec):
        target, notes = task.job.target, _notes(task)
        caption = Caption(
            notes.mark(target.spec["title"]), notes.caption(target.spec), sources=notes.sources(target.spec)
        )
        provenance.write_text(target.note, caption.to_markdown())
        for path in target.outputs:  # pictures of runs that the build leaves out
            if provenance.record_path(path) == provenance.record_path(target.note):
                path.unlink(missing_ok=True)


def _notes(task: JobContext[TargetJob]) -> Notes:
    from clpapers.evidence.conditions import sentence
    from clpapers.targets.footnotes import notes_on

    target = task.job.target
    return notes_on(task.plan, target, task.reduced(target), sentence(target, task.plan.datasets))


def _draw_with_notes(task: JobContext[TargetJob], draw: Callable) -> tuple:
    """The target as `draw` makes it, its measurements, and its notes."""
    import pandas as pd

    target, notes = task.job.target, _notes(task)
    frame = pd.read_csv(target.metrics)
    try:
        return draw(target, frame, notes), frame, notes
    except ValueError as error:
        raise Refusal(f"{task.out}: {error}") from None


def reported(task: JobContext[TargetJob]) -> None:
    """results/<scale>/targets/<paper>/<target>.reported.csv, from the target."""
    import pandas as pd

    from clpapers.evidence.comparison import compare, read_reported
    from clpapers.targets.footnotes import notes_on
    from clpapers.targets.formats import to_csv

    target = task.job.target
    assert target.reported is not None  # otherwise it has no such file
    with task.recording(target=target.spec):
        printed = read_reported(target.reported, target.paper, target.name)
        notes = notes_on(task.plan, target, task.reduced(target))
        compared = compare(target.spec, pd.read_csv(target.metrics), printed, notes)
        provenance.write_text(task.out, to_csv(compared))


def paired(task: JobContext[TargetJob]) -> None:
    """results/<scale>/targets/<paper>/<target>.paired.csv, from the target."""
    import pandas as pd

    from clpapers.targets.formats import to_csv
    from clpapers.targets.paired import pairs

    target = task.job.target
    with task.recording(target=target.spec):
        provenance.write_text(task.out, to_csv(pairs(target.spec, pd.read_csv(target.metrics))))
