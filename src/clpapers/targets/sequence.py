"""Draws the first chunks of a stream as stacked boxes: their classes, and below them the oracle's tasks."""

from collections.abc import Iterable

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from clpapers.targets.footnotes import Notes
from clpapers.targets.palette import SERIES
from clpapers.targets.style import STYLE, legend_above, panels, stream_title

RENDERER = {"draws": "figure", "needs": ["chunks"]}

PALE = 0.7  # share of white in the colour of a class that does not dominate its chunk
LEGIBLE = 0.04  # smallest share of a chunk whose box has room for a label
LISTED_UP_TO = 12  # classes


def _colour(task: int) -> np.ndarray:
    return np.array(to_rgb(SERIES[task % len(SERIES)]))


def _boxes(axes: Axes, chunk: int, shares: Iterable[float], colours: Iterable[np.ndarray], labels: list[str]) -> None:
    """Stack labelled boxes from the bottom up, as high as their share of the chunk."""
    bottom = 0.0
    for share, colour, label in zip(shares, colours, labels):
        axes.bar(chunk, share, 0.9, bottom, color=colour, edgecolor="white", linewidth=0.5)
        if share >= LEGIBLE:
            ink = "black" if colour @ (0.30, 0.59, 0.11) > 0.4 else "white"
            size = 6 if share > 5 * LEGIBLE else 5.5
            axes.text(chunk, bottom + share / 2, label, color=ink, size=size, ha="center", va="center_baseline")
        bottom += share


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw one stream; a class has the colour of its most frequent task, paler where it does not dominate its chunk.

    target: keys `chunks` (number of chunks to draw) and `names` (of the data set and the order).
    data: columns `dataset`, `order`, `chunk`, `class`, `task`, `value` of one stream, as measured by `stream_tasks`.
    """
    (order,) = data["order"].unique()
    shares = data.pivot_table("value", "class", "task", "sum", fill_value=0)
    task_of = shares.idxmax(axis=1)
    figure, axes = panels(target, notes, data["dataset"], 2, 1, 3.3, wide=True, sharex=True, height_ratios=[2, 1])
    above, below = axes[:, 0]
    first = data["chunk"] < target["chunks"]
    for chunk, items in data[first].groupby("chunk"):
        classes = items.groupby("class")["value"].sum()
        dominant = classes.idxmax()
        classes = classes.loc[[dominant, *classes.index.drop(dominant)]]
        colours = [_colour(task_of[c]) for c in classes.index]
        pale = [colours[0], *(colour + PALE * (1 - colour) for colour in colours[1:])]
        _boxes(above, chunk + 1, classes, pale, [f"{dominant}\n{classes[dominant]:.0%}", *map(str, classes.index[1:])])
        tasks = items.groupby("task")["value"].sum()
        _boxes(below, chunk + 1, tasks, map(_colour, tasks.index), [f"{t + 1} ({v:.0%})" for t, v in tasks.items()])
    above.set_title(stream_title(target, notes, data, order))
    above.set_ylabel("Classes")
    above.tick_params(bottom=False)
    below.set(ylabel="Tasks", xlabel="Chunk of the stream", xticks=data.loc[first, "chunk"].unique() + 1)
    for panel in (above, below):
        panel.set(ylim=(0, 1), yticks=[0, 0.5, 1])
        panel.yaxis.set_major_formatter(PercentFormatter(1))
        panel.spines["bottom"].set_visible(False)
    below.tick_params(bottom=False)

    listed = len(shares) <= LISTED_UP_TO and not data.duplicated(["chunk", "class"]).any()
    members = {task: ", ".join(str(c) for c in task_of.index[task_of == task]) for task in shares.columns}
    names = [f"Task {task + 1}: classes {members[task]}" if listed else f"Task {task + 1}" for task in shares.columns]
    patches = [mpl.patches.Patch(color=tuple(_colour(task))) for task in shares.columns]
    legend_above(figure, patches, names, handlelength=1, handleheight=1)
    return figure
