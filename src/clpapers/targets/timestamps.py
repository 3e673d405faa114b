"""Draws the making of a stream: class densities, timestamps drawn from them, and the items in order."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import beta

from clpapers.catalogue.names import named
from clpapers.targets.footnotes import Notes
from clpapers.targets.style import STYLE, class_colours, legend_of, panels

RENDERER = {"draws": "figure"}

INNER = 0.95  # share of the time axis that decides the range of densities, as a Beta may be infinite at the ends
LEVEL = {"rotation": 0, "ha": "right", "va": "center"}  # labels of axes too low for upright text


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw one small stream; a thin line leads from each timestamp to its item's place in the stream.

    target: key `names` (of the classes, as "class 0", "class 1", …).
    data: columns `position`, `class`, `timestamp`, `alpha`, `beta` of one stream, as measured by `timestamps`.
    """
    classes = data["class"].max() + 1
    colours = class_colours(classes)
    figure, axes = panels(target, notes, [], 3, 1, 2.6, sharex=True, height_ratios=[4, 1.4, 1.8])
    density, stamps, stream = axes[:, 0]

    time = np.linspace(0, 1, 801)[1:-1]
    inner = np.abs(time - 0.5) < INNER / 2
    highest = 0
    for c, items in data.groupby("class"):
        height = beta.pdf(time, *items[["alpha", "beta"]].iloc[0])
        label = f"{named(target, f'class {c}')} ({len(items)} items)"
        density.fill_between(time, height, color=colours[c], alpha=0.3, linewidth=0)
        highest = max(highest, height[inner].max())
        density.plot(time, height, color=colours[c], label=label)
        stamps.plot(items["timestamp"], np.full(len(items), -c), "|", color=colours[c], markersize=6)
    density.set(xlim=(0, 1), ylim=(0, 1.1 * highest), ylabel="Density")
    legend_of(figure, [density])
    stamps.set(ylim=(0.6 - classes, 0.6))
    stamps.set_ylabel("Timestamps", **LEVEL)

    edges = np.linspace(0, 1, len(data) + 1)
    for c, position, timestamp in zip(data["class"], data["position"], data["timestamp"]):
        left, right = edges[position], edges[position + 1]
        stream.plot([timestamp, (left + right) / 2], [1, 0.55], color=colours[c], linewidth=0.5)
        stream.fill_between([left, right], 0, 0.55, facecolor=colours[c], edgecolor="white", linewidth=0.5)
    stream.set(ylim=(0, 1), xlabel="Time $t$")
    stream.set_ylabel("Stream", **LEVEL)
    for panel in (stamps, stream):
        panel.set_yticks([])
        panel.spines["left"].set_visible(False)
    for panel in (density, stamps):
        panel.tick_params(bottom=False)
    return figure
