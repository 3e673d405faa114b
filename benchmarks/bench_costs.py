"""How far rehearsals are right: `python benchmarks/bench_costs.py`.

The script draws cells of the papers and shortens them until they take seconds. It predicts each by a rehearsal and by
the plan's counts, and then runs it whole. All is CPU time, on random data of the real shape.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import sys
import time

import numpy as np
import torch
from tabulate import tabulate

from clpapers.budget import costs, rehearsals
from clpapers.budget.costs import Row, Sizes
from clpapers.catalogue import methods
from clpapers.config.model import Cell
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.randomness import generator
from clpapers.runs import loop

SECONDS = 3.0  # that a cell takes, roughly
DEAREST, PER_CLASS = 10.0, 20  # seconds of the shortest cell that is run; items of each class that it has
REPEATS = 8  # of what a learner repeats: rehearsals repeat it once and two or four times
VALUES, WIDTH = 50_000, 32  # of an item and of a net with convolutions; of larger ones a step alone takes seconds


def shortened(spec: dict, real: Sizes, per_class: int) -> tuple[dict, Sizes]:
    """A cell over so many items of each class, with fewer tests and repetitions, and the data's sizes."""
    spec = copy.deepcopy(spec)
    train = min(per_class * real.classes, real.train)
    size = dataclasses.replace(real, train=train, test=min(real.test, max(1000, 5 * real.classes)))
    spec["order"]["length"] = None
    if "items" in spec["order"]:
        spec["order"]["items"] = train
    spec["order"].pop("epochs", None)
    spec["evaluation"] |= {"points": min(spec["evaluation"]["points"], 5), "test": None}
    if "every" in spec["evaluation"]:
        spec["evaluation"]["every"] = max(train // 4, 1)
    if "gradients" in spec["evaluation"]:
        spec["evaluation"]["gradients"] = {"batches": 3, "size": 16, "repetitions": 5}
    if "weights" in spec["net"]:
        spec["net"]["weights"] = "none"
    method, options = methods.method_of(spec["learner"]), spec["learner"]
    for path in method.repeats:
        *above, last = path.split(".")
        inside = options[above[0]] if above else options
        inside[last] = min(inside[last], REPEATS)
    tasks = spec["order"].get("tasks", 1)
    for key in {"coreset", "generated", "stm", "start"} & set(options):
        options[key] = max(min(options[key], train // tasks // 4), 20)
    return spec, size


def compared(plan: Plan, spec: dict, size: Sizes, seeds: range, features: bool) -> tuple[Row, float, loop.Data]:
    """The row that a rehearsal gives, the CPU seconds of a seed that it predicts, and the data."""
    data = rehearsals.noise(size, features=features)
    kind = costs.kind(spec, size.shape, len(seeds))
    row = rehearsals.row(kind, spec, size, data, seeds, seconds=0.2)
    return row, row.seconds(costs.counts(spec, size), spec["learner"]), data


def run(spec: dict, size: Sizes, seeds: list[int], data: loop.Data) -> float:
    """CPU seconds of a seed of a whole run."""
    streams = {seed: costs.stream_of(spec["order"], size, seed) for seed in seeds}
    began = time.process_time()
    loop.train(spec, data, streams, torch.device("cpu"))
    return (time.process_time() - began) / len(seeds)


def held_out(plan: Plan, cells: list[Cell], rng: np.random.Generator) -> tuple[str, float, float, float]:
    """One of the cells, drawn, that is short enough when shortened: its name, predicted, measured, ratio."""
    for at in rng.permutation(len(cells)):
        cell = cells[at]
        real, seeds = costs.sizes(plan, cell.spec["dataset"]), plan.blocks(cell)[0]
        features = "features" in plan.datasets[cell.spec["dataset"]]
        spec, size = shortened(cell.spec, real, PER_CLASS)
        row, predicted, data = compared(plan, spec, size, seeds, features)
        if predicted * row.stack <= DEAREST:
            break
    longer = int(PER_CLASS * np.clip(SECONDS / (predicted * row.stack), 1, 50))
    if longer > PER_CLASS:
        spec, size = shortened(cell.spec, real, longer)
        row, predicted, data = compared(plan, spec, size, seeds, features)
    took = run(spec, size, list(seeds)[: row.stack], data)
    net, tasks = spec["net"].get("width", spec["net"].get("hidden")), spec["order"].get("tasks", 1)
    title = f"{spec['learner']['name']} {spec['dataset']} net {net} {tasks} tasks, {size.train} items × {row.stack}"
    return title, predicted, took, predicted / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", type=int, default=0, help="which cells; another number, others")
    parser.add_argument("--each", type=int, default=2, help="cells of each learner")
    parser.add_argument("--learners", nargs="+", default=[], help="of these alone")
    options = parser.parse_args()
    torch.set_num_threads(1)
    plan = Plan("paper", all_papers())
    of_learner: dict[str, list[Cell]] = {}
    for cell in plan.cells.values():
        small = np.prod(plan.datasets[cell.spec["dataset"]]["shape"]) <= VALUES
        if small and cell.spec["net"].get("width", 0) <= WIDTH:
            of_learner.setdefault(cell.spec["learner"]["name"], []).append(cell)
    lines = []
    try:
        for name, cells in sorted(of_learner.items()):
            if name in options.learners or not options.learners:
                rng = generator(options.draw, f"held out {name}")
                for _ in range(options.each):
                    lines.append(held_out(plan, cells, rng))
                    print(*lines[-1], file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("interrupted: the cells so far", file=sys.stderr)
    print(tabulate(lines, ["held out", "predicted s", "measured s", "ratio"], floatfmt=("", ".2f", ".2f", ".2f")))
    ratios = np.array([ratio for *_, ratio in lines])
    within, off = ((ratios >= 0.75) & (ratios <= 1.25)).sum(), ((ratios < 0.5) | (ratios > 2)).sum()
    print(f"{within} of {len(ratios)} within 25 %, {off} off by more than 2")


if __name__ == "__main__":
    main()
