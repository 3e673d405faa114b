"""Student-t intervals over seeds, paired comparisons, and differences of two summarised means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit  # importing scipy.stats would take a second

if TYPE_CHECKING:  # plans are ranked without it
    import pandas as pd

CONFIDENCE = 0.95
NIL = 1e-9  # what rounding leaves of a spread of equal values
Numbers = float | np.ndarray  # a number, or an array of one shape with the others of a call
EQUIVALENCE = 0.9  # of the interval that lies within a margin: two one-sided tests at 5 % (Schuirmann 1987)


def critical(degrees: ArrayLike, confidence: float = CONFIDENCE) -> np.ndarray:
    """Two-sided critical value of Student's t, by default at 95 %; NaN for degrees of freedom below or at zero."""
    return stdtrit(degrees, (1 + confidence) / 2)


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


class Estimate(NamedTuple):
    """An effect with its standard error and Student-t degrees of freedom: numbers, or arrays of one shape.

    n: the number of runs (the smaller side's), where the caller asks for it.
    """

    effect: Numbers
    se: Numbers
    degrees: Numbers
    n: Numbers = 0

    def interval(self, confidence: float = CONFIDENCE) -> tuple[np.ndarray, np.ndarray]:
        """The two ends of its interval, which has no width if the standard error is zero."""
        half = np.where(np.equal(self.se, 0), 0.0, critical(self.degrees, confidence) * self.se)
        return self.effect - half, self.effect + half

    def below(self, bound: float) -> float:
        """One-sided p of the hypothesis that the effect is at least `bound`: small if it is clearly below."""
        if np.isinf(bound):
            return 0.0 if bound > 0 else 1.0
        if self.se == 0:
            return 0.0 if self.effect < bound else 1.0
        return float(stdtr(self.degrees, (self.effect - bound) / self.se))

    def above(self, bound: float) -> float:
        """The same of the hypothesis that it is at most `bound`."""
        return self._replace(effect=-self.effect).below(-bound)


def total(effect: Numbers, parts: Sequence[tuple[Numbers, Numbers]]) -> Estimate:
    """An effect whose error is the sum of independent ones, each `(standard error, degrees of freedom)`.

    The degrees of freedom are Welch's (1947) and Satterthwaite's (1946); NaN if all errors are zero.
    """
    variances = [np.square(se) for se, _ in parts]
    variance = sum(variances)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = [np.where(v > 0, v**2 / degrees, v) for v, (_, degrees) in zip(variances, parts)]  # NaN stays NaN
        return Estimate(effect, np.sqrt(variance), variance**2 / sum(spread))


def welch(mean1: Numbers, se1: Numbers, n1: Numbers, mean2: Numbers, se2: Numbers, n2: Numbers) -> Estimate:
    """mean1 − mean2 of two independent samples, from their means, standard errors and sizes (Welch 1947)."""
    found = total(np.subtract(mean1, mean2), [(se1, np.subtract(n1, 1)), (se2, np.subtract(n2, 1))])
    return found._replace(n=np.minimum(n1, n2))


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


def holm_shares(p: ArrayLike, level: float) -> np.ndarray:
    """By how many tests `[m]` Holm's method divides `level` for each p: p ≤ level / share if and only if it rejects.

    From the first p that it does not reject on, it divides no further. So an interval of confidence 1 − level / share
    leaves the tested value out exactly where the corrected test rejects it. NaN has a share of 1.
    """
    p = np.asarray(p, float)
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    shares = np.ones_like(p)
    left = np.arange(len(order), 0, -1)
    kept = np.flatnonzero(p[order] * left > level)
    shares[order] = left if kept.size == 0 else np.maximum(left, left[kept[0]])
    return shares
