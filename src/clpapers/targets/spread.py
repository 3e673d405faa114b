"""How figures show the spread of runs: each of a few as a dot, an interval or a band of many."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from clpapers.catalogue import metrics as catalogue
from clpapers.targets.notes import BANDS_FROM

DOTS: dict[str, Any] = {"s": 5, "alpha": 0.6, "linewidths": 0, "zorder": 3}


def few(summary: pd.DataFrame) -> bool:
    """Whether means (`summarise`) have so few runs that each run is shown, as an interval would fill the panel."""
    return not summary["n"].max() >= BANDS_FROM


def dots(panel: Axes, x: ArrayLike, y: ArrayLike, colour: str, **options: Any) -> None:
    """A small dot for each run."""
    panel.scatter(x, y, color=colour, **(DOTS | options))


def ends(metric: str, mean: ArrayLike, half: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The ends of mean ± half, no lower and no higher than the metric can be; the mean itself where half is NaN."""
    centre, width = np.asarray(mean, float), np.nan_to_num(np.asarray(half, float))
    low, high = (np.clip(centre + sign * width, *catalogue.metrics()[metric].bounds) for sign in (-1, 1))
    return np.minimum(low, centre), np.maximum(high, centre)


def whiskers(metric: str, mean: ArrayLike, half: ArrayLike) -> np.ndarray:
    """The same as `[2, n]` distances below and above the mean, as `errorbar` takes them."""
    low, high = ends(metric, mean, half)
    return np.stack([mean - low, high - mean]).reshape(2, -1)
