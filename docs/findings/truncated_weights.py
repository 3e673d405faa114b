"""First steps with weights as PyTorch before 2.12 drew them: python docs/findings/truncated_weights.py [DATA_FOLDER]

Takes the published runs that begin otherwise by results/published/steps.csv, draws truncated normals as PyTorch did up
to 2.11, takes their first steps again, and prints whether these have the published digits.
"""

import math
import os
import sys
import tempfile
from pathlib import Path

import torch

from clpapers.archive import beginnings
from clpapers.archive.imported import published
from clpapers.builds import steps
from clpapers.builds.verify import Scratch, published_runs, stacked
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers, check_settings
from clpapers.runs import beginning
from clpapers.runs.nets import heads, inits
from clpapers.streams import orders


@torch.no_grad()
def draw_truncated(weight: torch.Tensor, std: float) -> None:
    """Fill `weight` as `nn.init.trunc_normal_` did up to PyTorch 2.11: by the inverse of the error function."""
    within = math.erf(math.sqrt(2))  # of a normal, two deviations
    weight.uniform_(-within, within).erfinv_().mul_(std * math.sqrt(2)).clamp_(-2 * std, 2 * std)


def main(data_folder: str) -> None:
    torch.set_num_threads(1)
    inits.draw_truncated = heads.draw_truncated = draw_truncated
    settings, root = check_settings({"data_folder": data_folder}), Path.cwd()
    plan = Plan("paper", all_papers())
    runs = published_runs(plan, published("paper"))
    outcomes = beginnings.read(Path(beginnings.FILE))
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(plan, settings, Path(folder))
        for name in (each.run for each in outcomes if each.verdict == beginnings.OTHERWISE):
            os.chdir(root)
            if fault := steps._lacking(scratch, Path(name)):
                print(name, fault)
                continue
            run = runs[name]
            begun = steps._begun(plan, name, run.content, 20, stacking=stacked(run.record))
            os.chdir(folder)
            data, (labels, pixels, recorded) = steps._read(begun.dataset, begun.weights, begun.classes)
            streams = {
                seed: orders.make(begun.cell["order"], labels, seed, pixels, recorded, begun.classes)
                for seed in begun.entries
            }
            ours = beginning.begin(begun.cell, data, streams, begun.steps, stacking=begun.stacking)
            same = all(steps._begins(entry, begun.entries[seed]) for seed, entry in ours.items())
            count = len(next(iter(ours.values()))["online"]["loss"])
            print(f"{name}: {'the same digits' if same else 'other digits'} over {count} steps", flush=True)
        os.chdir(root)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "data")
