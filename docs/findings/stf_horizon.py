"""Average information retention of cells of `stf` over the latest part of the past, in percent, mean of their runs.

A horizon of 0.25 asks, at each evaluation, of the latest quarter of a stream's length; 1 is the metric of Table 1.

In the project's folder, after any build:
    python docs/findings/stf_horizon.py cifar100/stf-0.0288675 er-222684224c gdumb-78d0740fc8
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from clpapers.metrics.accuracy import seen, unpack

HORIZONS = (1, 0.5, 0.25, 0.1)

stream, *cells = sys.argv[1:]
found = []
for cell in cells:
    for path in Path("results/paper").glob(f"*/{stream}/{cell}/seed*.json"):  # trained here or imported
        if path.name.endswith(".record.json"):
            continue
        for run in json.loads(path.read_text())["seeds"]:
            position, time = (np.array(run["probes"][part]) for part in ("position", "time"))
            correct = unpack(run["probes"]["correct"], position, time)
            for horizon in HORIZONS:
                asked = seen(position, time) & ~seen(position, time - horizon * time[-1])
                shares = [right[those].mean() for right, those in zip(correct, asked) if those.any()]
                told = {"cell": cell, "seed": run["seed"], "horizon": horizon, "retention": 100 * np.mean(shares)}
                found.append(told)
table = pd.DataFrame(found).pivot_table(index="cell", columns="horizon", values="retention", sort=False)
print(table[list(HORIZONS)].assign(runs=pd.DataFrame(found).groupby("cell")["seed"].nunique()).round(1))
