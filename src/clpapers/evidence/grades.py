"""Grades of a difference between our number and a printed one: how far apart may they be, given the runs?

Pure functions on arrays; `comparison` says which margins a number has.
"""

from typing import NamedTuple

import numpy as np

from clpapers.evidence.verdict_names import DIFFERS, NEAR, OPEN, SAME
from clpapers.metrics.intervals import EQUIVALENCE, Estimate, Numbers, welch

UNLIKE = 2  # times one side's runs may spread as the other's, where only that one tells its spread
MOST_DEGREES = 1.25  # of freedom, for each that the side with fewer runs has
WELCH, OWN_SPREAD, ONE_MORE, ALIKE = "Welch", "own spread", "one more run", "no interval"
RULES = {
    WELCH: "two runs or more here, and a printed spread: Welch’s t interval of the difference of two means, with at "
    f"most {MOST_DEGREES} times the degrees of freedom of the side with fewer runs",
    OWN_SPREAD: f"two runs or more here, and no printed spread: the paper’s runs are taken to spread {UNLIKE} times as "
    "far as ours; where it does not say how many there are, they are taken as one",
    ONE_MORE: "one run here, and a printed spread: where one more run of the paper’s own would lie, if it spread "
    f"{UNLIKE} times as far",
    ALIKE: "∞ (diverged) on either side: no interval; as printed or not",
}
MEANINGS = {
    SAME: "the runs exclude any difference beyond the first margin",
    NEAR: "they exclude any beyond the second margin, and no difference is one of them",
    OPEN: "zero lies in the interval, and so does a difference beyond the second margin",
    DIFFERS: "zero lies outside, and so may a difference beyond the first margin",
}


class Judged(NamedTuple):
    """A difference with the ends of its 95 % interval, the distance that the runs exclude, and its grade; arrays."""

    difference: Numbers
    low: Numbers
    high: Numbers
    distance: Numbers
    grade: Numbers


def estimated(
    ours: Numbers, se: Numbers, n: int, against: Numbers, against_se: Numbers, runs: float
) -> tuple[Estimate, str]:
    """Our mean of `n` runs minus the paper's of `runs` runs (0 if unknown), and the name of the rule that it follows.

    se, against_se: the standard errors of both means, NaN where there is none: of one run, or of an unprinted spread.
    Welch's degrees of freedom are too many where a side has few runs: with two he calls up to 12 % of equal means
    different (`benchmarks/bench_verdicts.py`). The fewest that can be right are the smaller side's (Hsu 1938).
    """
    difference = np.subtract(ours, against)
    if np.isnan(against_se).all():
        return Estimate(difference, se * np.sqrt(1 + UNLIKE**2 * n / max(runs, 1)), n - 1), OWN_SPREAD
    if n == 1:  # s²·(UNLIKE² + 1/n), of a standard error s/√n
        return Estimate(difference, against_se * np.sqrt(1 + UNLIKE**2 * runs), runs - 1), ONE_MORE
    both = welch(ours, se, n, against, against_se, runs)
    return both._replace(degrees=np.minimum(both.degrees, MOST_DEGREES * (min(n, runs) - 1))), WELCH


def judge(
    estimate: Estimate,
    margins: tuple[Numbers, Numbers],
    below: Numbers = 0.0,
    above: Numbers = 0.0,
) -> Judged:
    """Grade differences, ours minus printed.

    The distance is the smallest m for which the 90 % interval lies inside ±m: both one-sided tests at 5 % then exclude
    a difference of m or more. `same`: within the first margin; or else `differs`: the 95 % interval leaves zero out; or
    else `near`: within the second margin; or else `open`.

    margins: the first and the second one. below, above: how much less or more the printed number may stand for.
    """
    ends, narrower = estimate.interval(), estimate.interval(EQUIVALENCE)
    (low, high), (inner_low, inner_high) = ((left - above, right + below) for left, right in (ends, narrower))
    distance = np.maximum(np.abs(inner_low), np.abs(inner_high))
    first, second = margins
    found = [distance <= first, excludes_zero(low, high), distance <= second]
    return Judged(estimate.effect, low, high, distance, np.select(found, [SAME, DIFFERS, NEAR], OPEN))


def excludes_zero(low: Numbers, high: Numbers) -> np.ndarray:
    """Whether an interval leaves zero out; of a `same` number this is a difference that is real and does not matter."""
    return np.greater(low, 0) | np.less(high, 0)


def nearest(low: Numbers, high: Numbers) -> np.ndarray:
    """The least difference, without its sign, that an interval leaves; 0 if it holds zero."""
    return np.where(excludes_zero(low, high), np.minimum(np.abs(low), np.abs(high)), 0.0)
