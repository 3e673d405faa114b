"""Compares methods on the same streams, pair by pair, and says which one is the best of its column."""

from itertools import combinations

import numpy as np
import pandas as pd

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import named, row_and_column
from clpapers.metrics.intervals import CONFIDENCE, Paired, critical, holm, holm_shares, paired
from clpapers.targets.footnotes import levels

FEWEST = 3  # runs of a method that may be the best, and of each that it is compared with
LEVEL = 1 - CONFIDENCE


def pairs(target: dict, data: pd.DataFrame) -> pd.DataFrame:
    """Every pair of rows of a results table in each of its columns and metrics, over seeds whose stream is the same.

    Parameters as `results_table.render`. A seed at which two rows learnt other streams, by the column `stream`
    (`metrics.inputs.mark_older_streams`), is no pair of theirs.

    Returns columns `column`, `metric`, `first`, `second`, then `difference` (first − second), `low`, `high` (95 %), `p`
    (paired t-test), `effect` (Cohen's d_z), `n` (such seeds), `p_holm` (p adjusted over the pairs of the same column
    and metric), and `low_holm`, `high_holm` (the interval at the level that Holm's method gives the pair: it leaves
    zero out if and only if p_holm ≤ 0.05). Pairs with a method from outside, the last of all, are adjusted among
    themselves, so that the others' stay as they are without it.
    """
    row, column = row_and_column(target)
    own = [named(target, label) for label in target.get("own", ())]
    comparisons = []
    for c in levels(target, data, column):
        for metric in target["metrics"]:
            cells = data[(data[column] == c) & (data["metric"] == metric)]
            by_run = _by_run(cells, row)
            for first, second in combinations(levels(target, cells, row), 2):
                key = (named(target, c), metric, named(target, first), named(target, second))
                comparisons.append((*key, *paired(by_run[first], by_run[second])))
    frame = pd.DataFrame(comparisons, columns=["column", "metric", "first", "second", *Paired._fields])
    foreign = (frame["first"].isin(own) | frame["second"].isin(own)).rename("foreign")
    by = frame.groupby(["column", "metric", foreign])["p"]
    frame["p_holm"] = by.transform(holm)
    shares = by.transform(lambda p: holm_shares(p, LEVEL)).astype(float)
    freedom = frame["n"].astype(float) - 1  # where nothing was trained, `n` has no type
    wider = critical(freedom, 1 - LEVEL / shares) / critical(freedom)
    for end in ("low", "high"):
        corrected = frame["difference"] + (frame[end] - frame["difference"]) * wider
        frame[f"{end}_holm"] = corrected.where(frame["p"].notna())
    return frame.iloc[foreign.to_numpy().argsort(kind="stable")].reset_index(drop=True)


def _by_run(cells: pd.DataFrame, row: str) -> pd.DataFrame:
    """The values by seed, and by the stream that was learnt where the column `stream` tells it; a column a level."""
    return cells.pivot(index=["seed", "stream"] if "stream" in cells else ["seed"], columns=row, values="value")


def best(cells: pd.DataFrame, row: str, metric: str) -> object:
    """The level of `row` that is best by the corrected comparison, or None.

    Its mean is better than each other's, by the paired t-test over seeds of one stream at 5 %, with Holm's correction
    over all pairs of `cells`, and each pair has `FEWEST` seeds at least. None where a seed has several values, or none
    of its own: times of one job.

    cells: the values of one column and metric: columns `row`, `seed`, `value`.
    """
    kind = catalogue.metrics()[metric]
    cells = cells.dropna(subset="value").astype({"value": float})  # without a run the column has no type
    cells = cells[~cells[row].isin(cells.loc[np.isinf(cells["value"]), row])]  # a method that diverged is never best
    if kind.better is None or kind.sample == "block" or cells.duplicated([row, "seed"]).any():
        return None
    by_seed = _by_run(cells, row)
    if by_seed.shape[1] < 2:
        return None
    means = by_seed.mean()
    first = means.idxmin() if kind.better == "smaller" else means.idxmax()
    compared = list(combinations(by_seed, 2))
    found = [paired(by_seed[one], by_seed[other]) for one, other in compared]
    ahead = [
        p <= LEVEL and pair.n >= FEWEST and (pair.difference > 0) == (means[one] > means[other])
        for (one, other), pair, p in zip(compared, found, holm([pair.p for pair in found]))
        if first in (one, other)
    ]
    return first if all(ahead) else None
