"""Draws accuracy against training time: one point a configuration, one colour a method."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from clpapers.metrics.intervals import summarise
from clpapers.metrics.learning import CHANCE_PREFIX, OUT_OF_MEMORY
from clpapers.targets.names import named
from clpapers.targets.notes import Notes, levels
from clpapers.targets.numbers import clocks, failures
from clpapers.targets.style import GUESS, MARKERS, SERIES, STYLE, legend_above, panels

RENDERER = {"draws": "figure", "needs": ["metrics"]}


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw means over seeds, with 95 % intervals of the accuracy, times on a logarithmic axis (`desiderata`, Figure 9).

    A configuration of which any seed ran out of memory or diverged has no point.

    target: keys `metrics` (the accuracy and the time), `grid` (orders data sets, a panel each, and learners), `names`
        (of levels and metrics with their units; chance level is drawn only if "chance" has a name).
    data: columns `dataset`, `learner`, `cell` (one a configuration), `seed`, `metric`, `value`, `hardware`, as measured
        by `trade_offs`.
    """
    metric, time = target["metrics"]
    datasets, learners = levels(target, data, "dataset"), levels(target, data, "learner")
    failed = data.loc[data["metric"] == OUT_OF_MEMORY, "cell"]
    summary = summarise(data[~data["cell"].isin(failed)], ["dataset", "learner", "cell", "metric"])
    points = summary.pivot(index=["dataset", "learner", "cell"], columns="metric", values=["mean", "half_width"])
    remarks = [*clocks(data), *failures(target, data)]
    figure, grid = panels(target, notes, data["dataset"], 1, len(datasets), 2.3, remarks=remarks)
    for panel, dataset in zip(grid[0], datasets):
        handles = []
        for learner, colour, marker in zip(learners, SERIES, MARKERS):
            mine = points[points.index.droplevel("cell") == (dataset, learner)]
            y = mine["mean", metric]
            drawn = panel.errorbar(
                mine["mean", time],
                y.where(np.isfinite(y)),
                yerr=mine["half_width", metric].fillna(0),
                color=colour,
                marker=marker,
                linestyle="",
                elinewidth=0.5,
                alpha=0.75,
                markeredgewidth=0,
                label=named(target, learner),
            )
            handles.append(drawn)
        guesses = data[(data["metric"] == CHANCE_PREFIX + metric) & (data["dataset"] == dataset)]
        if "chance" in target.get("names", {}) and not guesses.empty:
            handles.append(panel.axhline(guesses["value"].mean(), **GUESS, label=named(target, "chance")))
        panel.set(xscale="log", xlabel=named(target, time), title=notes.mark(named(target, dataset), dataset))
        panel.set_ylim(0, 102)
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(linewidth=0.3, color="0.85")
        panel.set_axisbelow(True)
    grid[0, 0].set_ylabel(named(target, metric))
    legend_above(figure, handles, [handle.get_label() for handle in handles])
    return figure
