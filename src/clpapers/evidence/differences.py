"""Draws what `comparison` judged: ours against the printed numbers, and a paper's differences."""

import contextlib
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from clpapers.catalogue import metrics as catalogue
from clpapers.evidence.pooled import each_once
from clpapers.evidence.verdict_names import COLOURS, DIFFERS, EXACT, GRADES, NEAR, OPEN, SAME, TRAINED
from clpapers.targets.style import STYLE, WIDTH

LOOKS = {grade: (COLOURS[grade], marker) for grade, marker in ((SAME, "o"), (NEAR, "^"), (OPEN, "D"), (DIFFERS, "s"))}
COLUMNS = (
    *("place", "named", "row", "column", "metric", "kind", "runs", "verdict"),
    *(
        "graded_against",
        "against_se",
        "ours",
        "difference",
        "difference_low",
        "difference_high",
        "margin_same",
        "margin_near",
    ),
)
BEYOND = 3  # second margins that a panel shows on either side; what lies further out is an arrow
ROW, HEAD, FOOT, TOP = 0.11, 0.2, 0.36, 0.3  # inches: a line, a panel's title, its axis, the legend
SIDE, LABELS = 3.55, 1.5  # inches, at least: one of the two columns of panels, and of it the names of lines
SMALL = 5.5  # points
HINTED = 1.08  # how much wider letters are that are fitted to pixels, at most


