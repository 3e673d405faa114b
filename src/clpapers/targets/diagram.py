"""Draws a net that ends in a joint embedding: the paths of images and task descriptors to their inner products."""

import re

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from clpapers.catalogue.names import named
from clpapers.targets.footnotes import Notes
from clpapers.targets.palette import TEN
from clpapers.targets.style import STYLE, WIDTH, panels

RENDERER = {"draws": "figure", "needs": ["nets"], "head": "joint_embedding"}

HEIGHT = 1.75  # inches, of a net
IMAGES, DESCRIPTORS, TOGETHER = 1.25, 0.35, 0.8  # heights of their centres above the bottom, in inches
TALLEST, LOWEST, GAP = 0.62, 0.14, 0.11  # boxes and the arrows between them, in inches
IMAGE, DESCRIPTOR, JOINT = TEN[0], TEN[1], TEN[3]
LEARNT = {"linewidth": 1.1}  # outline of boxes with parameters


def box(axes: Axes, x: float, middle: float, size: tuple, colour: str, name: str, facts: str, learnt: bool) -> None:
    """A box of `size` (width, height), its left edge at x, with its name inside and facts below."""
    width, height = size
    pale = 0.65 + 0.35 * np.array(to_rgb(colour))
    outline = LEARNT if learnt else {"linewidth": 0.5, "linestyle": ":"}
    corner = x, middle - height / 2
    axes.add_patch(mpl.patches.Rectangle(corner, width, height, facecolor=pale, edgecolor="0.25", **outline))
    axes.text(x + width / 2, middle, name, ha="center", va="center_baseline", size=6)
    axes.text(x + width / 2, middle - height / 2 - 0.03, facts, ha="center", va="top", size=5.5, linespacing=1.15)


def arrow(axes: Axes, start: tuple, end: tuple) -> None:
    """An arrow between two points."""
    style = {"arrowstyle": "-|>,head_length=0.25,head_width=0.12", "linewidth": 0.7, "color": "0.25"}
    axes.annotate("", end, start, arrowprops={**style, "shrinkA": 0, "shrinkB": 0})


def _parameters(number: int) -> str:
    return f"{number:,}" if number else ""


def _draw(axes: Axes, target: dict, net: str, layers: pd.DataFrame) -> None:
    outermost = layers["block"].astype(str).str.partition(".")[0]
    blocks = layers.assign(block=outermost).groupby("block", sort=False)
    blocks = blocks.agg(layer=("layer", "last"), output=("output", "last"), parameters=("parameters", "sum"))
    head, features = blocks.iloc[-1], blocks.iloc[-2]
    sizes = re.fullmatch(r"JointEmbedding\((\d+), (\d+)\)", head["layer"])
    if sizes is None:
        raise ValueError(f"{net}: it ends in {head['layer']}, which is no joint embedding")
    dimensions, attributes = map(int, sizes.groups())
    whole, classes = layers["input"].iloc[0], layers["classes"].iloc[0]
    embedding = dimensions * attributes

    # the image's path: boxes as high as their maps, on a logarithmic scale
    chain = [(r"$x^k$", whole, 0)]
    chain += [(named(target, name), row.output, row.parameters) for name, row in blocks.iloc[:-2].iterrows()]
    chain += [(r"$\phi_\theta(x^k)$", features["output"], 0)]
    room = WIDTH * 0.75
    width = (room - GAP * (len(chain) - 1)) / len(chain)
    maps = [int(str(output).split("×")[-1]) for _, output, _ in chain[:-1]]
    scale = (TALLEST - LOWEST) / np.log(max(maps))
    heights = [LOWEST + scale * np.log(size) for size in maps] + [LOWEST]
    for i, ((name, output, parameters), height) in enumerate(zip(chain, heights)):
        left = i * (width + GAP)
        facts = "\n".join(filter(None, [str(output), _parameters(parameters)]))
        box(axes, left, IMAGES, (width, height), IMAGE, name, facts, bool(parameters))
        if i:
            arrow(axes, (left - GAP, IMAGES), (left, IMAGES))

    # the descriptor's path, below the image's; it ends below the features
    matrices = [
        (r"$t^k$", rf"$C_k$×{attributes}", 0),
        (r"$\omega$", f"{attributes}×{dimensions}\n{_parameters(embedding)}", embedding),
        (r"$\psi_\omega(t^k)$", rf"$C_k$×{dimensions}", 0),
    ]
    lefts = np.linspace(0, room - width, len(matrices))
    for left, before, (name, facts, learnt) in zip(lefts, [None, *lefts], matrices):
        box(axes, left, DESCRIPTORS, (width, 0.3), DESCRIPTOR, name, facts, bool(learnt))
        if before is not None:
            arrow(axes, (before + width, DESCRIPTORS), (left, DESCRIPTORS))
    axes.text(0, DESCRIPTORS + 0.2, f"task descriptor: {attributes} attributes a class", size=5.5)
    axes.text(0, IMAGES + TALLEST / 2 + 0.06, "image of task $k$", size=5.5)

    # their product
    bias = int(head["parameters"]) - embedding
    offset = " + b" if bias else ""
    product = rf"$\phi_\theta\,\psi_\omega^\top{offset}$"
    size, left = (0.5, 0.3), room + 0.12
    last, centre = WIDTH - size[0] - 0.05, left + size[0] / 2
    box(axes, left, TOGETHER, size, JOINT, product, "", bool(bias))
    axes.text(centre - 0.05, TOGETHER - size[1] / 2 - 0.03, _parameters(bias), ha="right", va="top", size=5.5)
    box(axes, last, TOGETHER, size, JOINT, "softmax", f"$p(c\\,|\\,x^k, t^k)$\n$C_k$ of {classes}", False)
    for y in (IMAGES, DESCRIPTORS):
        axes.plot([room, centre], [y, y], color="0.25", linewidth=0.7)
        arrow(axes, (centre, y), (centre, TOGETHER + size[1] / 2 * np.sign(y - TOGETHER)))
    arrow(axes, (left + size[0], TOGETHER), (last, TOGETHER))
    axes.text((left + size[0] + last) / 2, TOGETHER + 0.04, "$C_k$", ha="center", size=5.5)
    axes.set(xlim=(-0.03, WIDTH), ylim=(0, HEIGHT))
    axes.axis("off")


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw each net as a row (`agem`, Figure 9), with outputs and numbers of parameters below the boxes.

    target: key `names` (of nets and of their outermost blocks).
    data: columns `net`, `input`, `classes`, `block`, `layer`, `output`, `parameters`, as measured by `architecture`.

    Raises `ValueError` for a net that does not end in a joint embedding.
    """
    nets = data.groupby("net", sort=False)
    figure, grid = panels(target, notes, [], len(nets), 1, HEIGHT * len(nets), wide=True)
    for panel, (net, layers) in zip(grid[:, 0], nets):
        _draw(panel, target, net, layers)
        panel.set_title(notes.mark(named(target, net)))
    return figure
