"""The style that all figures share: print size, fonts, marks and legends."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from clpapers.catalogue.names import named
from clpapers.metrics.learning import CHANCE_PREFIX
from clpapers.targets.footnotes import REDUCED, STANDIN, Notes
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
KEY, CHARACTER, LINE = 0.45, 0.05, 0.13  # inches, about: an entry's sign in a legend, a character, a line of text
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


def legend_above(figure: Figure, handles: list, labels: list, **options: Any) -> None:
    """One legend for all panels, in the fewest rows of at most six that fit, all equally long.

    A label that is wider than the figure goes on below, and the figure grows by that.
    """
    room = int((figure.get_figwidth() - KEY) / CHARACTER * 0.95)
    texts = [textwrap.fill(str(label), room) for label in labels]
    lines = [line for text in texts for line in text.split("\n")]
    widest = KEY + CHARACTER * max(map(len, lines))
    rows = -(-len(texts) // min(6, max(1, int(figure.get_figwidth() / widest))))
    figure.set_figheight(figure.get_figheight() + LINE * (len(lines) - len(texts)))
    figure.legend(handles, texts, loc="outside upper center", ncols=-(-len(texts) // rows), **options)


def fit(figure: Figure) -> None:
    """Break titles and labels that are longer than their place into lines: no name is cut, none covers another.

    A panel's place is its equal share of the figure, and at least the panel. The figure grows by the lines. Formulas
    stay on one line, and so do labels of y that lie beside their panel.
    """
    for _ in range(2):  # labels of y that take more room move the panels
        figure.draw_without_rendering()
        page, added = figure.bbox, 0
        for axes in figure.axes:
            if (spec := axes.get_subplotspec()) is None:
                continue
            rows, columns, first, _ = spec.get_geometry()
            box = axes.get_window_extent()
            across = max(box.width, _room(box.x0 + box.width / 2, page.width / columns, first % columns))
            longer = [_break(text, across) for text in (axes.title, axes.xaxis.label)]
            added = max(added, rows * sum(longer))
            if axes.yaxis.label.get_rotation():
                along = _room(box.y0 + box.height / 2, page.height / rows, rows - 1 - first // columns)
                _break(axes.yaxis.label, max(box.height, along))
        for text in figure.texts:
            _break(text, page.height if text.get_rotation() else page.width)
        figure.set_figheight(figure.get_figheight() + LINE * added)


def _room(middle: float, share: float, number: int) -> float:
    """The length of a text around `middle` that stays within the place of this number, each `share` pixels long."""
    return 2 * min(middle - number * share, (number + 1) * share - middle)


def _break(text: Text, room: float) -> int:
    """Break a text into lines no longer than `room` pixels along it; returns how many there are more."""
    box, shown = text.get_window_extent(), text.get_text()
    share = 0.95 * room / max(box.width, box.height, 1)  # a text is longer than high
    if share >= 1 or "$" in shown:
        return 0
    longest, before = max(map(len, shown.split("\n"))), shown.count("\n")
    text.set_text(textwrap.fill(shown, max(1, int(longest * share))))
    return text.get_text().count("\n") - before


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
