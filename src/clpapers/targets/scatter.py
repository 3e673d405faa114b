"""Draws accuracy against training time: one point a configuration, one look a method."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from clpapers.catalogue.names import named
from clpapers.metrics.intervals import summarise
from clpapers.metrics.learning import OUT_OF_MEMORY
from clpapers.targets.footnotes import Notes, all_levels, levels
from clpapers.targets.numbers import clocks, failures, why_empty
from clpapers.targets.palette import method_styles
from clpapers.targets.spread import BANDS_FROM, dots, whiskers
from clpapers.targets.style import STYLE, chance_line, legend_of, panels, say

RENDERER = {"draws": "figure", "needs": ["metrics"]}


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw means over seeds, times on a logarithmic axis (`desiderata`, Figure 9).

    Below five runs the accuracy of each is a dot; from five on a point has its 95 % interval, which ends where the
    metric can be no lower or higher. Methods have the looks of `palette`. A panel without a point says why.
    A configuration with a seed that ran out of memory or diverged has no point.

    target: keys `metrics` (the accuracy and the time), `grid` (orders data sets, a panel each, and learners), `names`
        (of levels and metrics with their units; chance level is drawn only if "chance" has a name).
    data: columns `dataset`, `learner`, `cell` (one a configuration), `seed`, `metric`, `value`, `hardware`, as measured
        by `trade_offs`.
    """
    metric, time = target["metrics"]
    datasets, learners = all_levels(target, data, "dataset", notes), levels(target, data, "learner")
    fit = data[~data["cell"].isin(data.loc[data["metric"] == OUT_OF_MEMORY, "cell"])]
    summary = summarise(fit[fit["metric"].isin([metric, time])], ["dataset", "learner", "cell", "metric"])
    points = summary.pivot(index=["dataset", "learner", "cell"], columns="metric", values=["mean", "half_width", "n"])
    points = points[np.isfinite(points["mean", metric])]
    remarks = [*clocks(target, data), *failures(target, data)]
    figure, grid = panels(target, notes, data["dataset"], 1, len(datasets), 2.3, remarks=remarks)
    for panel, dataset in zip(grid[0], datasets):
        for learner, style in method_styles(learners).items():
            own = points[points.index.droplevel("cell") == (dataset, learner)]
            half = own["half_width", metric].where(own["n", metric] >= BANDS_FROM)
            panel.errorbar(
                own["mean", time],
                own["mean", metric],
                yerr=whiskers(metric, own["mean", metric], half),
                color=style.colour,
                marker=style.marker,
                fillstyle=style.fill,
                linestyle="",
                elinewidth=0.5,
                alpha=0.75,
                markeredgewidth=0.4,
                label=named(target, learner),
            )
            for (_, _, cell), point in own.iterrows():
                if point["n", metric] < BANDS_FROM:
                    runs = fit.loc[(fit["cell"] == cell) & (fit["metric"] == metric), "value"]
                    dots(panel, np.full(len(runs), point["mean", time]), runs, style.colour)
        chance_line(panel, target, data, metric, dataset=dataset)
        panel.set(ylim=(0, 102), xlabel=named(target, time), title=notes.mark(named(target, dataset), dataset))
        if dataset not in points.index.get_level_values("dataset"):
            say(panel, why_empty(data, notes, {"dataset": dataset}))
            continue
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(linewidth=0.3, color="0.85")
        panel.set_axisbelow(True)
    grid[0, 0].set_ylabel(named(target, metric))
    legend_of(figure, grid[0], last=named(target, "chance"))
    return figure
