"""Measures a learner's uncertainty on its current task along training, and what a detector makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from clpapers.metrics.factors import flat

MEASURE = {"needs": ["grid"]}
METRICS = {
    "mutual_information": {"unit": "nats", "over": "epochs"},
    "jump": {"over": "epochs"},
    "threshold_from": {},
    "threshold_below": {},
}


def jumps(values: ArrayLike, starts: Sequence[int]) -> np.ndarray:
    """Each value over the running mean of those before it, float [T]; NaN for the first.

    The mean runs from the last detection, so that it begins anew at each of `starts`; the value there is itself still
    held against the mean before it.

    values: float [T], none negative. starts: ascending indices into them.
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
    """From which threshold, and up to below which, a detector finds every start and nothing else.

    A detector that tells a change where the jump is above its threshold, and then begins its mean anew, meets the jumps
    of `jumps` as long as all that it told was right. So it is right throughout just where its threshold is at least the
    largest jump inside a task, the first number here (0 where there is none), and below the smallest at a start, the
    second. Where the first is not below the second there is no such threshold.
    """
    inside = np.setdiff1d(np.arange(1, len(ratios)), starts)
    return float(np.max(ratios[inside], initial=0)), float(np.min(ratios[list(starts)], initial=np.inf))


def measure(target: dict, inputs: Iterable[tuple[dict, str, dict]]) -> pd.DataFrame:
    """Measure every seed of every run (`desiderata`, section 6.4.1 and Figure 8).

    inputs: (factors, cell hash, parsed run result), one a result file; of each seed `learner.trace`, which holds
        `mutual_information`, nats on the current task before every epoch, and `tasks`, the epoch that each begins with.

    Returns columns: the factors, `cell`, `seed`, `metric`, `time` (epochs before; NaN for scalars), `value`. The
    metrics are `mutual_information`; `jump`, see `jumps`, each task's start being detected; `task_start`, 1 at each;
    and `threshold_from` and `threshold_below`, see `thresholds`.
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
