"""Measures learning item by item: accuracy beside an ideal learner's, memory, and detection of unseen classes."""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from clpapers.metrics.accuracy import final_accuracy
from clpapers.metrics.cost import MB
from clpapers.metrics.factors import flat
from clpapers.metrics.learning import CHANCE_PREFIX, OUT_OF_MEMORY
from clpapers.streams.chunks import CLASS_CHUNKS

MEASURE = {"named_by": "metrics", "needs": ["grid", "metrics"], "reads": ["ideal"], "cells": ["evaluation.every"]}
METRICS = {
    "omega_all": {
        "bounds": (0, None),
        "judged": "fraction",
        "better": "larger",
        "competing": "all",
        "needs": ["ideal"],
    },
    "unknown_auroc": {"bounds": (0, 1), "better": "larger"},
    "accuracy_by_time": {"unit": "%", "better": "larger", "competing": "all", "over": "items"},
    "memory_by_time": {"bounds": (0, None), "unit": "MB", "better": "smaller", "over": "items", "sample": "none"},
}


def omega_all(learner: ArrayLike, offline: ArrayLike) -> float:
    """Ω_all (Hayes et al., eq. 1): the mean over testing events of a learner's accuracy divided by the offline one's.

    learner, offline: float [T], accuracies at the same testing events.

    Raises `ValueError` for unequal numbers of events, and where the offline learner's accuracy is not above zero.
    """
    learner, offline = np.asarray(learner, float), np.asarray(offline, float)
    if learner.shape != offline.shape:
        raise ValueError(f"{learner.size} testing events, {offline.size} of the ideal; test both at the same ones")
    if not (offline > 0).all():
        event = int(np.argmin(offline > 0))
        raise ValueError(
            f"the ideal's accuracy at testing event {event + 1} is {offline[event]:g}, by which Ω_all cannot divide; "
            "raise evaluation.every or test on more items"
        )
    return float(np.mean(learner / offline))


def accuracies(events: dict, only_seen: bool) -> np.ndarray:
    """The accuracy at each testing event: float [T] in [0, 1].

    events: the section of that name in a run's result; it has `correct` [T, K] of the `total` [K] test items a class,
        and `seen` [T, K], whether the stream had shown the class.
    only_seen: leave out the test items of classes not yet seen.
    """
    counted = np.array(events["seen"], bool) if only_seen else True
    return final_accuracy(np.multiply(events["correct"], counted), np.multiply(events["total"], counted))


def unknown_auroc(events: dict) -> float:
    """AUROC of telling test items of seen classes from others by confidence, averaged over events that have both."""
    areas = [area for area in events["unknown_auroc"] if area is not None]
    return float(np.mean(areas)) if areas else np.nan


# A curve's value at each event, from the accuracies [T] and the section `events`.
CURVES: dict[str, Callable[[np.ndarray, dict], np.ndarray]] = {
    "accuracy_by_time": lambda alpha, events: 100 * alpha,  # %
    "memory_by_time": lambda alpha, events: np.array([size["training"] for size in events["learner_bytes"]]) / MB,
}
CHANCES: dict[str, Callable[[dict], float]] = {  # chance level: a uniform guess among all classes
    "accuracy_by_time": lambda events: 100 / len(events["total"]),
    "unknown_auroc": lambda events: 0.5,
}


def measure(target: dict, inputs: Iterable[tuple[dict, str, dict]]) -> pd.DataFrame:
    """Measure every seed of every run (Hayes et al., section 2.2).

    If classes come one after the other, a testing event tests on the classes seen so far, else on all test data
    (section 2.1).

    target: keys `metrics` (of `METRICS`) and, for `omega_all`, `ideal`: the learner whose accuracy on the same data,
        order and seed is the divisor.
    inputs: (factors, cell hash, parsed run result), one a result file.

    Returns columns: the factors, `cell`, `seed`, `metric`, `time` (items seen, of curves; NaN for scalars), `value`. A
    run has `omega_all` and `unknown_auroc`, and at each event `accuracy_by_time` (%) and `memory_by_time` (footprint,
    MB of 10⁶ bytes). All but Ω_all and memory come with their chance level, `chance_<metric>`. A run that exceeded the
    memory has only `out_of_memory`, 1.

    A run has no `omega_all` where the ideal's run is missing or exceeded the memory.

    Raises `ValueError`, in one line, where Ω_all cannot divide by the ideal's accuracies.
    """
    runs, ideal, rows = [], {}, []
    for factors, cell, result in inputs:
        only_seen = result["cell"]["order"]["name"] in CLASS_CHUNKS
        for run in result["seeds"]:
            alpha = None if run.get(OUT_OF_MEMORY) else accuracies(run["events"], only_seen)
            runs.append((factors, cell, run, alpha))
            if factors["learner"] == target.get("ideal") and alpha is not None:
                ideal[_shared(factors, run)] = alpha
    for factors, cell, run, alpha in runs:
        key = {**flat(factors), "cell": cell, "seed": run["seed"]}
        if alpha is None:
            rows.append({**key, "metric": OUT_OF_MEMORY, "time": np.nan, "value": 1.0})
            continue
        events = run["events"]
        for metric in target["metrics"]:
            if metric in CURVES:
                rows += [
                    {**key, "metric": metric, "time": float(time), "value": float(value)}
                    for time, value in zip(events["time"], CURVES[metric](alpha, events), strict=True)
                ]
            elif metric == "unknown_auroc":
                rows.append({**key, "metric": metric, "time": np.nan, "value": unknown_auroc(events)})
            elif (shared := _shared(factors, run)) in ideal:
                try:
                    omega = omega_all(alpha, ideal[shared])
                except ValueError as error:
                    raise ValueError(f"{shared}: {error}") from None
                rows.append({**key, "metric": metric, "time": np.nan, "value": omega})
            if metric in CHANCES:
                guess = float(CHANCES[metric](events))
                rows.append({**key, "metric": CHANCE_PREFIX + metric, "time": np.nan, "value": guess})
    return pd.DataFrame(rows)


def _shared(factors: dict, run: dict) -> str:
    """The factors that a run shares with its ideal's, all but the learner: `dataset mnist, order {'name': 'random'},
    seed 3`."""
    own = [f"{key} {value}" for key, value in factors.items() if key.partition(".")[0] != "learner"]
    return ", ".join([*own, f"seed {run['seed']}"])
