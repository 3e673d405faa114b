"""Compares methods on the same streams, pair by pair."""

from itertools import combinations

import pandas as pd

from clpapers.catalogue.names import named, row_and_column
from clpapers.metrics.intervals import Paired, holm, paired
from clpapers.targets.footnotes import levels


def pairs(target: dict, data: pd.DataFrame) -> pd.DataFrame:
    """Every pair of rows of a results table in each of its columns and metrics, over their common seeds.

    Parameters as `results_table.render`.

    Returns columns `column`, `metric`, `first`, `second`, then `difference` (first − second), `low`, `high` (95 %), `p`
    (paired t-test), `effect` (Cohen's d_z), `n` (common seeds) and `p_holm`: p adjusted over the pairs of the same
    column and metric. Pairs with a method from outside, the last of all, are adjusted among themselves, so that the
    others' stay as they are without it.
    """
    row, column = row_and_column(target)
    own = [named(target, label) for label in target.get("own", ())]
    comparisons = []
    for c in levels(target, data, column):
        for metric in target["metrics"]:
            cells = data[(data[column] == c) & (data["metric"] == metric)]
            by_seed = cells.pivot(index="seed", columns=row, values="value")
            for first, second in combinations(levels(target, cells, row), 2):
                key = (named(target, c), metric, named(target, first), named(target, second))
                comparisons.append((*key, *paired(by_seed[first], by_seed[second])))
    frame = pd.DataFrame(comparisons, columns=["column", "metric", "first", "second", *Paired._fields])
    foreign = (frame["first"].isin(own) | frame["second"].isin(own)).rename("foreign")
    frame["p_holm"] = frame.groupby(["column", "metric", foreign])["p"].transform(holm)
    return frame.iloc[foreign.to_numpy().argsort(kind="stable")].reset_index(drop=True)
