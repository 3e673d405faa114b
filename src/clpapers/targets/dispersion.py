"""Draws a metric against a factor's value: one panel a data set, one line a method, 95 % intervals."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from clpapers.metrics.intervals import summarise
from clpapers.metrics.learning import CHANCE_PREFIX
from clpapers.targets.names import named
from clpapers.targets.notes import Notes, levels
from clpapers.targets.numbers import row_and_column
from clpapers.targets.style import GUESS, MARKERS, SERIES, STYLE, panels

RENDERER = {"draws": "figure", "needs": ["metrics", "grid"]}

SPREAD = 0.05  # octaves between the methods' points, so that their intervals do not overlap


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw the target's one metric, a percentage, over a factor on a logarithmic axis.

    target: keys `columns` (the panels' factor, default `dataset`), `rows` (the lines' factor, default `learner`),
        `grid` (its third factor runs along the axis), `metrics` (a list of one), `names` (of levels, of the factor
        along the axis, and of the metric with its unit; chance level is drawn only if "chance" has a name).
    data: columns `dataset`, the three factors, `seed`, `metric`, `value`, as measured by `learning`.
    """
    line, panel_factor = row_and_column(target)
    (x,) = target["grid"].keys() - {line, panel_factor}
    (metric,) = target["metrics"]
    summary = summarise(data[data["metric"] == metric], list(dict.fromkeys([panel_factor, "dataset", line, x])))
    lines, columns = levels(target, data, line), levels(target, data, panel_factor)
    figure, grid = panels(target, notes, data["dataset"], 1, len(columns), 1.85, sharex=True)
    ticks = sorted(data[x].unique())
    for panel, column in zip(grid[0], columns):
        for i, level in enumerate(lines):
            points = summary[(summary[panel_factor] == column) & (summary[line] == level)].sort_values(x)
            panel.errorbar(
                points[x] * 2.0 ** (SPREAD * (i - (len(lines) - 1) / 2)),
                points["mean"],
                yerr=points["half_width"].fillna(0),
                color=SERIES[i],
                marker=MARKERS[i],
                capsize=1.5,
                elinewidth=0.8,
                label=named(target, level),
            )
        guesses = data[(data["metric"] == CHANCE_PREFIX + metric) & (data[panel_factor] == column)]
        if "chance" in target.get("names", {}) and not guesses.empty:
            panel.axhline(guesses["value"].mean(), **GUESS, label=named(target, "chance"))
        dataset = data.loc[data[panel_factor] == column, "dataset"].iloc[0]
        panel.set_title(notes.mark(named(target, column), dataset))
        panel.set_xlabel(named(target, x))
        panel.set_xscale("log", base=2)
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.margins(x=0.12)
        low, high = panel.get_ylim()
        panel.set_ylim(max(low, 0), min(high, 100))
        panel.grid(axis="y", linewidth=0.3, color="0.85")
    grid[0, 0].set_ylabel(named(target, metric))
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure
