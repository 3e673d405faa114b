"""Draws a metric against a factor's value: one panel a data set, one line a method, runs or 95 % intervals."""

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from clpapers.catalogue.names import named, row_and_column
from clpapers.metrics.intervals import summarise
from clpapers.targets.footnotes import Notes, all_levels, levels
from clpapers.targets.numbers import failures, why_empty
from clpapers.targets.palette import method_styles
from clpapers.targets.spread import draw_line
from clpapers.targets.style import STYLE, chance_line, legend_of, panels, say

RENDERER = {"draws": "figure", "needs": ["metrics", "grid"]}

SPREAD = 0.05  # octaves between the methods' points, so that their intervals do not overlap
BESIDE = 0.4  # octaves beside the first and the last level


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw the target's one metric, a percentage, over a factor on a logarithmic axis.

    Means have their 95 % intervals, or the dots of few runs (`spread.draw_line`). Methods have the looks of
    `palette`. A panel without a point says why.

    target: keys `columns` (the panels' factor, default `dataset`), `rows` (the lines' factor, default `learner`),
        `grid` (its third factor runs along the axis), `metrics` (a list of one), `names` (of levels, of the factor
        along the axis, and of the metric with its unit; chance level is drawn only if "chance" has a name).
    data: columns `dataset`, the three factors, `seed`, `metric`, `value`, as measured by `learning`.
    """
    line, panel_factor = row_and_column(target)
    (x,) = target["grid"].keys() - {line, panel_factor}
    (metric,) = target["metrics"]
    measured = data[data["metric"] == metric]
    summary = summarise(measured, list(dict.fromkeys([panel_factor, "dataset", line, x])))
    lines, columns = levels(target, data, line), all_levels(target, data, panel_factor, notes)
    figure, grid = panels(target, notes, data["dataset"], 1, len(columns), 1.85, remarks=failures(target, data))
    ticks = sorted(data[x].unique())
    for panel, column in zip(grid[0], columns):
        for i, (level, style) in enumerate(method_styles(lines, line).items()):
            points = summary[(summary[panel_factor] == column) & (summary[line] == level)].sort_values(x)
            beside = 2.0 ** (SPREAD * (i - (len(lines) - 1) / 2))
            runs = measured[(measured[panel_factor] == column) & (measured[line] == level)]
            points, runs = (frame.assign(**{x: frame[x] * beside}) for frame in (points, runs))
            draw_line(panel, metric, points, runs, x, style, named(target, level), bands=False)
        chance_line(panel, target, data, metric, **{panel_factor: column})
        here = data.loc[data[panel_factor] == column, "dataset"]
        panel.set_title(notes.mark(named(target, column), here.iloc[0] if len(here) else column))
        panel.set_xlabel(named(target, x))
        if not (summary[panel_factor] == column).any():
            say(panel, why_empty(data, notes, {panel_factor: column}))
            continue
        panel.set_xscale("log", base=2)
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.set_xlim(ticks[0] * 2.0**-BESIDE, ticks[-1] * 2.0**BESIDE)  # also where a panel has but one level
        low, high = panel.get_ylim()
        panel.set_ylim(max(low, 0), min(high, 100))
        panel.grid(axis="y", linewidth=0.3, color="0.85")
    grid[0, 0].set_ylabel(named(target, metric))
    legend_of(figure, grid[0], last=named(target, "chance"))
    return figure
