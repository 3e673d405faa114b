"""Draws streams line by line: each item is a stripe in its class's colour and its instance's shade."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from clpapers.catalogue.names import named
from clpapers.streams.chunks import CLASS_CHUNKS
from clpapers.targets.footnotes import Notes, levels
from clpapers.targets.style import STYLE, class_colours, legend_above, panels, stream_title

RENDERER = {"draws": "figure"}

PALEST = 0.55  # share of white in the colour of a class's last instance
BOX, LINE = 0.9, 0.65  # heights of a batch's box and of its line of items, in distances between lines
LISTED_UP_TO = 12  # categories


def _shades(data: pd.DataFrame) -> dict[tuple[int, int], np.ndarray]:
    """A colour for each (class, instance): the class's, paler from instance to instance."""
    colours, shades = class_colours(data["class"].max() + 1), {}
    for category, items in data.groupby("class"):
        instances = sorted(items["instance"].unique())
        for instance, white in zip(instances, np.linspace(0, PALEST, len(instances))):
            shades[category, instance] = (1 - white) * np.array(to_rgb(colours[category])) + white
    return shades


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw a panel for each order, as lines of text (Hayes et al., Figure 1).

    Orders whose classes come one after the other have a line and a grey box a batch; other streams are broken into
    lines as long as the longest chunk.

    target: key `names` (of data sets and orders; "category" heads the legend).
    data: columns `dataset`, `order`, `chunk`, `class`, `instance`, `value` of one stream an order, in stream order, as
        measured by `stream_instances`.
    """
    orders, shades = levels(target, data, "order"), _shades(data)
    width = data.groupby(["order", "chunk"])["value"].sum().max()
    drawn = {}  # order → the colours of its items, line by line
    for order in orders:
        runs = data[data["order"] == order]
        items = np.repeat([shades[pair] for pair in zip(runs["class"], runs["instance"])], runs["value"], axis=0)
        ends = (
            runs.groupby("chunk")["value"].sum().cumsum() if order in CLASS_CHUNKS else range(width, len(items), width)
        )
        edges = np.unique([0, *ends, len(items)])
        drawn[order] = [items[start:end] for start, end in pairwise(edges)]
    most = max(map(len, drawn.values()))
    figure, ((*axes,),) = panels(target, notes, data["dataset"], 1, len(orders), 0.7 + 0.16 * most)
    for panel, (order, lines) in zip(axes, drawn.items()):
        batches, margin = order in CLASS_CHUNKS, 0.012 * width
        for i, line in enumerate(lines):
            if batches:
                corner = (-margin, i - BOX / 2)
                panel.add_patch(
                    Rectangle(corner, len(line) + 2 * margin, BOX, facecolor="0.85", edgecolor="0.5", linewidth=0.4)
                )
            place = (0, len(line), i + LINE / 2, i - LINE / 2)
            panel.imshow(line[None], extent=place, aspect="auto", interpolation="nearest", zorder=2)
        panel.set(xlim=(-2 * margin, width + 2 * margin), ylim=(len(lines) - 0.4, -0.6), xlabel="Items")
        starts = np.cumsum([0, *map(len, lines[:-1])])
        panel.set_yticks(
            range(len(lines)), [f"{number:,}" for number in (1 + np.arange(len(lines)) if batches else starts)]
        )
        panel.set_ylabel("Batch" if batches else "Items seen before")
        panel.spines["left"].set_visible(False)
        panel.tick_params(axis="y", length=0)
        panel.set_title(stream_title(target, notes, data, order))
    categories = sorted(data["class"].unique())
    if len(categories) <= LISTED_UP_TO:
        colours = class_colours(data["class"].max() + 1)
        patches = [Patch(color=colours[category]) for category in categories]
        legend_above(figure, patches, categories, title=named(target, "category"), handlelength=1, handleheight=1)
    return figure
