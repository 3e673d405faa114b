"""Measures simulated entropy ratios: their mean in percent and its 95 % interval."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from clpapers.metrics.intervals import summarise

MEASURE = {"named_by": "metrics", "needs": ["simulations", "metrics"], "rows": {"simulation": "entropy_captured"}}
METRICS = {"entropy_captured": {"unit": "%"}}


def measure(target: dict, inputs: Iterable[np.ndarray]) -> pd.DataFrame:
    """Average the simulations.

    target: key `metrics` (a list with the one metric's name).
    inputs: arrays of ratios; 1 means that all of the entropy is captured.

    Returns one row with the columns `row` ("simulation"), `metric`, `mean`, `sd`, `se` and `half_width` (percent), `n`
    (simulations).
    """
    (metric,) = target["metrics"]
    percent = pd.DataFrame({"value": 100 * np.concatenate(list(inputs))})
    return summarise(percent.assign(row="simulation", metric=metric), ["row", "metric"])