@contextlib.contextmanager
def square(ends: tuple[float, float], **labels: str) -> Iterator[tuple[Figure, Axes]]:
    """A figure of equal axes and their diagonal."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH * 0.6, WIDTH * 0.55), layout="constrained")
        axes = figure.subplots()
        axes.plot(ends, ends, color="0.7", linewidth=0.6, zorder=0)
        yield figure, axes
        axes.set(xlim=ends, ylim=ends, aspect="equal", **labels)
        axes.legend(loc="lower right")


def scatter(compared: pd.DataFrame) -> Figure:
    """Ours against printed numbers in percent, by grade; only trainings, each comparison once.

    compared: rows of `comparison.compare`, of any targets; at least `COLUMNS`.
    """
    percent = [name for name, metric in catalogue.metrics().items() if metric.unit == "%"]
    compared = each_once(compared[(compared["kind"] == TRAINED) & compared["metric"].isin(percent)])
    with square((0, 100), xlabel="printed, %", ylabel="ours, %") as (figure, axes):
        for grade, (colour, marker) in LOOKS.items():
            each = compared[compared["verdict"] == grade]
            axes.scatter(
                each["graded_against"],
                each["ours"],
                s=8,
                c=colour,
                marker=marker,
                alpha=0.6,
                linewidths=0,
                clip_on=False,
                label=f"{grade} ({len(each)})",
            )
    return figure


@mpl.rc_context(STYLE)
def forest(compared: pd.DataFrame) -> Figure:
    """Differences of one paper with their 95 % intervals, a panel a table and metric, a line a number.

    Bands are the margins. A guess or a calibrated number says so; exact ones are left out; a comparison of the same
    runs with the same number stands once. Differences are in percent of the printed number where the margins are.

    compared: rows of `comparison.compare`, with the columns `place` (the target's name) and `named` (the metric's); at
        least `COLUMNS`.
    """
    drawn = compared[compared["verdict"].isin(GRADES) & compared["difference"].notna() & (compared["kind"] != EXACT)]
    drawn = each_once(drawn).reset_index(drop=True)
    groups = [(names, group) for names, group in drawn.groupby(["place", "named"], sort=False)]
    heights = [HEAD + FOOT + ROW * len(group) for _, group in groups]
    columns = _halves(heights)
    height = TOP + (max(sum(heights[i] for i in column) for column in columns) or 0.3)
    labels = LABELS + max(
        [0.0, *(_length(name, SMALL) - LABELS + 0.1 for _, group in groups for name in _labels(group))]
    )
    titles = [_length(f"{place}: {metric}", STYLE["axes.titlesize"]) for (place, metric), _ in groups]
    width = max([SIDE - LABELS + labels, *(title + 0.2 for title in titles)])  # of a column: no name is cut
    figure = Figure(figsize=(2 * width, height))
    if not groups:
        figure.text(0.5, 0.1, "no number is compared", ha="center")
    for side, column in enumerate(columns):
        top = height - TOP
        for i in column:
            (place, metric), group = groups[i]
            rows = ROW * len(group)
            left, wide = (side * width + labels) / (2 * width), (width - labels - 0.15) / (2 * width)
            axes = figure.add_axes((left, (top - HEAD - rows) / height, wide, rows / height))
            _panel(axes, group)
            axes.set_title(f"{place}: {metric}", loc="right", pad=3)
            top -= heights[i]
    handles = [
        mpl.lines.Line2D([], [], color=colour, marker=marker, markersize=3, linewidth=0.7, label=grade)
        for grade, (colour, marker) in LOOKS.items()
    ]
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), borderaxespad=0.2)
    return figure


def _halves(heights: list[float]) -> list[list[int]]:
    """The panels of the left and of the right column, in order, so that the longer one is as short as can be."""
    cuts = range(len(heights) + 1)
    best = min(cuts, key=lambda cut: max(sum(heights[:cut]), sum(heights[cut:])))
    return [list(range(best)), list(range(best, len(heights)))]


def _panel(axes: Axes, group: pd.DataFrame) -> None:
    metric = catalogue.metrics().get(group["metric"].iloc[0])
    relative = metric is not None and metric.margins is None
    scale = (
        (100 / group["graded_against"].abs().replace(0, np.nan)).fillna(1.0)
        if relative
        else pd.Series(1.0, group.index)
    )
    numbers = ["difference", "difference_low", "difference_high", "margin_same", "margin_near"]
    values = group[numbers].mul(scale, axis=0)
    reach = BEYOND * values["margin_near"].max() or 1.0
    places = np.arange(len(group))[::-1]
    for place, (_, line), (_, value) in zip(places, group.iterrows(), values.iterrows()):
        for margin, grey in (("margin_near", "0.94"), ("margin_same", "0.86")):
            axes.barh(place, 2 * value[margin], 1, -value[margin], color=grey, linewidth=0, zorder=0)
        colour, marker = LOOKS[line["verdict"]]
        low, high = value[["difference_low", "difference_high"]].astype(float)
        looks: dict[str, Any] = {"color": colour, "markersize": 2.4, "markeredgewidth": 0, "clip_on": False}
        axes.plot(
            np.clip([low, high], -reach, reach), [place, place], color=colour, linewidth=0.7, solid_capstyle="butt"
        )
        inside = abs(value["difference"]) <= reach
        if inside:
            axes.plot(value["difference"], place, marker=marker, **looks)
        for end, sign in ((-reach, "<"), (reach, ">")):  # an interval or a number that goes on beyond
            if max(np.sign(end) * x for x in (low, high, value["difference"]) if not np.isnan(x)) > reach:
                axes.plot(end, place, marker=sign, **looks)
    axes.axvline(0, color="0.3", linewidth=0.5, zorder=1)
    axes.set(xlim=(-reach, reach), ylim=(-0.5, len(group) - 0.5))
    axes.set_yticks(places, _labels(group), size=SMALL)
    axes.tick_params(axis="y", length=0, pad=2)
    axes.tick_params(axis="x", labelsize=SMALL, pad=1.5)
    axes.spines["left"].set_visible(False)
    unit = "% of the printed" if relative else (metric.unit.replace("%", "points") if metric else "")
    axes.set_xlabel(", ".join(filter(None, ["ours − printed", unit])), size=SMALL, labelpad=1)


def _labels(group: pd.DataFrame) -> list[str]:
    """A line's row and column, the latter if there are several, and its kind unless it is of a training."""
    several = group["column"].nunique() > 1
    names = group["row"] + (", " + group["column"] if several else "")
    kinds = [f" ({kind})" if kind != TRAINED else "" for kind in group["kind"]]
    return [f"{name}{kind}" for name, kind in zip(names, kinds)]


def _length(text: str, points: float) -> float:
    """The length of a text, in inches, where letters are fitted to pixels."""
    return HINTED * TextPath((0, 0), text, size=points).get_extents().width / 72 if text.strip() else 0.0
