"""Measures the loss on each incoming batch along a stream, and the correlation of these curves between streams."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from clpapers.metrics.class_frequency import chunk_times
from clpapers.metrics.factors import flat
from clpapers.metrics.learning import OUT_OF_MEMORY

MEASURE = {"named_by": "metrics", "needs": ["grid", "metrics"], "reads": ["points"]}
METRICS = {
    "stream_loss": {
        "bounds": (0, None),
        "unit": "nats",
        "better": "smaller",
        "competing": "training",
        "over": "time",
    },
    "loss_correlation": {"bounds": (-1, 1), "competing": "training"},
}


def stretches(losses: ArrayLike, points: int | None) -> np.ndarray:
    """The mean loss of each of at most `points` near-equal stretches of steps; of each step if `points` is None.

    losses: [steps], nats. Returns [min(points, steps)].
    """
    losses = np.asarray(losses, float)
    bins = min(points or len(losses), len(losses))
    bin_of_step = np.arange(len(losses)) * bins // max(len(losses), 1)
    return np.bincount(bin_of_step, losses, bins) / np.bincount(bin_of_step, minlength=bins)


def curve_correlation(curves: ArrayLike) -> np.ndarray:
    """Pearson's correlation of several curves, averaged over all pairs, with a value for each curve.

    curves: [n, times]. Returns [n] values: the jackknife's pseudo-values n·U − (n − 1)·U₋ᵢ (Arvesen 1969), as pairs
    that share a curve are not independent. Their mean is the mean over pairs, and their variance over n is the variance
    of this mean. Two curves have one value, their correlation; one or none has none. NaN where a curve is constant or
    not finite.
    """
    curves = np.asarray(curves, float)
    n = len(curves)
    if n < 2:
        return np.empty(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = np.corrcoef(curves)
    to_others = (correlations.sum(axis=1) - correlations.diagonal()) / (n - 1)
    mean = to_others.mean()
    return to_others[:1] if n == 2 else (2 * (n - 1) * to_others - n * mean) / (n - 2)


def measure(target: dict, inputs: Iterable[tuple[dict, str, dict]]) -> pd.DataFrame:
    """Measure every seed of every run (`stf`, section 4.5 and Figure 5).

    target: keys `metrics` (of `METRICS`) and optional `points`, the number of stretches of a curve (see `stretches`).
    inputs: (factors, cell hash, parsed run result), one a result file. Each seed has `online.loss` [steps], the cross
        entropy of each batch before it is learnt, or None.

    Returns columns: the factors, `cell`, `seed`, `metric`, `time`, `value`. The `time` is the centre of a stretch as a
    fraction of the stream; NaN for the correlation. The `value` is in nats, or a seed's part in the correlation of its
    cell's curves (`curve_correlation`). A run that exceeded the memory has only `out_of_memory`, 1.
    """
    rows: list[dict] = []
    by_cell: dict[str, list[tuple[dict, np.ndarray]]] = {}
    for factors, cell, result in inputs:
        for run in result["seeds"]:
            key = {**flat(factors), "cell": cell, "seed": run["seed"]}
            if run.get(OUT_OF_MEMORY):
                rows.append({**key, "metric": OUT_OF_MEMORY, "time": np.nan, "value": 1.0})
                continue
            losses = np.array(run["online"]["loss"] or [], float)
            if len(losses):
                by_cell.setdefault(cell, []).append((key, losses))
            if "stream_loss" in target["metrics"]:
                curve = stretches(losses, target.get("points"))
                rows += [
                    {**key, "metric": "stream_loss", "time": float(time), "value": float(value)}
                    for time, value in zip(chunk_times(len(curve)), curve)
                ]
    if "loss_correlation" in target["metrics"]:
        for measured in by_cell.values():
            keys, losses = zip(*measured)
            points = min([target.get("points") or np.inf, *map(len, losses)])  # times that every curve has
            curves = [stretches(each, int(points)) for each in losses]
            rows += [
                {**key, "metric": "loss_correlation", "time": np.nan, "value": float(value)}
                for key, value in zip(keys, curve_correlation(curves))
            ]
    return pd.DataFrame(rows, columns=None if rows else ["seed", "metric", "time", "value"])
