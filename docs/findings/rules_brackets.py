"""The brackets of `rules`, against the binomial deviation of its guesses and our deviations of trained cells.

After `snakemake rules --cores --config hours=0`, in the project's folder: python docs/findings/rules_brackets.py
"""

import numpy as np
import pandas as pd

from clpapers import results
from clpapers.config.plan import Plan
from clpapers.evidence.pooled import each_once

ITEMS, RUNS = 10_000, 10  # of a test set; of the paper
targets = [f"{each.paper}/{each.name}" for each in Plan("paper", ["rules"]).targets.values() if each.reported]
lines = each_once(pd.concat([results.compare(name) for name in targets], ignore_index=True)).dropna(subset="against_se")

guesses = lines[lines["kind"] == "guess"]
share = guesses["printed"] / 100
below = guesses["against_se"] / (100 * np.sqrt(share * (1 - share) / ITEMS))
print(f"guesses: {len(below)} brackets, {(below < 2 / 3).sum()} below two thirds of a run's binomial deviation")
print(f"  median {below.median():.2f} of it; 1/√{RUNS}, of a standard error, is {RUNS**-0.5:.2f}")
several = lines[(lines["kind"] == "trained") & (lines["n_seeds"] >= RUNS)]
ratio = several["sd"] / (several["against_se"] * np.sqrt(RUNS))
print(f"trained cells of ten runs: {len(ratio)}; our deviation over bracket·√{RUNS}: median {ratio.median():.2f}")
