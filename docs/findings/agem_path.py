"""Split CIFAR of `agem`, task by task: the average accuracy on the tasks so far, of all runs that are there.

In the project's folder, after any build: python docs/findings/agem_path.py a_gem a_gem_all_classes gem
"""

import json
import sys
from pathlib import Path

import numpy as np

LATER = 8  # from this task on; A of `agem/table4` is the last one's alone

found = {}
for path in Path("results/paper").glob("*/cifar100/split_range-15-99-17/*/seed?.json"):  # trained here or imported
    for run in json.loads(path.read_text())["seeds"]:
        correct, total = (np.sum(run["tasks"][part], axis=-1) for part in ("correct", "total"))
        so_far = [100 * np.mean(right[: t + 1] / total[: t + 1]) for t, right in enumerate(correct)]
        found[path.parent.name, run["seed"]] = so_far
for (cell, seed), so_far in sorted(found.items()):
    if cell.rpartition("-")[0] in sys.argv[1:]:
        mean = np.mean(so_far[LATER - 1 :])
        print(f"{cell} seed {seed}: {mean:.1f} from task {LATER} on;", *(f"{each:.1f}" for each in so_far))
