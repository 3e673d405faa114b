"""Two cells of `stf` on the same streams: final accuracy and average information retention, seed by seed and paired.

In the project's folder, after any build:
    python docs/findings/stf_pairs.py cifar10/stf-0.057735 er-b9a5a5d44f er-b6ecdc1dcc
    python docs/findings/stf_pairs.py cifar10/stf-0.057735 ace-06d5e35dd2 ace-ecd4fe1560
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from clpapers.metrics.accuracy import average_information_retention, unpack
from clpapers.metrics.intervals import paired

stream, *cells = sys.argv[1:]
found = {}
for cell in cells:
    rows = {}
    for path in Path("results/paper").glob(f"*/{stream}/{cell}/seed*.json"):  # trained here or imported
        if path.name.endswith(".record.json"):
            continue
        for run in json.loads(path.read_text())["seeds"]:
            position, time = (np.array(run["probes"][part]) for part in ("position", "time"))
            retention = average_information_retention(unpack(run["probes"]["correct"], position, time), position, time)
            test = run["test"]["none"]
            final = np.sum(test["correct"]) / np.sum(test["total"])
            rows[run["seed"]] = {"final accuracy": 100 * final, "average information retention": 100 * retention}
    found[cell] = pd.DataFrame.from_dict(rows, orient="index").sort_index()
    print(cell, found[cell].round(1), sep="\n")
for metric in found[cells[0]]:
    compared = paired(*(found[cell][metric] for cell in cells))
    difference = f"{compared.difference:+.1f} [{compared.low:.1f}, {compared.high:.1f}]"
    print(f"{metric}: {difference}, {compared.n} pairs")
