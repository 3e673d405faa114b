"""Pools the comparisons of a target: a line a metric, with an interval by seed."""

import itertools

import numpy as np
import pandas as pd

from clpapers.catalogue.names import CURVE, named
from clpapers.evidence.grades import excludes_zero
from clpapers.evidence.verdict_names import CALIBRATED, GRADES, ONCE, TRAINED
from clpapers.metrics.intervals import EQUIVALENCE, total
from clpapers.targets.numbers import placed
from clpapers.targets.table import rounded, signed

KEY = ["row", "column", "metric"]
POOLED = (
    "The mean difference over the cells above, without guesses and exact numbers, and each comparison once, with its "
    "95 % interval by seed: cells share their streams, so that seeds are the sample. A cell of one run has the printed "
    "spread; the paper’s own errors are taken as wide as they can be, all as one. ‘Shared’ is the part of the variance "
    "between seeds that cells on the same streams have in common: as much of their differences is one draw."
)
FEWEST = 3  # seeds that two cells need in common
ONE_SIDED = 6  # cells; so many fall on one side by chance in 3 % of cases, if they are independent


def each_once(compared: pd.DataFrame) -> pd.DataFrame:
    """The comparisons of a frame; of one that stands there again, the first with a printed spread or else the first."""
    order = np.argsort(compared["against_se"].isna().to_numpy(), kind="stable")
    again = np.zeros(len(compared), bool)
    again[order] = compared.iloc[order].duplicated(list(ONCE))
    return compared[~again | (compared["runs"] == "")]


def pooled(target: dict, data: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """A line a metric, or a curve, on all that is compared in a target: the mean difference over cells, by seed.

    target, data: as for `numbers`. compared: as from `compare`; guesses and exact numbers do not count, and a
        comparison counts once.

    The cells' streams are shared, so that a seed's errors are not independent over cells. The variance is therefore
    taken over the seeds' sums: a cluster-robust variance, by seed. With equal seeds in all cells it is the variance of
    the seeds' means. A cell of one run has the deviation that the paper prints, and the printed means' errors count.
    Both are taken as if all cells had one error: the widest that they can be.

    Returns columns `metric`, `of` (which curve, or empty), `cells`, `above`, `below` (the number of cells whose
    difference is so), `seeds`, `shared` (the mean correlation of two cells of a data set over seeds, NaN where too few
    are in common), `difference`, `low`, `high` (95 %), `distance`, `decimals`. Fewer than two compared cells make no
    line.
    """
    found = compared[compared["verdict"].isin(GRADES) & compared["kind"].isin([TRAINED, CALIBRATED])]
    found = each_once(found[found["difference"].notna()])
    if "value" not in data or found.empty:
        return pd.DataFrame()
    curves = found["row"].str.rpartition(",")[0] + ", " + found["column"] if target.get("along") in CURVE else ""
    found = found.assign(of=curves)
    if "repetition" in data and data["seed"].nunique() == 1:  # one seed's repetitions are its runs
        data = data.assign(seed=data["repetition"])
    values = placed(target, data)
    dataset = values.groupby(KEY)["dataset"].first()
    values = values.groupby([*KEY, "seed"], sort=False, as_index=False)["value"].mean()
    lines = []
    for (metric, of), cells in found.groupby(["metric", "of"], sort=False):
        if len(cells) < 2:
            continue
        weight = 1 / len(cells)
        runs = values.merge(cells[KEY], on=KEY).dropna(subset="value")
        runs["n"] = runs.groupby(KEY)["value"].transform("size")
        runs["error"] = weight / runs["n"] * (runs["value"] - runs.groupby(KEY)["value"].transform("mean"))
        several = runs[runs["n"] > 1].assign(share=lambda frame: 1 / frame["n"])
        shares = several.groupby("seed")["share"].sum()
        count = shares.sum() ** 2 / (shares**2).sum() if len(shares) else np.nan  # seeds, as many equal ones would be
        single = cells.loc[cells["n_seeds"] == 1]
        printed = cells.dropna(subset="against_se")
        parts = []
        if len(several):
            by_seed = several.groupby("seed")["error"].sum()
            parts.append((np.sqrt((by_seed**2).sum() * count / (count - 1)), count - 1))
        if len(single):
            spread = single["against_se"] * np.sqrt(single["against_n"])
            parts.append((weight * spread.sum(), single["against_n"].min() - 1))
        if len(printed):
            parts.append((weight * printed["against_se"].sum(), printed["against_n"].min() - 1))
        estimate = total(cells["difference"].mean(), parts)
        (low, high), ends = estimate.interval(), estimate.interval(EQUIVALENCE)
        lines.append(
            {
                "metric": metric,
                "of": of,
                "cells": len(cells),
                "above": int((cells["difference"] > 0).sum()),
                "below": int((cells["difference"] < 0).sum()),
                "seeds": runs["seed"].nunique(),
                "shared": _shared(runs, dataset),
                "difference": estimate.effect,
                "low": float(low),
                "high": float(high),
                "distance": float(np.abs(ends).max()),
                "decimals": cells["decimals"].max(),
            }
        )
    return pd.DataFrame(lines)


def one_sided(target: dict, row: dict) -> str:
    """A line of `pooled` in words, if its interval leaves zero out and all of its cells lie on one side; or else empty.

    Fewer than `ONE_SIDED` cells say nothing.
    """
    side = {row["above"]: "above", row["below"]: "below"}.get(row["cells"], "")
    if not side or row["cells"] < ONE_SIDED or not excludes_zero(row["low"], row["high"]):
        return ""
    ends = sorted(abs(row[key]) for key in ("low", "high"))
    mean, low, high = (f"{each:.{int(row['decimals'])}f}" for each in (abs(row["difference"]), *ends))
    metric = pooled_texts(target, row)["metric"]
    return (
        f"all {row['cells']} values of {metric} lie {side} print, by {mean} on average (95 % interval {low} to {high})"
    )


def _shared(runs: pd.DataFrame, dataset: pd.Series) -> float:
    """The covariance of two cells of a data set over their common seeds, as a share of their variances' means."""
    wide = runs.pivot(index=KEY, columns="seed", values="value")
    together = apart = 0.0
    for (one, first), (other, second) in itertools.combinations(wide.iterrows(), 2):
        both = np.stack([first, second])
        both = both[:, np.isfinite(both).all(axis=0)]
        if dataset[one] == dataset[other] and both.shape[1] >= FEWEST:
            (a, covariance), (_, b) = np.cov(both)
            together, apart = together + covariance, apart + np.sqrt(a * b)
    return together / apart if apart else np.nan


def pooled_texts(target: dict, row: dict) -> dict[str, str]:
    """One line of `pooled` as texts, under their headings."""
    difference = row["difference"], row["low"], row["high"]
    return {
        "metric": ", ".join(filter(None, [named(target, row["metric"]), row["of"]])),
        "cells": str(row["cells"]),
        "above": str(row["above"]),
        "below": str(row["below"]),
        "seeds": str(row["seeds"]),
        "shared": "–" if np.isnan(row["shared"]) else f"{100 * row['shared']:.0f} %".replace("-", "−"),
        "mean difference": signed(*difference, int(row["decimals"])),
        "within": rounded(row["distance"], int(row["decimals"]), up=True),
    }
