"""How often the grades of numbers are wrong, simulated and on published runs: `python benchmarks/bench_verdicts.py`."""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from tabulate import tabulate

from clpapers.catalogue.metrics import PERCENT, margins_of, metrics
from clpapers.evidence import grades
from clpapers.evidence.comparison import read_compared
from clpapers.evidence.pooled import each_once, pooled
from clpapers.evidence.verdict_names import DIFFERS, NEAR, OPEN, SAME, TRAINED
from clpapers.metrics.intervals import NIL

FIRST, SECOND = PERCENT["margins"]
PUBLISHED = Path("results/published/metrics")
RATIOS, SPREADS = (0.5, 1, 2), (0.02, 0.5, 2.0, 8.0)  # ours over theirs; theirs, in points
WRONG = ((0.0, DIFFERS), (FIRST, SAME), (SECOND, NEAR))  # the true difference, and the grade that is wrong
COUNTS = [(n, m, True) for n in (2, 3, 4, 5, 10, 20) for m in (5, 10, 20)]
COUNTS += [(n, m, False) for n in (2, 3, 5, 10) for m in (1, 5, 10)] + [(1, m, True) for m in (5, 10, 20)]
RULES = {  # Welch's rule with other degrees of freedom and spreads of the side that tells none
    "Welch's degrees, the same spread": (np.inf, 1),
    "Welch's degrees": (np.inf, grades.UNLIKE),
    "the smaller side's degrees": (1.0, grades.UNLIKE),
    "as graded": (grades.MOST_DEGREES, grades.UNLIKE),
}
PRINTED = 10  # runs of the paper, for pooled lines


def wrong(n: int, m: int, told: bool, ratio: float, draws: int, seed: int = 0) -> list[float]:
    """The largest shares of wrong grades in %, over `SPREADS`, by `WRONG`: `n` runs of ours, `m` of the paper.

    told: whether the paper prints its spread. ratio: our spread over theirs.
    """
    rng = np.random.default_rng(seed)
    means = ratio / np.sqrt(n) * rng.standard_normal(draws), rng.standard_normal(draws) / np.sqrt(m)
    errors = [s * np.sqrt(rng.chisquare(max(k - 1, 1), draws) / max(k - 1, 1) / k) for s, k in ((ratio, n), (1, m))]
    estimate, _ = grades.estimated(means[0], errors[0], n, means[1], errors[1] if told else np.nan, m)
    shares = []
    for truth, grade in WRONG:
        scaled = (estimate._replace(effect=truth + s * estimate.effect, se=s * estimate.se) for s in SPREADS)
        shares.append(max(100 * np.mean(grades.judge(each, (FIRST, SECOND)).grade == grade) for each in scaled))
    return shares


def decided() -> list[int]:
    """Published numbers of trainings with a grade other than open, and all, each once; without what rounding widens."""
    frame = pd.concat([read_compared(file) for file in sorted(PUBLISHED.glob("*/*.reported.csv"))])
    lines = each_once(frame[(frame["kind"] == TRAINED) & frame["distance"].notna() & (frame["rule"] != "")])
    found = []
    for row in lines.itertuples():
        told = row.ours, row.se, row.n_seeds, row.graded_against, row.against_se, row.against_n
        found.append(grades.judge(grades.estimated(*told)[0], (row.margin_same, row.margin_near)).grade)
    return [sum(str(grade) != OPEN for grade in found), len(found)]


def subsets(size: int) -> list[float]:
    """Of published cells with five runs or more: `size` of them against the others as if those were printed.

    Returns the cells and metrics, the subsets (20 a cell and metric), and the mean shares of `WRONG` in %, at the
    metric's margins. Cells of equal values have no interval and are left out.
    """
    frame = pd.concat([pd.read_csv(file) for file in sorted(PUBLISHED.glob("*/*.csv")) if ".reported" not in file.name])
    frame = frame[frame["time"].isna() & frame["metric"].isin([*metrics()])].dropna(subset=["cell", "value"])
    rng, shares = np.random.default_rng(0), []
    for (_, metric), each in frame.drop_duplicates(["cell", "metric", "seed"]).groupby(["cell", "metric"]):
        x = each["value"].to_numpy(float)
        if len(x) < 5 or not np.isfinite(x).all() or x.std() <= NIL or not (margins := margins_of(metric, x.mean()))[0]:
            continue
        x = rng.permuted(np.tile(x, (20, 1)), axis=1)
        sides = [
            (part.mean(1), part.std(1, ddof=int(part.shape[1] > 1)) / np.sqrt(part.shape[1]), part.shape[1])
            for part in np.split(x, [size], 1)
        ]
        estimate, _ = grades.estimated(*sides[0], *sides[1])
        at = (estimate._replace(effect=estimate.effect + truth) for truth in (0.0, *margins))
        judged = [grades.judge(each, margins).grade for each in at]
        shares.append([100 * np.mean(each == grade) for each, (_, grade) in zip(judged, WRONG)])
    return [len(shares), 20 * len(shares), *np.mean(shares, axis=0)]


