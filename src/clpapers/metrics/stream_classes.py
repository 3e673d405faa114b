"""Measures streams: the relative frequency of their classes, or of the most frequent one, over time."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from clpapers.metrics.class_frequency import chunk_times, class_frequency, prevalence
from clpapers.metrics.factors import flat

MEASURE = {"named_by": "statistic", "needs": ["streams", "statistic", "chunks"]}
METRICS = {"class_frequency": {"over": "time"}, "prevalence": {"over": "time"}}


def measure(target: dict, inputs: Iterable[tuple[dict, Mapping[str, np.ndarray], np.ndarray]]) -> pd.DataFrame:
    """Measure every stream.

    target: keys `statistic` (`class_frequency` or `prevalence`) and `chunks` (number of near-equal parts of a stream).
    inputs: (factors, arrays of the stream file, labels `[N]` of the data set's training split).

    Returns columns: the factors, `seed`, `metric` (the statistic), `class` (−1 for prevalence), `time` (centre of the
    chunk as a fraction of the stream), `value` (relative frequency in [0, 1]). A class absent from a chunk has no row.
    """
    frames = []
    for factors, stream, labels in inputs:
        frequency = class_frequency(labels[stream["indices"]], len(stream["class_parameters"]), target["chunks"])
        if target["statistic"] == "prevalence":
            chunk, value = np.arange(target["chunks"]), prevalence(frequency)
            label = np.full(len(chunk), -1)
        else:
            chunk, label = np.nonzero(frequency)
            value = frequency[chunk, label]
        time = chunk_times(target["chunks"])[chunk]
        measured = {"metric": target["statistic"], "class": label, "time": time, "value": value}
        frames.append(pd.DataFrame({**flat(factors), "seed": int(stream["seed"]), **measured}))
    return pd.concat(frames, ignore_index=True)
