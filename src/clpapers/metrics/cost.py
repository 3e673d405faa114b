"""Measures the costs of learning: seconds of training, and the learner's footprint in bytes."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from clpapers.metrics.factors import flat
from clpapers.metrics.learning import OUT_OF_MEMORY

MEASURE = {
    "named_by": "metrics",
    "needs": ["grid", "metrics"],
    "cells": ["order.tasks", "budget.batch"],
    "beside": ["record", "net"],
}
METRICS = {
    "training_seconds": {"bounds": (0, None), "unit": "s", "better": "smaller", "sample": "block"},
    "training_memory": {"bounds": (0, None), "unit": "MB", "better": "smaller", "sample": "none"},
    "testing_memory": {"bounds": (0, None), "unit": "MB", "better": "smaller", "sample": "none"},
}

MB = 1e6
PROCESSOR = "CPU"
ELSEWHERE = " elsewhere"  # behind the metric of a time that was taken on another kind of hardware than most


def measure(target: dict, inputs: Iterable[tuple[dict, str, dict, dict, dict]]) -> pd.DataFrame:
    """Measure every block and every seed of every run.

    inputs: (factors, cell hash, parsed run result, the result's record, the description of the data set's net), one a
        result file.

    Returns columns: the factors, `cell`, `seed`, `metric`, `value`, and for seconds alone `hardware`, where they were
    taken (see `one_kind`). The metrics are:

    - `training_seconds`: a block's seconds without tests, divided by its seeds. A block has one row, at its first seed,
      since seeds that train as one stack share one clock;
    - of each seed `training_memory` and `testing_memory`: the learner's footprint at the end in MB (10⁶ bytes);
    - the symbols of `agem`'s formulas: `P`, parameters of the net; `B`, items a batch (NaN for a whole task); `H`, the
      summed sizes of all layers' outputs for one image; `T`, tasks; `M`, memory items a task; `bytes` a number.

    A run that exceeded the memory has only `out_of_memory`, 1.
    """
    rows = []
    for factors, cell, result, record, net in inputs:
        spec = result["cell"]
        tasks, batch = spec["order"]["tasks"], spec["budget"]["batch"]
        symbols = {
            "P": net["parameters"],
            "B": math.nan if batch == "task" else batch,
            "H": sum(math.prod(layer["output"]) for layer in net["layers"]),
            "T": tasks,
            "M": spec["budget"]["memory"] / tasks,
            "bytes": 8 if spec["precision"] == "float64" else 4,
        }
        of_cell = {**flat(factors), "cell": cell}
        if trained := [run["seed"] for run in result["seeds"] if not run.get(OUT_OF_MEMORY)]:
            seconds = float(np.mean([record["training_seconds"][str(seed)] for seed in trained]))
            timing = {"seed": trained[0], "metric": "training_seconds", "value": seconds}
            rows.append({**of_cell, **timing, "hardware": _hardware(record)})
        for run in result["seeds"]:
            key = {**of_cell, "seed": run["seed"]}
            if run.get(OUT_OF_MEMORY):
                rows.append({**key, "metric": OUT_OF_MEMORY, "value": 1.0, "hardware": np.nan})
                continue
            footprints = {f"{phase}_memory": size / MB for phase, size in run["learner_bytes"].items()}
            rows += [{**key, "metric": k, "value": v, "hardware": np.nan} for k, v in (footprints | symbols).items()]
    return one_kind(pd.DataFrame(rows))


def one_kind(data: pd.DataFrame) -> pd.DataFrame:
    """`data` whose times are comparable: those on processors, or those on one kind of GPU, whichever timed most cells.

    The others have `ELSEWHERE` behind their metric's name. A GPU may be as much faster than a processor as one method
    than another; processors differ less, and count as one kind.
    """
    if "hardware" not in data:
        return data
    kinds = data["hardware"].map(
        lambda device: PROCESSOR if device.startswith(PROCESSOR) else device, na_action="ignore"
    )
    if kinds.nunique() < 2:
        return data
    most = data["cell"].groupby(kinds).nunique().idxmax()
    return data.assign(metric=data["metric"].mask(kinds.notna() & (kinds != most), data["metric"] + ELSEWHERE))


def _hardware(record: dict) -> str:
    """The device that a record's run was trained on."""
    hardware = record["hardware"]
    return hardware["device"] if hardware["device"] != "cpu" else f"{PROCESSOR} {hardware['processor']}".strip()