def covered(seeds: list[int], shared: float, own: float, draws: int, seed: int) -> tuple[float, float]:
    """How often the pooled line’s interval holds the true difference, 0, in %, and its median half-width.

    seeds: how many each cell has. shared, own: deviations of a seed's error that all cells share, and of a cell's own.
    """
    rng = np.random.default_rng(seed)
    cells = [f"cell {i}" for i in range(len(seeds))]
    lines = {"column": "data", "metric": "final_accuracy", "verdict": SAME, "kind": "trained", "decimals": 1}
    holds, widths = 0, []
    for _ in range(draws):
        stream, theirs = rng.normal(0, shared, max(seeds)), rng.normal(0, shared, PRINTED)
        values, compared = [], []
        for cell, n in zip(cells, seeds):
            found = stream[:n] + rng.normal(0, own, n)
            printed = theirs + rng.normal(0, own, PRINTED)
            row = {"dataset": "data", "learner": cell, "cell": cell, "metric": "final_accuracy"}
            values += [row | {"seed": k, "value": value} for k, value in enumerate(found)]
            told = {
                "row": cell,
                "runs": cell,
                "graded_against": printed.mean(),
                "difference": found.mean() - printed.mean(),
            }
            told |= {"against_se": printed.std(ddof=1) / np.sqrt(PRINTED), "against_n": PRINTED, "n_seeds": n}
            compared.append(lines | told)
        (line,) = pooled({}, pd.DataFrame(values), pd.DataFrame(compared)).to_dict("records")
        holds += line["low"] <= 0 <= line["high"]
        widths.append(line["high"] - line["low"])
    return 100 * holds / draws, float(np.median(widths)) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    quick = parser.parse_args().quick
    draws, heads = 4_000 if quick else 100_000, [f"{r}×: {grade}" for r in RATIOS for _, grade in WRONG]
    rows, compared = [], []
    for name, constants in RULES.items():
        grades.MOST_DEGREES, grades.UNLIKE = constants
        shares = [[n, m, told, *np.ravel([wrong(n, m, told, r, draws) for r in RATIOS])] for n, m, told in COUNTS]
        rows = [[n, m, "yes" if told else "no", *each] for n, m, told, *each in shares]
        compared.append([name, max(max(row[3:]) for row in rows), *decided()])
    print(f"Wrong grades in % of {draws:,} draws, the largest over spreads; our spread 0.5, 1, 2 times the paper's")
    print(tabulate(rows, ["ours", "theirs", "spread printed", *heads], "github", floatfmt=".1f"))
    print("Rules: the largest share of wrong grades above, in %, and the published numbers that are decided")
    print(tabulate(compared, ["rule", "wrong", "decided", "of"], "github", floatfmt=".1f"))
    print("Published runs: some of a cell's against its others; wrong grades in %")
    rows = [[size, *subsets(size)] for size in (1, 2, 3)]
    print(
        tabulate(
            rows, ["runs", "cells and metrics", "subsets", *(grade for _, grade in WRONG)], "github", floatfmt=".1f"
        )
    )
    draws, rows = 50 if quick else 400, []
    for seeds in ([3] * 15, [10] * 15, [2] * 8 + [10] * 7, [1] * 10 + [3] * 5, [1] * 15):
        told = " ".join(f"{seeds.count(n)} of {n}" for n in dict.fromkeys(seeds))
        for shared, own in ((1, 1), (2, 0.5), (0.2, 2)):
            rows.append([told, shared, own, *covered(seeds, shared, own, draws, seed=0)])
    print(f"Pooled lines: how often the 95 % interval holds the truth, in % of {draws:,} draws")
    print(tabulate(rows, ["cells of runs", "sd shared", "sd own", "held", "half-width"], "github", floatfmt=".1f"))


if __name__ == "__main__":
    main()
