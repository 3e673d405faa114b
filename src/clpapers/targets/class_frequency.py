"""Draws streams as stacked areas: the relative frequency of each class over time, one panel a stream."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clpapers.targets.footnotes import Notes, levels
from clpapers.targets.style import STYLE, class_colours, panels, stream_title

RENDERER = {"draws": "figure", "needs": ["chunks"]}

LEGEND_UP_TO = 12  # classes


def _stack(axes: Axes, frequency: np.ndarray, colours: list) -> None:
    """Stack `frequency [chunks, classes]`, each class from its first to its last chunk.

    Each area reaches down to zero and is painted over by those below it, so that no hairlines show between them.
    """
    edges = np.linspace(0, 1, len(frequency) + 1)
    top = np.cumsum(frequency, axis=1)
    for c in reversed(range(frequency.shape[1])):
        present = np.flatnonzero(frequency[:, c])
        if len(present):
            first, last = present[0], present[-1] + 1
            axes.stairs(top[first:last, c], edges[first : last + 1], fill=True, color=colours[c], label=f"{c}")


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw one panel for each order in `data`, in order of appearance.

    target: keys `chunks`, `names` (of data sets and orders).
    data: columns `dataset`, `order`, `class`, `time` (centre of the chunk), `value`, as measured by
        `stream_classes` for the statistic `class_frequency`.
    """
    orders = levels(target, data, "order")
    classes, chunks = data["class"].max() + 1, target["chunks"]
    figure, axes = panels(target, notes, data["dataset"], 1, len(orders), 1.75, sharey=True)
    for panel, order in zip(axes[0], orders):
        cells = data[data["order"] == order]
        frequency = np.zeros((chunks, classes))
        chunk = np.floor(cells["time"] * chunks).astype(int)
        frequency[chunk, cells["class"]] = cells["value"]
        _stack(panel, frequency, class_colours(classes))
        panel.set(xlim=(0, 1), ylim=(0, 1), xlabel="Time (fraction of the stream)")
        panel.set_title(stream_title(target, notes, data, order))
    axes[0, 0].set_ylabel("Relative class frequency")
    if classes <= LEGEND_UP_TO:
        patches = [mpl.patches.Patch(color=colour) for colour in class_colours(classes)]
        axes[0, -1].legend(
            patches,
            range(classes),
            title="Class",
            loc="center left",
            bbox_to_anchor=(1, 0.5),
            handlelength=1,
            handleheight=1,
            labelspacing=0.3,
        )
    return figure
