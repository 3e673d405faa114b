"""Two cells of `stf` on the same streams: final accuracy and average information retention, seed by seed and paired.

A seed at which the two learnt other items (docs/streams.md) is no pair. With fewer than three pairs, the interval is
Welch's.

In the project's folder, after any build:
    python docs/findings/stf_pairs.py cifar10/stf-0.057735 er-b9a5a5d44f er-b6ecdc1dcc
    python docs/findings/stf_pairs.py cifar10/stf-0.057735 ace-06d5e35dd2 ace-ecd4fe1560
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind, ttest_rel

from clpapers.metrics.accuracy import average_information_retention, unpack
from clpapers.provenance import read_record, record_path
from clpapers.streams.older import streams_learnt

stream, *cells = sys.argv[1:]
found, older = {}, {}
for cell in cells:
    rows = {}
    for path in Path("results/paper").glob(f"*/{stream}/{cell}/seed*.json"):  # trained here or imported
        if path.name.endswith(".record.json"):
            continue
        older |= {(cell, seed): digest for seed, digest in streams_learnt(read_record(record_path(path))).items()}
        for run in json.loads(path.read_text())["seeds"]:
            position, time = (np.array(run["probes"][part]) for part in ("position", "time"))
            retention = average_information_retention(unpack(run["probes"]["correct"], position, time), position, time)
            test = run["test"]["none"]
            final = np.sum(test["correct"]) / np.sum(test["total"])
            rows[run["seed"]] = {"final accuracy": 100 * final, "average information retention": 100 * retention}
    found[cell] = pd.DataFrame.from_dict(rows, orient="index").sort_index()
    print(cell, found[cell].round(1), sep="\n")
seeds = found[cells[0]].index.intersection(found[cells[1]].index)
other = [seed for seed in seeds if len({older.get((cell, seed)) for cell in cells}) > 1]
pairs = seeds.difference(other)
paired = len(pairs) > 2
print(f"pairs: {[*pairs]}" if paired else "fewer than three pairs: Welch's interval", f"other items: {other}", sep="; ")
for metric in found[cells[0]]:
    first, second = (found[cell][metric] for cell in cells)
    if paired:
        first, second = first[pairs], second[pairs]
    compared = ttest_rel(first, second) if paired else ttest_ind(first, second, equal_var=False)
    low, high = compared.confidence_interval()
    print(f"{metric}: {first.mean() - second.mean():+.1f} [{low:.1f}, {high:.1f}]")
