"""Measures streams of instances: their runs of items of one class and instance."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from clpapers.metrics.factors import flat

MEASURE = {
    "needs": ["streams"],
    "rules": {"streams": {"items": {"properties": {"dataset": {"pattern": "^(?!toy-)"}}}}},
    "beside": ["instances"],
}


def measure(
    target: dict, inputs: Iterable[tuple[dict, Mapping[str, np.ndarray], np.ndarray, np.ndarray]]
) -> pd.DataFrame:
    """Split every stream into maximal runs of items of one chunk and one instance.

    inputs: (factors, arrays of the stream file, labels `[N]` and instances `[N]` of the data set's training split).

    Returns one row a run, in stream order. Columns: the factors, `seed`, `metric` (`items`), `chunk` (from 0),
    `class`, `instance`, `value` (number of items).
    """
    frames = []
    for factors, stream, labels, instances in inputs:
        shown = stream["indices"]
        chunk = np.searchsorted(stream["boundaries"], np.arange(shown.size), side="right")
        items = np.stack([chunk, labels[shown], instances[shown]])
        starts = np.flatnonzero(np.r_[True, (items[:, 1:] != items[:, :-1]).any(axis=0)])
        runs = pd.DataFrame(items[:, starts].T, columns=["chunk", "class", "instance"])
        key = {**flat(factors), "seed": int(stream["seed"]), "metric": "items"}
        frames.append(pd.DataFrame({**key, **runs, "value": np.diff([*starts, shown.size])}))
    return pd.concat(frames, ignore_index=True)
