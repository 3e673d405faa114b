"""Runs of a cell of `rules` that end without learning: the loss of the last batches beside the final accuracy.

A loss of log 2 = 0.69 in a chunk of two classes is a guess. In the project's folder, after any build:
    python docs/findings/rules_stuck.py mnist/split-5 multi_model-6843899c3a multi_model-925f3ef981
"""

import json
import sys
from pathlib import Path

import numpy as np

LAST = 10  # batches of 97 in a chunk

stream, *cells = sys.argv[1:]
for cell in cells:
    runs = {}
    for path in Path("results/paper").glob(f"*/{stream}/{cell}/seed*.json"):  # trained here or imported
        if not path.name.endswith(".record.json"):
            runs |= {run["seed"]: run for run in json.loads(path.read_text())["seeds"]}
    for seed, run in sorted(runs.items()):
        loss, test = np.mean(run["online"]["loss"][-LAST:]), run["test"]["none"]
        accuracy = 100 * np.sum(test["correct"]) / np.sum(test["total"])
        print(f"{cell} seed {seed}: {accuracy:.2f} %, loss of the last {LAST} batches {loss:.2f}")
