"""Hyper-parameters chosen from a grid by their scores on tasks of their own (`agem`, algorithm 1)."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from clpapers.metrics.factors import flat
from clpapers.metrics.learning import DIVERGED, OUT_OF_MEMORY, SCALARS

MEASURE = {
    "takes_from": ["learning"],
    "needs": ["grid"],
    "searches": True,
    "rules": {"grid": {"additionalProperties": False, "properties": {"dataset": {}, "learner": {}}}},
}


def choose(search: dict, published: dict, grid: list[dict], runs: dict[str, list[dict]]) -> dict:
    """Score every point of a grid and take the best; of equals the first.

    search: keys `metric` (one of `SCALARS`, the larger the better), `per_class`, `points` (cell hashes).
    published: the paper's values, by dotted key.
    grid: the values of each point, by dotted key, in the order of `points`.
    runs: cell hash → the parsed results of its seeds.

    Returns
    -------
    `search`, `published`: as given.
    `scores`: each point's `values`, `cell`, `score` (mean over seeds; null if a seed failed) and `failure` (`diverged`,
    `out_of_memory` or null).
    `selected`: the best point's values; the first point's if all failed.
    """
    scores = []
    for values, cell in zip(grid, search["points"]):
        failures = (why for why in (OUT_OF_MEMORY, DIVERGED) for run in runs[cell] if run.get(why) not in (None, False))
        failure, score = next(failures, None), None
        if failure is None:
            by_seed = [SCALARS[search["metric"]](run | {"per_class": search["per_class"]}) for run in runs[cell]]
            score = float(np.mean(by_seed))
        scores.append({"values": values, "cell": cell, "score": score, "failure": failure})
    best = max(scores, key=lambda point: -np.inf if point["score"] is None else point["score"])
    return {"search": search, "published": published, "scores": scores, "selected": best["values"]}


def measure(target: dict, inputs: Iterable[tuple[dict, dict]]) -> pd.DataFrame:
    """List every point of every grid.

    inputs: (factors, the result of `choose`), one a selection.

    Returns columns: the factors, `cell`, a column for each value, `metric`, `score` (NaN where a run failed) and
    `failure` (`diverged`, `out_of_memory` or none). A value's column has the last part of its key as name, such as
    `learning_rate`; it is NaN where a learner has none. `selected` and `published` tell whether the point is the one
    chosen here, and whether it is the paper's.
    """
    rows = []
    for factors, found in inputs:
        for point in found["scores"]:
            row = {**flat(factors), "cell": point["cell"]}
            row |= {key.rpartition(".")[2]: value for key, value in point["values"].items()}
            score = np.nan if point["score"] is None else point["score"]
            row |= {"metric": found["search"]["metric"], "score": score, "failure": point["failure"]}
            row |= {kind: point["values"] == found[kind] for kind in ("selected", "published")}
            rows.append(row)
    return pd.DataFrame(rows)
