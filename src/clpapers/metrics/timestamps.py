"""Measures a toy stream item by item: class, timestamp, position and the Beta it was drawn from."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from clpapers.metrics.factors import flat

MEASURE = {"needs": ["streams"]}


def measure(target: dict, inputs: Iterable[tuple[dict, Mapping[str, np.ndarray], np.ndarray]]) -> pd.DataFrame:
    """List every item of every stream.

    inputs: (factors, arrays of the stream file, labels `[N]` of the data set).

    Returns columns: the factors, `seed`, `position` in the stream, `class`, `timestamp` in [0, 1], `alpha`, `beta`
    (shape parameters of the class's Beta distribution; NaN for orders that have none).
    """
    frames = []
    for factors, stream, labels in inputs:
        label = labels[stream["indices"]]
        items = {
            "position": np.arange(len(label)),
            "class": label,
            "timestamp": stream["timestamps"],
            "alpha": stream["class_parameters"][label, 2],
            "beta": stream["class_parameters"][label, 3],
        }
        frames.append(pd.DataFrame({**flat(factors), "seed": int(stream["seed"]), **items}))
    return pd.concat(frames, ignore_index=True)
