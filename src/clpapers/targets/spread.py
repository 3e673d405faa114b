"""How figures show the spread of runs: each of a few as a dot, an interval or a band of many."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from clpapers.catalogue import metrics as catalogue
from clpapers.targets.footnotes import BANDS_FROM
from clpapers.targets.palette import MethodStyle

DOTS: dict[str, Any] = {"s": 5, "alpha": 0.6, "linewidths": 0, "zorder": 3}
WHISKERS: dict[str, Any] = {"capsize": 1.5, "elinewidth": 0.8}
MARKED = 10  # points of a line, about


def few(summary: pd.DataFrame) -> bool:
    """Whether means (`summarise`) have so few runs that each run is shown, as an interval would fill the panel."""
    return not summary["n"].max() >= BANDS_FROM


def dots(panel: Axes, x: ArrayLike, y: ArrayLike, colour: str, **options: Any) -> None:
    """A small dot for each run."""
    panel.scatter(x, y, color=colour, **(DOTS | options))


def stretches(points: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The parts of a line that may be joined: means of equally many runs, or of so many that each has its interval."""
    alike = points["n"].clip(upper=BANDS_FROM)
    for _, part in points.groupby((alike != alike.shift()).cumsum(), sort=False):
        yield part


def draw_line(
    panel: Axes,
    metric: str,
    points: pd.DataFrame,
    runs: pd.DataFrame,
    x: str,
    style: MethodStyle,
    label: str,
    *,
    spread: str = "half_width",
    bands: bool = True,
) -> None:
    """Draw a method's means in order of x, with the dots of few runs and the intervals of more.

    A line joins no mean of one run to one of six (`stretches`). Intervals are bands between joined points, elsewhere
    or without `bands` whiskers; they end where the metric can be no lower or higher.

    points: means (`summarise`). runs: their values, one a line. x: a column of both. spread: a column of `points`.
    """
    parts, every = list(stretches(points)), max(1, len(points) // MARKED)
    at, mean, marked = list[float](), list[float](), list[int]()
    for part in parts:
        marked += range(len(at), len(at) + len(part), every)
        at, mean = [*at, *part[x], np.nan], [*mean, *part["mean"], np.nan]  # a gap before the next
    looks: dict[str, Any] = {"color": style.colour, "linestyle": style.line, "marker": style.marker}
    looks |= {"markersize": 2.5, "fillstyle": style.fill}
    panel.plot(at[:-1], mean[:-1], **looks, markevery=marked, label=label)
    for part in parts:
        if few(part):
            own = runs[runs[x].isin(part[x])]
            dots(panel, own[x], own["value"], style.colour)
        elif bands and len(part) > 1:
            edges = ends(metric, part["mean"], part[spread])
            panel.fill_between(part[x], *edges, color=style.colour, alpha=0.15, linewidth=0)
        else:
            sizes = whiskers(metric, part["mean"], part[spread])
            panel.errorbar(part[x], part["mean"], sizes, color=style.colour, linestyle="", **WHISKERS)


def ends(metric: str, mean: ArrayLike, half: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The ends of mean ± half, no lower and no higher than the metric can be; the mean itself where half is NaN."""
    centre, width = np.asarray(mean, float), np.nan_to_num(np.asarray(half, float))
    low, high = (np.clip(centre + sign * width, *catalogue.metrics()[metric].bounds) for sign in (-1, 1))
    return np.minimum(low, centre), np.maximum(high, centre)


def whiskers(metric: str, mean: ArrayLike, half: ArrayLike) -> np.ndarray:
    """The same as `[2, n]` distances below and above the mean, as `errorbar` takes them."""
    low, high = ends(metric, mean, half)
    return np.stack([mean - low, high - mean]).reshape(2, -1)
