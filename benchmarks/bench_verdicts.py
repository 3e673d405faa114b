"""How often each rule of a verdict gives which grade, by simulation: `python benchmarks/bench_verdicts.py`."""

import argparse

import numpy as np
import pandas as pd
from tabulate import tabulate

from clpapers.evidence.comparison import ONE_MORE, OWN, WELCH
from clpapers.evidence.grades import judge
from clpapers.evidence.pooled import pooled
from clpapers.evidence.verdict_names import DIFFERS, GRADES, NEAR, SAME
from clpapers.metrics.intervals import Estimate, welch

MARGINS = (2.0, 5.0)  # points
PRINTED = 10  # runs of the paper
UNTOLD = f"{OWN}, the paper's runs unknown"
ASKED = [*((0, grade) for grade in GRADES), (2, SAME), (4, SAME), (4, DIFFERS), (5, NEAR), (10, NEAR), (10, DIFFERS)]


def simulated(rule: str, n: int, sd: float, difference: float, draws: int, seed: int) -> np.ndarray:
    """The grades `[draws]` of `n` runs whose true mean is off by `difference`; the paper's runs vary as they do."""
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(difference, sd, (draws, n)), rng.normal(0, sd, (draws, PRINTED))
    theirs_se = theirs.std(axis=1, ddof=1) / np.sqrt(PRINTED)
    printed = theirs.mean(axis=1)
    if rule == ONE_MORE:
        estimate = Estimate(ours[:, 0] - printed, theirs_se * np.sqrt(PRINTED + 1), PRINTED - 1)
    else:
        se = ours.std(axis=1, ddof=1) / np.sqrt(n)
        told = n / PRINTED if rule == OWN else 0.0
        estimate = Estimate(ours.mean(axis=1) - printed, se * np.sqrt(1 + told), n - 1)
        if rule == WELCH:
            estimate = welch(ours.mean(axis=1), se, n, printed, theirs_se, PRINTED)
    return judge(estimate, MARGINS).grade


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
            told = {"row": cell, "runs": cell, "basis": printed.mean(), "difference": found.mean() - printed.mean()}
            told |= {"basis_se": printed.std(ddof=1) / np.sqrt(PRINTED), "basis_n": PRINTED, "n_seeds": n}
            compared.append(lines | told)
        (line,) = pooled({}, pd.DataFrame(values), pd.DataFrame(compared)).to_dict("records")
        holds += line["low"] <= 0 <= line["high"]
        widths.append(line["high"] - line["low"])
    return 100 * holds / draws, float(np.median(widths)) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    quick = parser.parse_args().quick
    draws, rows = 2_000 if quick else 100_000, []
    for rule, counts in ((WELCH, (2, 3, 5, 10)), (OWN, (2, 3, 5, 10)), (UNTOLD, (3, 10)), (ONE_MORE, (1,))):
        for n in counts:
            for sd in (1.0, 4.0):
                grades = {at: simulated(rule, n, sd, at, draws, seed=0) for at in dict.fromkeys(at for at, _ in ASKED)}
                rows.append([rule, n, sd, *(100 * np.mean(grades[at] == grade) for at, grade in ASKED)])
    print(f"Verdicts: grades in % of {draws:,} draws; margins 2 and 5, the paper's runs {PRINTED}")
    heads = ["rule", "runs", "sd", *(f"{at}: {grade}" for at, grade in ASKED)]
    print(tabulate(rows, heads, "github", floatfmt=".1f"))
    draws, rows = 50 if quick else 400, []
    for seeds in ([3] * 15, [10] * 15, [2] * 8 + [10] * 7, [1] * 10 + [3] * 5, [1] * 15):
        told = " ".join(f"{seeds.count(n)} of {n}" for n in dict.fromkeys(seeds))
        for shared, own in ((1, 1), (2, 0.5), (0.2, 2)):
            rows.append([told, shared, own, *covered(seeds, shared, own, draws, seed=0)])
    print(f"Pooled lines: how often the 95 % interval holds the truth, in % of {draws:,} draws")
    print(tabulate(rows, ["cells of runs", "sd shared", "sd own", "held", "half-width"], "github", floatfmt=".1f"))


if __name__ == "__main__":
    main()
