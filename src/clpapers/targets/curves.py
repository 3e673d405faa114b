"""Draws metrics over tasks, steps or a factor's values: one line a method, with a band, or dots for a few runs."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clpapers.catalogue.names import named, row_and_column
from clpapers.metrics.intervals import summarise
from clpapers.metrics.learning import OUT_OF_MEMORY
from clpapers.targets.footnotes import Notes, all_levels, levels
from clpapers.targets.numbers import failures, why_empty, without
from clpapers.targets.palette import method_styles
from clpapers.targets.spread import draw_line
from clpapers.targets.style import STYLE, chance_line, legend_of, panels, say, stream_title

RENDERER = {"draws": "figure", "needs": ["metrics", "grid"]}

EDGE = 0.05  # of an axis, beside its first and last value: no whisker at them is cut
TOP: dict[str, Any] = {"ha": "center", "va": "top", "size": 5.5, "color": "0.35"}


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw each metric's mean over seeds, with its 95 % interval or ± one standard deviation as a band, or the dots of
    few runs (`spread.draw_line`).

    A method with a seed that diverged or ran out of memory has no line, as it has no number in a table. Metrics stand
    down and data sets, or another factor's levels, across; with one level, the metrics stand across. Methods have the
    looks of `palette`. A panel without a line says why. Cycles of tasks are numbered, with dotted lines between them.

    target: keys `metrics`, `grid` (orders data sets and learners; scalars run along its third factor), `rows` (the
        lines' factor, default `learner`), `columns` (the panels' factor, default `dataset`), `spread` (`sd`: bands of a
        standard deviation), `cell` (whose order may have `cycles`), `names` (of levels, of each metric with its unit,
        and, as `<metric> over`, of its axis; chance level is drawn only if "chance" has a name).
    data: columns `dataset`, `learner`, that factor, `seed`, `metric`, `time`, `value`, as measured by `learning` or
        `gradients`.
    """
    row, column = row_and_column(target)
    spread = target.get("spread", "half_width")
    cycles = target.get("cell", {}).get("order", {}).get("cycles", 1)
    columns, learners = all_levels(target, data, column, notes), levels(target, data, row)
    metrics = [metric for metric in target["metrics"] if metric in set(data["metric"])]
    timed = data.loc[data["metric"].isin(metrics), "time"].notna().any()
    (x,) = {"time"} if timed else target["grid"].keys() - {"dataset", "learner", row, column}
    fit = without(data[data["metric"] == OUT_OF_MEMORY], data[data["metric"].isin(metrics)], column)
    summary = summarise(fit, ["metric", column, row, x])
    summary = summary[np.isfinite(summary["mean"])].sort_values(x)
    across = len(columns) == 1
    shape = (1, len(metrics)) if across else (len(metrics), len(columns))
    remarks = failures(target, data)
    height = 2.4 if shape == (1, 1) else 1.7 * shape[0] + 0.2
    figure, grid = panels(target, notes, data["dataset"], *shape, height, remarks=remarks)
    grid = grid.T if across else grid
    for axes, metric in zip(grid, metrics):
        for panel, level in zip(axes, columns):
            lines = summary[(summary["metric"] == metric) & (summary[column] == level)]
            for learner, style in method_styles(learners, row).items():
                line = lines[lines[row] == learner]
                runs = fit[(fit["metric"] == metric) & (fit[column] == level) & (fit[row] == learner)]
                draw_line(panel, metric, line, runs, x, style, named(target, learner), spread=spread)
            if lines.empty:
                say(panel, why_empty(data, notes, {column: level}))
                continue
            chance_line(panel, target, data, metric, **{column: level})
            if cycles > 1:
                _mark_cycles(panel, cycles, lines[x].max() / cycles)
            panel.set_xlabel(named(target, f"{metric} over"))
            panel.grid(axis="y", linewidth=0.3, color="0.85")
            panel.xaxis.get_major_locator().set_params(integer=True)
            if x != "time":
                panel.set_xticks(values := sorted(target["grid"][x]))
                room = EDGE * (values[-1] - values[0])
                panel.set_xlim(values[0] - room, values[-1] + room)
        axes[0].set_ylabel(named(target, metric))
    for axes in grid if across else grid[:1]:
        for panel, level in zip(axes, columns):
            mark = notes.mark(named(target, level), level)
            panel.set_title(mark if column == "dataset" else stream_title(target, notes, data, level))
    legend_of(figure, grid.flat, last=named(target, "chance"))
    return figure


def _mark_cycles(panel: Axes, cycles: int, tasks: float) -> None:
    """Number the cycles of so many tasks, from 1, above the lines, and draw a dotted line between them."""
    low, high = panel.get_ylim()
    panel.set_ylim(low, high + 0.1 * (high - low))
    for cycle in range(cycles):
        panel.text(
            cycle * tasks + (tasks + 1) / 2, 1, f"cycle {cycle + 1}", **TOP, transform=panel.get_xaxis_transform()
        )
        if cycle:
            panel.axvline(cycle * tasks + 0.5, color="0.5", linestyle=":", linewidth=0.7)
