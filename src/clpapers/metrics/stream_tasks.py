"""Measures streams chunk by chunk: their classes, and the tasks that an oracle assigns."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from clpapers.metrics.factors import flat

MEASURE = {"needs": ["streams"], "rules": {"streams": {"items": {"required": ["oracle"]}}}, "beside": ["tasks"]}


def measure(
    target: dict, inputs: Iterable[tuple[dict, Mapping[str, np.ndarray], np.ndarray, np.ndarray]]
) -> pd.DataFrame:
    """Measure every stream between its own boundaries.

    inputs: (factors, arrays of the stream file, labels `[N]` of the data set's training split, task identifiers
        int64 `[n]` of the stream's positions).

    Returns columns: the factors, `seed`, `metric`, `chunk` (from 0), `class`, `task` and `value`: for the metric
    `share`, the share in [0, 1] of the chunk's items of that class and task. Shares of 0 have no row.
    """
    frames = []
    for factors, stream, labels, tasks in inputs:
        chunk = np.searchsorted(stream["boundaries"], np.arange(len(tasks)), side="right")
        items = pd.DataFrame({"chunk": chunk, "class": labels[stream["indices"]], "task": tasks})
        counts = items.groupby(["chunk", "class", "task"]).size()
        shares = (counts / counts.groupby("chunk").transform("sum")).reset_index(name="value")
        key = {**flat(factors), "seed": int(stream["seed"]), "metric": "share"}
        frames.append(pd.DataFrame({**key, **shares}))
    return pd.concat(frames, ignore_index=True)
