"""Draws ROC curves of detecting unseen tasks by a threshold on uncertainty."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clpapers.catalogue.names import named
from clpapers.metrics.intervals import summarise
from clpapers.targets.footnotes import Notes, all_levels
from clpapers.targets.numbers import failures, why_empty
from clpapers.targets.palette import method_styles
from clpapers.targets.spread import ends, few
from clpapers.targets.style import GUESS, STYLE, panels, say
from clpapers.targets.table import plus_minus

RENDERER = {"draws": "figure"}

SEED = {"alpha": 0.25, "linewidth": 0.5}
CURVE, AREA = "roc", "seen_unseen_auc"


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw the mean over seeds of the true positive rate (`desiderata`, Figures 18 and 19).

    Below five runs each is a thin line, and its area stands below the mean of all. From five on a band is the 95 %
    interval, which ends at 0 and 1, and the mean area has an interval too. A panel without a curve says why.

    target: keys `grid` (orders learners, a panel each), `names` (of the data set, learners, `false positives` and
        `true positives`).
    data: columns `dataset`, `learner`, `seed`, `metric`, `time`, `value` of the metrics `roc`, a curve of steps, and
        `seen_unseen_auc`, as measured by `learning`.
    """
    (dataset,) = data["dataset"].unique()
    learners = all_levels(target, data, "learner", notes)
    areas = summarise(data[data["metric"] == AREA], ["learner"]).set_index("learner")
    figure, grid = panels(target, notes, [dataset], 1, len(learners), 2.5, remarks=failures(target, data))
    for panel, (learner, style) in zip(grid[0], method_styles(learners).items()):
        panel.set(aspect="equal", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel=named(target, "false positives"))
        panel.set_title(f"{named(target, learner)}, {notes.mark(named(target, dataset), dataset)}")
        curves = data[(data["metric"] == CURVE) & (data["learner"] == learner)]
        if not np.isfinite(curves["value"]).any():
            say(panel, why_empty(data, notes, {"learner": learner}))
            continue
        runs, steps = curves.pivot(index="time", columns="seed", values="value"), {"drawstyle": "steps-post"}
        mean, half, n = areas.loc[learner, ["mean", "half_width", "n"]]
        heights = summarise(curves, ["time"]).sort_values("time")
        if few(heights):
            for seed in runs:
                panel.plot([0, *runs.index], [0, *runs[seed]], color=style.colour, **steps, **SEED)
            single = data[(data["metric"] == AREA) & (data["learner"] == learner)].sort_values("value")["value"]
            area_text = f"AUC {plus_minus(mean, np.nan, 2)}"
            if n > 1:
                area_text += f"\nruns {', '.join(plus_minus(area, np.nan, 2) for area in single)}"
        else:
            band = [[0, *edge] for edge in ends(CURVE, heights["mean"], heights["half_width"])]
            panel.fill_between([0, *heights["time"]], *band, step="post", color=style.colour, alpha=0.15, linewidth=0)
            area_text = f"AUC {plus_minus(mean, half, 2)}"
        panel.plot([0, *heights["time"]], [0, *heights["mean"]], color=style.colour, **steps)
        panel.plot([0, 1], [0, 1], **GUESS)
        panel.text(0.95, 0.08, area_text, ha="right", size=7)
        panel.grid(linewidth=0.3, color="0.85")
    grid[0, 0].set_ylabel(named(target, "true positives"))
    return figure
