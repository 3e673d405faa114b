"""Measures a variational learner at the start of a task: predictive entropy and the gradients of its loss's terms."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from clpapers.metrics.factors import flat

MEASURE = {"named_by": "metrics", "needs": ["grid", "metrics"]}
METRICS = {
    "likelihood_gradient": {"bounds": (0, None), "over": "batches"},
    "gradient_ratio": {"bounds": (0, None), "over": "batches"},
    "mean_predictive_entropy": {"bounds": (0, None), "unit": "nats"},
}


def measure(target: dict, inputs: Iterable[tuple[dict, str, dict]]) -> pd.DataFrame:
    """Measure every repetition of every seed of every run (`desiderata`, appendix B.1).

    target: key `metrics`, of `METRICS`.
    inputs: (factors, cell hash, parsed run result), one a result file. Each seed has `learner.gradients`:
        `likelihood` and `prior` [repetitions][batches], each term's mean absolute gradient on the final layer, and
        `entropy` [repetitions], nats, of the predictions on the new task.

    Returns columns: the factors, `cell`, `seed`, `repetition`, `metric`, `time` (batches, from 1; NaN for the entropy),
    `value`. The ratio is likelihood over prior; it is ∞ while the posterior is the prior, whose gradient is then 0.
    """
    rows = []
    for factors, cell, result in inputs:
        for run in result["seeds"]:
            key = {**flat(factors), "cell": cell, "seed": run["seed"]}
            found = run["learner"]["gradients"]
            likelihood, prior = np.array(found["likelihood"], float), np.array(found["prior"], float)
            with np.errstate(divide="ignore"):
                curves = {"likelihood_gradient": likelihood, "gradient_ratio": likelihood / prior}
            for metric in target["metrics"]:
                if metric in curves:
                    rows += [
                        {**key, "repetition": r, "metric": metric, "time": batch, "value": value}
                        for r, curve in enumerate(curves[metric])
                        for batch, value in enumerate(curve, start=1)
                    ]
                else:
                    rows += [
                        {**key, "repetition": r, "metric": metric, "time": np.nan, "value": value}
                        for r, value in enumerate(found["entropy"])
                    ]
    return pd.DataFrame(rows)
