"""Measures learning: one tidy row a cell, seed, metric and time, from the result files of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from clpapers.metrics import accuracy, forgetting
from clpapers.metrics.class_frequency import chunk_times
from clpapers.metrics.factors import flat

Curve = tuple[np.ndarray, np.ndarray]  # times as fractions of the stream, values


def _final_accuracy(run: dict) -> float:
    return 100 * accuracy.final_accuracy(run["test"]["correct"], run["test"]["total"])


def _per_class_accuracy(run: dict) -> float:
    return 100 * accuracy.per_class_accuracy(run["test"]["correct"], run["test"]["total"])


def _online_accuracy(run: dict) -> float:
    counts = run["online"]["correct"]
    return np.nan if counts is None else 100 * accuracy.online_accuracy(counts, run["probes"]["time"][-1])


def _probes(run: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    position, time = np.array(run["probes"]["position"]), np.array(run["probes"]["time"])
    return accuracy.unpack(run["probes"]["correct"], position, time), position, time


def _average_information_retention(run: dict) -> float:
    return 100 * accuracy.average_information_retention(*_probes(run))


def _forgetting(function: Callable) -> Callable[[dict], np.ndarray]:
    def measured(run: dict) -> np.ndarray:
        correct, position, time = _probes(run)
        return function(correct, accuracy.seen(position, time))

    return measured


def _information_retention(run: dict, points: int | None) -> Curve:
    correct, position, time = _probes(run)
    return time / time[-1], 100 * accuracy.information_retention(correct, position, time)


def _stream_loss(run: dict, points: int | None) -> Curve:
    loss = np.array(run["online"]["loss"] or [], float)
    bins = min(points or len(loss), len(loss))
    which = np.arange(len(loss)) * bins // max(len(loss), 1)
    return chunk_times(bins), np.bincount(which, loss, bins) / np.bincount(which, minlength=bins)


SCALARS: dict[str, Callable[[dict], float]] = {
    "final_accuracy": _final_accuracy,  # %
    "per_class_accuracy": _per_class_accuracy,  # %
    "average_information_retention": _average_information_retention,  # %
    "online_accuracy": _online_accuracy,  # %, NaN where the learner does not answer online
    "forgetting_events": lambda run: _forgetting(forgetting.forgetting_events)(run).mean(),  # events a probe
    "never_learnt": lambda run: 100 * _forgetting(forgetting.never_learnt)(run).mean(),  # % of the probes
    "unforgettable": lambda run: 100 * _forgetting(forgetting.unforgettable_fraction)(run),  # % of the probes
}
CURVES: dict[str, Callable[[dict, int | None], Curve]] = {
    "information_retention": _information_retention,  # % at each evaluation point
    "stream_loss": _stream_loss,  # mean cross entropy of the stream batches, nats
}


def _masked_chance(run: dict) -> float:
    return 100 * run["test"]["chance"]


def _open_chance(run: dict) -> float:
    return 100 / len(run["test"]["total"])


CHANCE_PREFIX = "chance_"
CHANCES: dict[str, Callable[[dict], float]] = {  # expected % of a uniform guess among the classes that compete
    "final_accuracy": _masked_chance,
    "per_class_accuracy": _masked_chance,
    "average_information_retention": _open_chance,  # probes and stream batches are answered without a mask
    "online_accuracy": _open_chance,
}


def measure(target: dict, inputs: Iterable[tuple[dict, str, dict]]) -> pd.DataFrame:
    """Measure every seed of every run.

    Parameters
    ----------
    target: keys `metrics` (names of `SCALARS` and `CURVES`) and, if wanted, `points` (a loss curve is
        averaged into at most this many near-equal bins of steps; without it every step is a row).
    inputs: (factors, cell hash, parsed run result), one a result file.

    Returns
    -------
    Columns: the factors, `cell`, `seed`, `metric`, `time` (fraction of the stream; NaN for scalars), `value`. For
    each accuracy there is also the metric `chance_<accuracy>`, what a uniform guess is expected to reach (rule 2 of
    `rules`).
    """
    rows = []
    for factors, cell, result in inputs:
        for run in result["seeds"]:
            key = {**flat(factors), "cell": cell, "seed": run["seed"]}
            for metric in target["metrics"]:
                if metric in SCALARS:
                    rows.append({**key, "metric": metric, "time": np.nan, "value": float(SCALARS[metric](run))})
                    if metric in CHANCES:
                        guess = float(CHANCES[metric](run))
                        rows.append({**key, "metric": CHANCE_PREFIX + metric, "time": np.nan, "value": guess})
                else:
                    times, values = CURVES[metric](run, target.get("points"))
                    rows += [
                        {**key, "metric": metric, "time": float(time), "value": float(value)}
                        for time, value in zip(times, values)
                    ]
    return pd.DataFrame(rows)
