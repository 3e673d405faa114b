"""Measures a learner's uncertainty on its current task during training, and how well it reveals task changes."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from clpapers.metrics.factors import flat

MEASURE = {"needs": ["grid"]}
METRICS = {
    "mutual_information": {"bounds": (0, None), "unit": "nats", "over": "epochs"},
    "jump": {"bounds": (0, None), "over": "epochs"},
    "threshold_from": {},
    "threshold_below": {},
}


def jumps(values: ArrayLike, starts: Sequence[int]) -> np.ndarray:
    """Ratio of each value to the running mean of the values before it: float [T], NaN for the first.

    The mean restarts at each of `starts`; the value there is still divided by the mean before it.

    values: float [T], none negative. starts: ascending indices of detected task changes.
    """
    values = np.asarray(values, float)
    ratios = np.full(len(values), np.nan)
    for start, stop in zip([0, *starts], [*starts, len(values) - 1]):
        before = np.arange(start, stop)
        means = np.cumsum(values[start:stop]) / np.arange(1, len(before) + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios[before + 1] = values[before + 1] / means
    return ratios


def thresholds(ratios: np.ndarray, starts: Sequence[int]) -> tuple[float, float]:
    """The range of thresholds, from the first up to below the second, that detect every start and nothing else.

    A detector announces a change where the jump exceeds its threshold, and then restarts its mean; until it errs, it
    sees the jumps of `jumps`. So it never errs if its threshold is at least the largest jump inside a task (0 if none),
    returned first, and below the smallest jump at a start, returned second. Unless the first is below the second, every
    threshold errs.
    """
    inside = np.setdiff1d(np.arange(1, len(ratios)), starts)
    return float(np.max(ratios[inside], initial=0)), float(np.min(ratios[list(starts)], initial=np.inf))


def measure(target: dict, inputs: Iterable[tuple[dict, str, dict]]) -> pd.DataFrame:
    """Measure every seed of every run (`desiderata`, section 6.4.1 and Figure 8).

    inputs: (factors, cell hash, parsed run result), one a result file; each seed has `learner.trace` with
        `mutual_information` (nats on the current task before every epoch) and `tasks` (the first epoch of each).

    Returns columns: the factors, `cell`, `seed`, `metric`, `time` (epochs before; NaN for scalars), `value`. The
    metrics are `mutual_information`; `jump` (see `jumps`, every task's start detected); `task_start`, 1 at each; and
    `threshold_from` and `threshold_below` (see `thresholds`).
    """
    rows = []
    for factors, cell, result in inputs:
        for run in result["seeds"]:
            key = {**flat(factors), "cell": cell, "seed": run["seed"]}
            values, (_, *starts) = (run["learner"]["trace"][part] for part in ("mutual_information", "tasks"))
            ratios = jumps(values, starts)
            for metric, curve in (("mutual_information", values), ("jump", ratios)):
                rows += [{**key, "metric": metric, "time": t, "value": value} for t, value in enumerate(curve)]
            rows += [{**key, "metric": "task_start", "time": t, "value": 1.0} for t in [0, *starts]]
            for metric, value in zip(("threshold_from", "threshold_below"), thresholds(ratios, starts)):
                rows.append({**key, "metric": metric, "time": np.nan, "value": value})
    return pd.DataFrame(rows)
