"""Draws one curve a stream over time: a column for each kind of stream, a row for each seed."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clpapers.metrics.learning import OUT_OF_MEMORY
from clpapers.targets.names import named
from clpapers.targets.notes import Notes, levels
from clpapers.targets.palette import SERIES
from clpapers.targets.style import STYLE, panels, stream_title

RENDERER = {"draws": "figure"}


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw the target's one metric; all panels share their axes.

    target: key `names` (of data sets, orders and the metric, with its unit).
    data: columns `dataset`, `order`, `seed`, `metric`, `time` (fraction of the stream), `value`, as measured
        by `stream_classes` for the statistic `prevalence` or by `learning` for a curve.
    """
    orders = levels(target, data, "order")
    seeds = {order: list(dict.fromkeys(data.loc[data["order"] == order, "seed"])) for order in orders}
    rows = max(map(len, seeds.values()))
    data = data[data["metric"] != OUT_OF_MEMORY]
    (metric,) = data["metric"].unique()
    options = {"y_label": named(target, metric), "sharex": True, "sharey": True}
    figure, axes = panels(target, notes, data["dataset"], rows, len(orders), 0.5 + 0.75 * rows, **options)
    for column, order in enumerate(orders):
        for row, seed in enumerate(seeds[order]):
            curve = data[(data["order"] == order) & (data["seed"] == seed)]
            panel = axes[row, column]
            panel.plot(curve["time"], curve["value"], color=SERIES[column], linewidth=0.8)
            panel.grid(axis="y", linewidth=0.3, color="0.85")
        axes[-1, column].set_xlabel("Time (fraction of the stream)")
        axes[0, column].set_title(stream_title(target, notes, data, order))
    axes[0, 0].locator_params(axis="y", nbins=4)
    highest = data["value"].replace(np.inf, np.nan).max()  # a run that diverged has no curve
    axes[0, 0].set(xlim=(0, 1), ylim=(0, 1.05 * highest if highest > 0 else 1))
    return figure
