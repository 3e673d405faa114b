"""Draws ROC curves of detecting unseen tasks by a threshold on uncertainty."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from clpapers.metrics.intervals import summarise
from clpapers.targets.names import named
from clpapers.targets.notes import Notes, levels
from clpapers.targets.numbers import failures
from clpapers.targets.style import GUESS, SERIES, STYLE, panels
from clpapers.targets.table import plus_minus

RENDERER = {"draws": "figure"}

SEED = {"alpha": 0.25, "linewidth": 0.5}
CURVE, AREA = "roc", "seen_unseen_auc"


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw each seed's curve as a thin line and the mean of their heights (`desiderata`, Figures 18 and 19).

    The area is the mean of the seeds' areas, with its 95 % interval.

    target: keys `grid` (orders learners, a panel each), `names` (of the data set, learners, `false positives` and
        `true positives`).
    data: columns `dataset`, `learner`, `seed`, `metric`, `time`, `value` of the metrics `roc`, a curve of steps, and
        `seen_unseen_auc`, as measured by `learning`.
    """
    (dataset,) = data["dataset"].unique()
    learners = levels(target, data, "learner")
    areas = summarise(data[data["metric"] == AREA], ["learner"]).set_index("learner")
    figure, grid = panels(target, notes, [dataset], 1, len(learners), 2.5, remarks=failures(target, data))
    for panel, learner, colour in zip(grid[0], learners, SERIES):
        curves = data[(data["metric"] == CURVE) & (data["learner"] == learner)]
        heights = curves.pivot(index="time", columns="seed", values="value")
        for curve, look in [*((heights[seed], SEED) for seed in heights), (heights.mean(axis=1), {})]:
            panel.plot([0, *curve.index], [0, *curve], color=colour, drawstyle="steps-post", **look)
        panel.plot([0, 1], [0, 1], **GUESS)
        mean, half = areas.loc[learner, ["mean", "half_width"]]
        panel.text(0.95, 0.08, f"AUC {plus_minus(mean, half, 2)}", ha="right", size=7)
        panel.set(aspect="equal", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel=named(target, "false positives"))
        panel.set_title(f"{named(target, learner)}, {notes.mark(named(target, dataset), dataset)}")
        panel.grid(linewidth=0.3, color="0.85")
    grid[0, 0].set_ylabel(named(target, "true positives"))
    return figure
