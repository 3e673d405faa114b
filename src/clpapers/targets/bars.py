"""Draws methods across measures as bars: a row a data set, a panel a metric, 95 % intervals on top."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from clpapers import catalogue_metrics as catalogue
from clpapers.metrics.intervals import summarise
from clpapers.metrics.learning import OUT_OF_MEMORY
from clpapers.targets.names import named
from clpapers.targets.notes import Notes, levels
from clpapers.targets.numbers import failures, without
from clpapers.targets.style import STYLE, legend_above, panels, variants

RENDERER = {"draws": "figure", "needs": ["metrics"]}

INTERVAL = {"color": "black", "elinewidth": 0.6, "capsize": 1.5, "capthick": 0.6}


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw each metric's mean over seeds; ∞ replaces the bar of a method that diverged, OoM of one out of memory.

    Variants of a method share its colour and are hatched (`style.variants`).

    target: keys `metrics` (scalars; costs are divided by the highest mean of their panel), `grid` (orders
        data sets and learners), `names` (of levels, and of metrics with an arrow for the better direction).
    data: columns `dataset`, `learner`, `seed`, `metric`, `value`, as measured by `learning` and `cost`.
    """
    datasets, learners = levels(target, data, "dataset"), levels(target, data, "learner")
    metrics = [metric for metric in target["metrics"] if metric in set(data["metric"])]
    out_of_memory = data[data["metric"] == OUT_OF_MEMORY]
    summary = summarise(without(out_of_memory, data[data["metric"].isin(metrics)]), ["dataset", "metric", "learner"])
    rows, columns, remarks = len(datasets), len(metrics), failures(target, data)
    figure, grid = panels(target, notes, data["dataset"], rows, columns, 1.25 * rows + 0.2, remarks=remarks)
    styles = {
        learner: {"facecolor": colour, "hatch": "////" if variant else "", "edgecolor": "white", "linewidth": 0}
        for learner, (colour, variant) in variants(target, learners).items()
    }
    for axes, dataset in zip(grid, datasets):
        failed = set(out_of_memory.loc[out_of_memory["dataset"] == dataset, "learner"])
        for panel, metric in zip(axes, metrics):
            bars = summary[(summary["dataset"] == dataset) & (summary["metric"] == metric)].set_index("learner")
            finite = bars.loc[np.isfinite(bars["mean"]), ["mean", "half_width"]]
            if catalogue.metrics()[metric].measure == "cost":
                finite = finite / finite["mean"].max()
            for i, learner in enumerate(learners):
                if learner in finite.index:
                    mean, half = finite.loc[learner]
                    panel.bar(i, mean, 0.8, **styles[learner])
                    panel.errorbar(i, mean, np.nan_to_num(half), **INTERVAL)
                elif learner in failed or learner in bars.index:
                    sign, rotation = ("OoM", "vertical") if learner in failed else ("∞", "horizontal")
                    above = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center", "va": "bottom"}
                    panel.annotate(sign, (i, 0), **above, rotation=rotation)
            panel.set(xlim=(-0.7, len(learners) - 0.3), xticks=[], xlabel=named(target, metric))
            panel.axhline(0, color="black", linewidth=0.6)
            panel.grid(axis="y", linewidth=0.3, color="0.85")
            panel.set_axisbelow(True)
            panel.locator_params(axis="y", nbins=5)
            panel.spines["bottom"].set_visible(False)
            if not finite.empty:  # intervals of two seeds would dwarf the bars
                lowest, highest = min(finite["mean"].min(), 0), max(finite["mean"].max(), 0)
                room = 0.4 * (highest - lowest) or 1
                low, high = panel.get_ylim()
                panel.set_ylim(max(low, lowest - room * (lowest < 0)), min(high, highest + room))
        axes[0].set_ylabel(notes.mark(named(target, dataset), dataset))
    patches = [Patch(**style) for style in styles.values()]
    names = [named(target, learner) for learner in learners]
    legend_above(figure, patches, names, handlelength=1.2, handleheight=1.2)
    return figure
