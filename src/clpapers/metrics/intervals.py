"""Student-t intervals over seeds, paired comparisons, and differences of two summarised means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit  # importing scipy.stats would take a second

CONFIDENCE = 0.95


def critical(degrees: ArrayLike) -> np.ndarray:
    """Two-sided 95 % critical value of Student's t; NaN for degrees of freedom below or at zero."""
    return stdtrit(degrees, (1 + CONFIDENCE) / 2)


def mean_interval(values: ArrayLike, axis: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """Mean and half-width t_{0.975, n−1}·s/√n of its 95 % interval along an axis (ddof 1; n = 1: NaN)."""
    values = np.asarray(values, float)
    n = values.shape[axis]
    mean = values.mean(axis=axis)
    if n < 2:
        return mean, np.full_like(mean, np.nan)
    return mean, critical(n - 1) * values.std(axis=axis, ddof=1) / np.sqrt(n)


def summarise(data: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean, spread and number of the column `value` in each group, groups in order of appearance.

    Returns one row a group with the columns `by`, `mean`, `sd` (standard deviation, ddof 1), `se` (standard error
    of the mean), `half_width` (of the 95 % t interval) and `n`. The three spreads are NaN where n = 1 or a value is ∞.
    Missing values do not count.
    """
    groups = data.dropna(subset="value").groupby(list(by), sort=False)["value"]
    summary = groups.agg(mean="mean", sd="std", n="size").reset_index()
    summary["se"] = summary["sd"] / np.sqrt(summary["n"])
    summary["half_width"] = critical(summary["n"] - 1) * summary["se"]
    return summary[[*by, "mean", "sd", "se", "half_width", "n"]]


class Difference(NamedTuple):
    """A difference of two means and its 95 % interval."""

    difference: float
    low: float
    high: float


def welch_from_summary(mean1: float, half1: float, n1: int, mean2: float, half2: float, n2: int) -> Difference:
    """mean1 − mean2 with Welch's 95 % interval, from means, 95 % t half-widths and numbers of runs.

    The interval is NaN if a side has one run, and has no width if both spreads are zero.
    """
    squared1, squared2 = ((half / critical(n - 1)) ** 2 for half, n in ((half1, n1), (half2, n2)))
    variance = squared1 + squared2
    difference = mean1 - mean2
    if variance == 0:
        return Difference(difference, difference, difference)
    degrees = variance**2 / (squared1**2 / max(n1 - 1, 1) + squared2**2 / max(n2 - 1, 1))
    half = float(critical(degrees) * np.sqrt(variance))
    return Difference(difference, difference - half, difference + half)


class Paired(NamedTuple):
    """A paired comparison: mean difference, 95 % interval, two-sided p, Cohen's d_z and number of pairs."""

    difference: float
    low: float
    high: float
    p: float
    effect: float
    n: int


def paired(first: pd.Series, second: pd.Series) -> Paired:
    """Paired t-test of two methods on the same streams: first − second over their common seeds (the index).

    Seeds in which either diverged (∞) are left out. `effect` is Cohen's d_z, the mean difference over its standard
    deviation. NaN where undefined: with fewer than two common seeds, or with equal differences.
    """
    difference = (first - second).replace([np.inf, -np.inf], np.nan).dropna()
    if difference.empty:
        return Paired(np.nan, np.nan, np.nan, np.nan, np.nan, 0)
    n, mean, deviation = len(difference), float(difference.mean()), float(difference.std())
    half = float(mean_interval(difference)[1])
    effect = mean / deviation if deviation > 0 else np.nan
    p = float(2 * stdtr(n - 1, -abs(effect) * np.sqrt(n)))
    return Paired(mean, mean - half, mean + half, p, effect, n)


def holm(p: ArrayLike) -> np.ndarray:
    """Holm's adjusted p-values `[m]` of one family of tests (Holm 1979); NaN stays NaN and does not count."""
    p = np.asarray(p, float)
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    adjusted = np.full_like(p, np.nan)
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted
