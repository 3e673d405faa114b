"""Measures learning beside its costs: the metrics of `learning` and of `cost` in one frame."""

from collections.abc import Iterable

import pandas as pd

from clpapers.metrics import cost, learning
from clpapers.metrics.learning import OUT_OF_MEMORY

MEASURE = {
    "named_by": "metrics",
    "takes_from": ["learning", "cost"],
    "needs": ["grid", "metrics"],
    "reads": ["per_class", "undefined"],
    "cells": ["order.tasks"],
    "beside": ["record", "net"],
}
METRICS = {"training_minutes": {"bounds": (0, None), "unit": "min", "better": "smaller", "sample": "block"}}


def measure(target: dict, inputs: Iterable[tuple[dict, str, dict, dict, dict]]) -> pd.DataFrame:
    """Measure every seed of every run (`agem`, Figures 1 and 2; `desiderata`, Figures 9 and 15).

    target: key `metrics`, scalars of `learning`, metrics of `cost` and `training_minutes`; and `per_class` and
        `undefined`, as for `learning`.
    inputs: as for `cost`.

    Returns the rows of `learning` and of `cost`, whose times are of one kind of hardware (`cost.one_kind`).
    """
    frames = []
    for run in inputs:
        factors, cell, result, *_ = run
        learnt = [metric for metric in target["metrics"] if metric in learning.SCALARS]
        frames.append(learning.measure(target | {"metrics": learnt}, [(factors, cell, result)]))
        costs = cost.measure(target, [run])
        seconds = costs[costs["metric"] == "training_seconds"]
        costs = pd.concat([costs, seconds.assign(metric="training_minutes", value=seconds["value"] / 60)])
        left_out = {
            metric for metric, learners in target.get("undefined", {}).items() if factors["learner"] in learners
        }
        wanted = costs["metric"].isin(set(target["metrics"]) - set(learnt) - left_out - {OUT_OF_MEMORY})
        frames.append(costs[wanted])
    return cost.one_kind(pd.concat([frame for frame in frames if not frame.empty], ignore_index=True))
