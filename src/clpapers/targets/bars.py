"""Draws methods across measures as bars: a row a data set, a panel a metric, runs or 95 % intervals on top."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import named
from clpapers.metrics.intervals import NIL, summarise
from clpapers.metrics.learning import OUT_OF_MEMORY
from clpapers.targets.footnotes import Notes, all_levels, levels
from clpapers.targets.numbers import failures, why_empty, without
from clpapers.targets.palette import method_styles
from clpapers.targets.spread import dots, few, whiskers
from clpapers.targets.style import STYLE, legend_above, panels, say

RENDERER = {"draws": "figure", "needs": ["metrics"]}

INTERVAL = {"color": "black", "elinewidth": 0.6, "capsize": 1.5, "capthick": 0.6}
BESIDE = 0.2  # of a bar's place, between the dots of its runs


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw each metric's mean over seeds; ∞ replaces the bar of a method that diverged, OoM of one out of memory, 0 of
    a mean of zero.

    Below five runs each is a dot on the bar; from five on the bar has their 95 % interval, which ends where the metric
    can be no lower or higher. Methods have the looks of `palette`. A panel without a bar says why.

    target: keys `metrics` (scalars; costs are divided by the highest mean of their panel), `grid` (orders
        data sets and learners), `names` (of levels, and of metrics with an arrow for the better direction).
    data: columns `dataset`, `learner`, `seed`, `metric`, `value`, as measured by `learning` and `cost`.
    """
    datasets, learners = all_levels(target, data, "dataset", notes), levels(target, data, "learner")
    metrics = [metric for metric in target["metrics"] if metric in set(data["metric"])]
    out_of_memory = data[data["metric"] == OUT_OF_MEMORY]
    fit = without(out_of_memory, data[data["metric"].isin(metrics)])
    summary = summarise(fit, ["dataset", "metric", "learner"])
    rows, columns, remarks = len(datasets), len(metrics), failures(target, data)
    figure, grid = panels(target, notes, data["dataset"], rows, columns, 1.25 * rows + 0.2, remarks=remarks)
    styles = {
        learner: {"facecolor": style.colour, "hatch": style.hatch, "edgecolor": "white", "linewidth": 0}
        for learner, style in method_styles(learners).items()
    }
    for axes, dataset in zip(grid, datasets):
        failed = set(out_of_memory.loc[out_of_memory["dataset"] == dataset, "learner"])
        for panel, metric in zip(axes, metrics):
            bars = summary[(summary["dataset"] == dataset) & (summary["metric"] == metric)].set_index("learner")
            finite = bars[np.isfinite(bars["mean"])]
            cost = catalogue.metrics()[metric].measure == "cost"
            unit = (cost and finite["mean"].max()) or 1
            reached = [0.0]
            for i, learner in enumerate(learners):
                sign = ""
                if learner in finite.index:
                    mean, half = finite.loc[learner, ["mean", "half_width"]] / unit
                    panel.bar(i, mean, 0.8, **styles[learner])
                    own = (fit["dataset"] == dataset) & (fit["metric"] == metric) & (fit["learner"] == learner)
                    runs = fit.loc[own, "value"].dropna().to_numpy() / unit
                    if few(finite.loc[[learner]]):
                        dots(panel, i + BESIDE * (np.arange(len(runs)) - (len(runs) - 1) / 2), runs, "black")
                        reached += runs.tolist()
                    else:
                        panel.errorbar(i, mean, whiskers(metric, mean, half), **INTERVAL)
                    reached.append(mean)
                    sign = "" if abs(mean) > NIL or np.abs(runs).max() > NIL else "0"
                elif learner in failed or learner in bars.index:
                    sign = "OoM" if learner in failed else "∞"
                if sign:
                    above = {"xytext": (0, 2), "textcoords": "offset points", "ha": "center", "va": "bottom"}
                    panel.annotate(sign, (i, 0), **above, rotation="vertical" if sign == "OoM" else "horizontal")
            panel.set(xlim=(-0.7, len(learners) - 0.3), xticks=[], xlabel=named(target, metric))
            panel.axhline(0, color="black", linewidth=0.6)
            panel.grid(axis="y", linewidth=0.3, color="0.85")
            panel.set_axisbelow(True)
            panel.locator_params(axis="y", nbins=5)
            panel.spines["bottom"].set_visible(False)
            if bars.empty and not failed:
                say(panel, why_empty(data, notes, {"dataset": dataset}))
                continue
            if max(reached) - min(reached) < NIL:
                panel.set(ylim=(0, 1), yticks=[0])
        axes[0].set_ylabel(notes.mark(named(target, dataset), dataset))
    patches = [Patch(**style) for style in styles.values()]
    names = [named(target, learner) for learner in learners]
    legend_above(figure, patches, names, handlelength=1.2, handleheight=1.2)
    return figure
