"""Draws metrics over tasks, steps or a factor's values: one line a method, 95 % intervals as bands."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clpapers.metrics.intervals import summarise
from clpapers.metrics.learning import OUT_OF_MEMORY
from clpapers.targets.notes import Notes, levels, named
from clpapers.targets.numbers import failures, without
from clpapers.targets.style import STYLE, legend_above, panels, variants


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw each metric's mean over seeds, in a band as wide as its 95 % interval.

    A method of which any seed diverged or ran out of memory has no line, as a table gives it no number.

    Panels stand metrics down and data sets across, or the metrics of a single data set across. A method's versions have
    one colour (`style.variants`).

    Parameters
    ----------
    target: keys `metrics`, `grid` (orders data sets and learners; a factor besides is what scalars run over), `names`
        (of levels, of each metric with its unit, and under `<metric> over` of what it runs over).
    data: columns `dataset`, `learner`, that factor, `seed`, `metric`, `time`, `value`, as measured by `learning`.
    """
    (x,) = target["grid"].keys() - {"dataset", "learner"} or {"time"}
    datasets, learners = levels(target, data, "dataset"), levels(target, data, "learner")
    metrics = [metric for metric in target["metrics"] if metric in set(data["metric"])]
    fit = without(data[data["metric"] == OUT_OF_MEMORY], data[data["metric"].isin(metrics)])
    summary = summarise(fit, ["metric", "dataset", "learner", x])
    summary = summary[np.isfinite(summary["mean"])].sort_values(x)
    across = len(datasets) == 1
    rows, columns = (1, len(metrics)) if across else (len(metrics), len(datasets))
    remarks = failures(target, data)
    figure, grid = panels(target, notes, data["dataset"], rows, columns, 1.7 * rows + 0.2, remarks=remarks)
    grid = grid.T if across else grid
    for axes, metric in zip(grid, metrics):
        for panel, dataset in zip(axes, datasets):
            lines = summary[(summary["metric"] == metric) & (summary["dataset"] == dataset)]
            for learner, (colour, dashed) in variants(learners).items():
                line = lines[lines["learner"] == learner]
                style = {"color": colour, "linestyle": "--" if dashed else "-"}
                marker = {} if x == "time" else {"marker": "o", "markersize": 2.5}
                panel.plot(line[x], line["mean"], **style, **marker, label=named(target, learner))
                low, high = (line["mean"] + sign * line["half_width"] for sign in (-1, 1))
                panel.fill_between(line[x], low, high, color=colour, alpha=0.15, linewidth=0)
            if not lines.empty:  # bands of two seeds would dwarf the lines
                room = np.ptp(lines["mean"]) or 0.1 * lines["mean"].max() or 1
                low, high = panel.get_ylim()
                panel.set_ylim(max(low, lines["mean"].min() - room), min(high, lines["mean"].max() + room))
            panel.set_xlabel(named(target, f"{metric} over"))
            panel.grid(axis="y", linewidth=0.3, color="0.85")
            panel.xaxis.get_major_locator().set_params(integer=True)
            if x != "time":
                panel.set_xticks(target["grid"][x])
        axes[0].set_ylabel(named(target, metric))
    for axes in grid if across else grid[:1]:
        for panel, dataset in zip(axes, datasets):
            panel.set_title(notes.mark(named(target, dataset), dataset))
    legend_above(figure, *grid[0, 0].get_legend_handles_labels())
    return figure
