"""Violated constraints by task (`agem`, Figure 6): how far each run is from the mean of the others, and the notebook.

The notebook has one number a task, without a spread. If it is of one run, it is as far from the mean as a run is.

In the project's folder, after any build:
    python docs/findings/agem_steps.py mnist/permuted_pixels-17-n55000 a_gem-05fa298b10 A-GEM "Permuted MNIST"
    python docs/findings/agem_steps.py cifar100/split_range-15-99-17 a_gem-f42ab8ee95 A-GEM "Split CIFAR"
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

stream, cell, row, column = sys.argv[1:]
steps = {}
for path in Path("results/paper").glob(f"*/{stream}/{cell}/seed*.json"):  # trained here or imported
    if not path.name.endswith(".record.json"):
        for run in json.loads(path.read_text())["seeds"]:
            steps[f"seed {run['seed']}"] = np.array(run["learner"]["violations"])
reported = pd.read_csv("config/reported/agem.csv")
figure = reported[(reported["target"] == "figure6") & (reported["column"] == column)]
steps["the notebook"] = figure[figure["row"].str.startswith(f"{row}, ")]["authors"].to_numpy()
for name, own in sorted(steps.items()):
    others = [each for other, each in steps.items() if other not in (name, "the notebook")]
    if others:
        apart = (own - np.mean(others, axis=0))[1:]  # no constraint before the second task
        far = np.sqrt(np.mean(apart**2))
        by_task = (f"{difference:+.0f}" for difference in apart)
        print(f"{name}: {own.sum():,.0f} in all, {far:.0f} a task from the mean of the others;", *by_task)
