"""The style that all figures share: print size, fonts, marks and legends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clpapers.catalogue.names import named
from clpapers.metrics.learning import CHANCE_PREFIX
from clpapers.targets.notes import REDUCED, STANDIN, Notes
from clpapers.targets.palette import TEN

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

STYLE: dict[RcKeyType, Any] = {
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
COLUMN, WIDTH = 3.25, 6.75  # inches, a column and the text of a paper in two columns
NOTE_SIZE = 5.5  # points
KEY, CHARACTER = 0.45, 0.05  # inches, about, of an entry's sign in a legend and of each character
GUESS: dict[str, Any] = {"color": "0.45", "linestyle": (0, (1, 1.5)), "linewidth": 0.9}  # the line at chance level


def class_colours(classes: int) -> list:
    """One colour a class: a colour-blind-safe palette up to ten, else varied in hue, lightness and saturation.

    Neighbouring classes differ in lightness, so that their border shows without colour.
    """
    if classes <= len(TEN):
        return TEN[:classes]
    golden, lightness, saturation = (np.sqrt(5) - 1) / 2, (0.45, 0.75, 0.58, 0.88), (0.95, 0.55)
    hues = [(k // 8 * golden + k % 8 * 3 / 8) % 1 for k in range(classes)]
    return [sns.husl_palette(1, h=hue, l=lightness[k % 4], s=saturation[k // 4 % 2])[0] for k, hue in enumerate(hues)]


class NotedFigure(Figure):
    """A figure that knows the notes of its caption: the texts of its marks and signs."""

    notes: list[str]


def panels(
    target: dict,
    notes: Notes,
    datasets: Iterable[str],
    rows: int,
    columns: int,
    height: float,
    *,
    wide: bool | None = None,
    y_label: str = "",
    remarks: Iterable[str] = (),
    **options: Any,
) -> tuple[NotedFigure, np.ndarray]:
    """A figure as wide as a column or as the text: (figure, axes `[rows, columns]`).

    height: inches.
    wide: whether it is as wide as the text; by default where panels stand side by side.
    y_label: shared by all axes.
    remarks: notes for its caption, besides those on marks.
    options: passed on to `subplots`.
    """
    datasets = list(datasets)
    width = WIDTH if (columns > 1 if wide is None else wide) else COLUMN
    figure = NotedFigure(figsize=(width, height), layout="constrained")
    figure.notes = [*notes.marks(target, datasets), *remarks]
    marked = [f"{STANDIN} stand-in data"] * any(dataset in notes.standins for dataset in datasets)
    if signs := [*marked, *[f"{REDUCED} reduced scale"] * bool(notes.reductions)]:
        figure.supxlabel(", ".join(signs), x=0.01, ha="left", size=NOTE_SIZE)
    if y_label:
        figure.supylabel(y_label, size=STYLE["axes.labelsize"])
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def legend_above(figure: Figure, handles: list, labels: list[str], **options: Any) -> None:
    """One legend for all panels, in the fewest rows of at most six that fit, all equally long."""
    widest = KEY + CHARACTER * max(map(len, map(str, labels)))
    rows = -(-len(labels) // min(6, int(figure.get_figwidth() / widest)))
    figure.legend(handles, labels, loc="outside upper center", ncols=-(-len(labels) // rows), **options)


def legend_of(figure: Figure, axes: Iterable[Axes], last: str = "") -> None:
    """One legend for all panels, an entry a label, the label `last` at its end."""
    entries: dict = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    if entries:
        labels = sorted(entries, key=lambda label: label == last)
        legend_above(figure, [entries[label] for label in labels], labels)


def chance_line(panel: Axes, target: dict, data: pd.DataFrame, metric: str, **level: object) -> list[float]:
    """Draw a metric's chance level at a `level` of a factor, if it has a name and was measured; returns it, if so."""
    ((factor, value),) = level.items()
    guesses = data.loc[(data["metric"] == CHANCE_PREFIX + metric) & (data[factor] == value), "value"]
    if "chance" not in target.get("names", {}) or guesses.empty:
        return []
    panel.axhline(guesses.mean(), **GUESS, label=named(target, "chance"))
    return [guesses.mean()]


def say(panel: Axes, text: str) -> None:
    """Write in an empty panel why it is empty."""
    panel.text(0.5, 0.5, text, ha="center", va="center", color="0.35", size=6, transform=panel.transAxes)
    panel.tick_params(bottom=False, left=False, labelbottom=False, labelleft=False)


def stream_title(target: dict, notes: Notes, data: pd.DataFrame, order: str) -> str:
    """Data set and kind of stream, marked: `CIFAR-100‡, disjoint tasks`."""
    datasets = data.loc[data["order"] == order, "dataset"]
    dataset = (datasets if len(datasets) else data["dataset"]).iloc[0]  # an order of which nothing was run yet
    return f"{notes.mark(named(target, dataset), dataset)}, {named(target, order)}"
