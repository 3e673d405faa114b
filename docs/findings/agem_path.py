"""A stream of `agem`, task by task: LCA, and the average accuracy on the tasks so far, of all runs that are there.

In the project's folder, after any build:
    python docs/findings/agem_path.py cifar100/split_range-15-99-17 a_gem a_gem_all_classes gem
    python docs/findings/agem_path.py mnist/permuted_pixels-17-n55000 single
"""

import json
import sys
from pathlib import Path

import numpy as np

LATER = 8  # from this task on; A of `agem/table4` is the last one's alone

found = {}
for path in Path("results/paper").glob(f"*/{sys.argv[1]}/*/seed*.json"):  # trained here or imported
    if path.name.endswith(".record.json") or path.parent.name.rpartition("-")[0] not in sys.argv[2:]:
        continue
    for run in json.loads(path.read_text())["seeds"]:
        right, shots, total = (np.sum(run["tasks"][part], axis=-1) for part in ("correct", "shots", "total"))
        so_far = [100 * np.mean(row[: t + 1] / total[: t + 1]) for t, row in enumerate(right)]
        lca = np.trapezoid((shots / total[:, None]).mean(axis=0)) / (shots.shape[1] - 1)
        found[path.parent.name, run["seed"]] = lca, so_far
for (cell, seed), (lca, so_far) in sorted(found.items()):
    later = np.mean(so_far[LATER - 1 :])
    print(f"{cell} seed {seed}: LCA {lca:.3f}; {later:.1f} from task {LATER} on;", *(f"{each:.1f}" for each in so_far))
