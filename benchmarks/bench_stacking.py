"""The gain of a stack of S seeds over one seed at a time: `python benchmarks/bench_stacking.py`.

ER runs in stacks of all sizes that take turns of a step or more each. The clock is the same as in bench_learners.
"""

import argparse
import statistics
from unittest import mock

import numpy as np
import torch
from bench_learners import cell, clock, learner, random_data, stream
from tabulate import tabulate

from clpapers.runs import loop, process

SIZES = (1, 2, 5, 10, 20)


def steps_of(net: str, size: int, data: loop.Data, device: torch.device):
    """A generator of ER's steps on `size` seeds."""
    n = len(data.train_y)
    streams = np.stack([np.random.default_rng(seed).permutation(n) for seed in range(size)])
    er = learner(net, "er", data, streams, device)
    images, items, labels = er.setting.images, er.setting.items, er.setting.labels
    for t in range(len(er.setting.ends)):
        now = er.setting.step(t)
        er.observe(t, images(items[:, now]), labels[:, now])
        yield


def turns(net: str, rounds: int, device: torch.device) -> dict[int, list[float]]:
    """S → seconds a step a seed in each of its turns."""
    data = random_data(net, 20_000)
    stacks = {size: steps_of(net, size, data, device) for size in SIZES}

    def turn(size: int, steps: int) -> float:
        started = clock(device)
        for _ in range(steps):
            next(stacks[size])
        return (clock(device) - started) / steps / size

    for size in SIZES:
        turn(size, 1)  # the memory is empty still
    steps = {size: min(100, max(1, round(0.1 / (turn(size, 1) * size)))) for size in SIZES}
    taken = [{size: turn(size, steps[size]) for size in SIZES} for _ in range(rounds)]
    return {size: [turn[size] for turn in taken] for size in SIZES}


def stack_size(net: str, device: torch.device) -> int:
    """How many of 20 seeds `loop.train` puts into a stack."""
    streams = {seed: stream(np.arange(10), seed) for seed in range(20)}
    sizes = []

    def train_stack(cell, data, scenarios, device, checkpoint):
        sizes.append(len(scenarios))
        return []

    with mock.patch.object(loop, "_train_stack", train_stack):
        loop.train(cell(net, "er"), random_data(net, 10), streams, device)
    return sizes[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    process.prepare(device, "float32")
    rows = []
    for net in ("mlp", "resnet18_reduced"):
        seconds = turns(net, 2 if options.quick else 9, device)
        used = stack_size(net, device)
        for size in SIZES:
            gain = statistics.median(one / each for one, each in zip(seconds[1], seconds[size]))
            made = "yes" if size <= used else "no"
            rows.append((net, size, 1000 * statistics.median(seconds[size]), gain, made))
    print(f"ER in stacks of S seeds on {device.type}; the last column: whether loop.train makes such a stack here")
    print(
        tabulate(
            rows,
            ["net", "S", "ms a step a seed", "gain over S = 1", "used"],
            floatfmt=("", "", ".3f", ".2f", ""),
        )
    )


if __name__ == "__main__":
    main()
