"""Runs trained here on a core against published ones of the same seeds from a card: python docs/findings/card_pairs.py

Prints the card's average accuracy after the last task minus the core's, in points: each pair, each learner's mean, and
the mean of all with its 95 % interval. Train the runs first: snakemake results/paper/runs/…/seed0.json --cores

Runs are a pair if both lose alike on the first batch, so that they began with the same weights. Others are counted:
PyTorch before 2.12 drew a truncated normal otherwise, and the card's runs with `init: truncated_normal` began so.
"""

import json
import sys
from collections import defaultdict

import numpy as np
from scipy import stats

from clpapers.archive.imported import imported
from clpapers.config.paths import RESULTS
from clpapers.provenance import read_record

TOP = RESULTS / "paper" / "runs"
ROUNDING = 1e-4  # of a first loss; other weights make tenths


def read(path, seed):
    """The loss on the first batch, and the mean accuracy on all tasks after the last one, in %; it may be NaN.

    A run that is not tested task by task has no such accuracy.
    """
    (run,) = (each for each in json.loads(path.read_text())["seeds"] if each["seed"] == seed)
    tasks = run.get("tasks", {"correct": [[np.nan]], "total": [[1]]})
    return run["online"]["loss"][0], 100 * float(
        np.mean(np.divide(tasks["correct"][-1], np.atleast_2d(tasks["total"])[-1]))
    )


differences, unlike = defaultdict(list), 0
for path, seeds in (each for files in imported("paper").values() for each in files.items()):
    record = read_record(path)
    for seed in seeds if record["hardware"]["device"] != "cpu" else ():
        here = TOP.joinpath(*path.parent.parts[-3:], f"seed{seed}.json")
        if here.is_file():
            loss, difference = np.subtract(read(path, seed), read(here, seed))
            if not abs(loss) < ROUNDING:
                unlike += 1
                print(f"{here}: other first weights, first losses {loss:+.4f} apart")
            elif not np.isnan(difference):
                differences[record["cell"]["learner"]["name"]].append(difference)
                print(f"{here}: {difference:+.2f}")
for learner, each in differences.items():
    print(f"{learner}, {len(each)} pairs: {np.mean(each):+.2f}")
if not (differences or unlike):
    sys.exit("results/paper/runs: none of these runs was trained here; train some, as this file's first lines say")
print(f"no pair, since they began with other weights: {unlike}")
if every := [each for of_learner in differences.values() for each in of_learner]:
    half = stats.sem(every) * stats.t.ppf(0.975, len(every) - 1)
    print(f"all {len(every)} pairs: {np.mean(every):+.2f} [{np.mean(every) - half:+.2f}, {np.mean(every) + half:+.2f}]")
