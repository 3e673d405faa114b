"""Draws a learner's uncertainty on every task after each task as a heat map with its numbers."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clpapers.catalogue.names import named
from clpapers.targets.footnotes import Notes
from clpapers.targets.numbers import failures
from clpapers.targets.style import STYLE, panels
from clpapers.targets.table import plus_minus

RENDERER = {"draws": "figure", "needs": ["metrics"]}


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw the mean over seeds (`desiderata`, Figures 16 and 17); left of a line stand the tasks already learnt.

    target: keys `metrics` (a list of one) and `names` (of the data set, of `time`, the tasks learnt, of `task`, the
        task tested, and of the metric).
    data: columns `dataset`, `seed`, `metric`, `time`, `task` (both from 1), `value` (shares of the row's largest) of
        one configuration, as measured by `learning`.
    """
    (dataset,) = data["dataset"].unique()
    (metric,) = target["metrics"]
    shares = data[data["metric"] == metric].pivot_table("value", "time", "task", "mean")
    height = 0.36 * len(shares) + 0.8
    figure, ((panel,),) = panels(target, notes, [dataset], 1, 1, height, remarks=failures(target, data))
    image = panel.imshow(shares, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    for (row, column), share in np.ndenumerate(shares.to_numpy()):
        ink = "black" if share > 0.6 else "white"
        panel.text(column, row, plus_minus(share, np.nan, 2), color=ink, ha="center", va="center_baseline")
    seen = np.searchsorted(shares.columns, shares.index, side="right") - 0.5
    rows = np.arange(len(shares) + 1) - 0.5
    for colour, width in (("white", 2.5), ("black", 1.2)):
        panel.plot(np.repeat(seen, 2)[:-1], np.repeat(rows, 2)[1:-2], color=colour, linewidth=width)
    for axis, factor, ticks in ((panel.xaxis, "task", shares.columns), (panel.yaxis, "time", shares.index)):
        axis.set_ticks(range(len(ticks)), [f"{tick:g}" for tick in ticks])
        axis.set_label_text(named(target, factor))
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    panel.set_title(notes.mark(named(target, dataset), dataset))
    figure.colorbar(image, ax=panel, label=named(target, metric), shrink=0.8, pad=0.02).outline.set_visible(False)
    return figure
