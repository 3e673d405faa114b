"""Grades of a difference between our number and a printed one: how far apart may they be, given the runs?

Pure functions on arrays; `comparison` says which estimate and which margins a number has.
"""

from typing import NamedTuple

import numpy as np

from clpapers.evidence.verdict_names import DIFFERS, NEAR, OPEN, SAME
from clpapers.metrics.intervals import EQUIVALENCE, Estimate, Numbers

MARGINS = (
    "2 and 5 points for percentages, at most a tenth and a fifth of the printed value. "
    "For F, LCA, AUC, Ω and correlations they are 0.02 and 0.05; for counts, steps, nats, MB and times 5 and 10 %"
)
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
