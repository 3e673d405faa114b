"""Draws metrics over tasks or steps: panels of a metric and a data set, one line a method, 95 % intervals as bands."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clpapers.metrics.intervals import summarise
from clpapers.targets.notes import Notes, levels, named
from clpapers.targets.style import STYLE, TEN, panels


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw each metric's mean over seeds, in a band as wide as its 95 % interval.

    A method of which any seed diverged has no line, as a table gives it no number.

    Parameters
    ----------
    target: keys `metrics` (curves), `grid` (orders data sets and learners), `names` (of levels, of each metric with its
        unit, and under `<metric> over` of what it runs over).
    data: columns `dataset`, `learner`, `seed`, `metric`, `time`, `value`, as measured by `learning`.
    """
    datasets, learners = levels(target, data, "dataset"), levels(target, data, "learner")
    metrics = [metric for metric in target["metrics"] if metric in set(data["metric"])]
    summary = summarise(data, ["metric", "dataset", "learner", "time"])
    summary = summary[np.isfinite(summary["mean"])]
    figure, grid = panels(target, notes, data["dataset"], len(metrics), len(datasets), 1.7 * len(metrics) + 0.2)
    for axes, metric in zip(grid, metrics):
        for panel, dataset in zip(axes, datasets):
            for i, learner in enumerate(learners):
                keys = {"metric": metric, "dataset": dataset, "learner": learner}
                line = summary[np.logical_and.reduce([summary[k] == v for k, v in keys.items()])].sort_values("time")
                style = {"color": TEN[i % len(TEN)], "linestyle": ("-", "--")[i // len(TEN) % 2]}
                panel.plot(line["time"], line["mean"], **style, label=named(target, learner))
                low, high = (line["mean"] + sign * line["half_width"] for sign in (-1, 1))
                panel.fill_between(line["time"], low, high, color=style["color"], alpha=0.15, linewidth=0)
            means = summary.loc[(summary["metric"] == metric) & (summary["dataset"] == dataset), "mean"]
            if not means.empty:  # bands of two seeds would dwarf the lines
                room = np.ptp(means) or 0.1 * means.max() or 1
                low, high = panel.get_ylim()
                panel.set_ylim(max(low, means.min() - room), min(high, means.max() + room))
            panel.set_xlabel(named(target, f"{metric} over"))
            panel.grid(axis="y", linewidth=0.3, color="0.85")
            panel.xaxis.get_major_locator().set_params(integer=True)
        axes[0].set_ylabel(named(target, metric))
    for panel, dataset in zip(grid[0], datasets):
        panel.set_title(notes.mark(named(target, dataset), dataset))
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=6)
    return figure
