"""Runs trained here on a core against published ones of the same seeds from a card: python docs/findings/card_pairs.py

Prints the card's average accuracy after the last task minus the core's, in points: each pair, each learner's mean, and
the mean of all with its 95 % interval. Train the runs first: snakemake results/paper/runs/…/seed0.json --cores
"""

import json
from collections import defaultdict

import numpy as np
from scipy import stats

from clpapers.archive.imported import imported
from clpapers.config.paths import RESULTS
from clpapers.provenance import read_record

TOP = RESULTS / "paper" / "runs"


def accuracy(path, seed):
    """The mean accuracy on all tasks after the last one, in %; NaN for a run that is not tested task by task."""
    (run,) = (each for each in json.loads(path.read_text())["seeds"] if each["seed"] == seed)
    if "tasks" not in run:
        return np.nan
    return 100 * float(np.mean(np.divide(run["tasks"]["correct"][-1], np.atleast_2d(run["tasks"]["total"])[-1])))


differences = defaultdict(list)
for path, seeds in (each for files in imported("paper").values() for each in files.items()):
    record = read_record(path)
    for seed in seeds if record["hardware"]["device"] != "cpu" else ():
        here = TOP.joinpath(*path.parent.parts[-3:], f"seed{seed}.json")
        if here.is_file() and not np.isnan(difference := accuracy(path, seed) - accuracy(here, seed)):
            differences[record["cell"]["learner"]["name"]].append(difference)
            print(f"{here}: {difference:+.2f}")
for learner, each in differences.items():
    print(f"{learner}, {len(each)} pairs: {np.mean(each):+.2f}")
every = np.concatenate(list(differences.values()))
half = stats.sem(every) * stats.t.ppf(0.975, len(every) - 1)
print(f"all {len(every)} pairs: {every.mean():+.2f} [{every.mean() - half:+.2f}, {every.mean() + half:+.2f}]")
