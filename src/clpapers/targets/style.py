"""The style that all figures share: print size, fonts, palettes, marks and footnotes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from clpapers.targets.names import named
from clpapers.targets.notes import Notes

STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, has † and ‡
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 6,
    "ytick.labelsize": 6,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
}
WIDTH = 5.5  # inches, the papers' text width
NOTE_SIZE, NOTE_CHARACTERS = 5.5, 120  # footnotes: points, and characters that fit a line
SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]  # Okabe and Ito (2008)
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
TEN = [  # Petroff (2021), ten colours that colour-blind readers can distinguish
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
]
GUESS = {"color": "0.45", "linestyle": (0, (1, 1.5)), "linewidth": 0.9}  # the line at chance level


def variants(target: dict, learners: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """The colour of each learner, and whether it is a variant, to be dashed or hatched.

    The target's `variants` map a variant to the learner whose colour it shares.
    """
    original = target.get("variants", {})
    methods = list(dict.fromkeys(original.get(label, label) for label in learners))
    return {label: (TEN[methods.index(original.get(label, label)) % len(TEN)], label in original) for label in learners}


def class_colours(classes: int) -> list:
    """One colour a class: a colour-blind-safe palette up to ten, else varied in hue, lightness and saturation.

    Neighbouring classes differ in lightness, so that their border shows without colour.
    """
    if classes <= len(TEN):
        return TEN[:classes]
    golden, lightness, saturation = (np.sqrt(5) - 1) / 2, (0.45, 0.75, 0.58, 0.88), (0.95, 0.55)
    hues = [(k // 8 * golden + k % 8 * 3 / 8) % 1 for k in range(classes)]
    return [sns.husl_palette(1, h=hue, l=lightness[k % 4], s=saturation[k // 4 % 2])[0] for k, hue in enumerate(hues)]


def panels(
    target: dict,
    notes: Notes,
    datasets: Iterable[str],
    rows: int,
    columns: int,
    height: float,
    *,
    y_label: str = "",
    remarks: Iterable[str] = (),
    **options,
):
    """A figure of the papers' text width, footnotes below: (figure, axes `[rows, columns]`).

    height: inches without the footnotes. y_label: shared by all axes. remarks: more footnotes, below the others.
    options: passed on to `subplots`.
    """
    remarks = [*notes.footnotes(target, datasets), *remarks]
    lines = [line for note in remarks for line in textwrap.wrap(note, NOTE_CHARACTERS)]
    foot = len(lines) * 1.3 * NOTE_SIZE / 72
    figure = Figure(figsize=(WIDTH, height + foot), layout="constrained")
    share = foot / (height + foot)
    figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))
    figure.text(0.01, share, "\n".join(lines), size=NOTE_SIZE, va="top", linespacing=1.2)
    if y_label:
        figure.supylabel(y_label, y=(1 + share) / 2, size=STYLE["axes.labelsize"])
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def legend_above(figure: Figure, handles: list, labels: list[str], **options) -> None:
    """One legend for all panels, in the fewest rows of at most six, all equally long."""
    rows = -(-len(labels) // 6)
    figure.legend(handles, labels, loc="outside upper center", ncols=-(-len(labels) // rows), **options)


def stream_title(target: dict, notes: Notes, data: pd.DataFrame, order: str) -> str:
    """Data set and kind of stream, marked: `CIFAR-100‡, disjoint tasks`."""
    dataset = data.loc[data["order"] == order, "dataset"].iloc[0]
    return f"{notes.mark(named(target, dataset), dataset)}, {named(target, order)}"
