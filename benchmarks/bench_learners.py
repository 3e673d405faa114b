"""Each learner's steps per second at S = 1, against a bare hand-written loop: `python benchmarks/bench_learners.py`.

The real loop and the bare one take turns of some steps each, in one process, so other work on the machine slows both.
The ratio is the median over the turns. On a CPU the clock is the process's own CPU time; for one thread, that is the
wall clock of an idle machine. A memory's plan, made before the first step, is counted in.
"""

import argparse
import itertools
import os
import statistics
import time
from unittest import mock

import bare
import numpy as np
import torch
from tabulate import tabulate
from tqdm import tqdm

from clpapers.runs import learners, loop, nets
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner
from clpapers.runs.scenario import scenario
from clpapers.streams.orders import NO_BOUNDARIES, NO_TRANSFORMS
from clpapers.streams.stream import Stream

OPTIONS = {
    "er": {"forward": "separate"},
    "mir": {"candidates": bare.CANDIDATES, "forward": "separate"},
    "cbrs": {"replay": "uniform", "forward": "separate"},
    "gdumb": {"memory_batch": bare.MEMORY_BATCH},
    "gmed": {"alpha": bare.ALPHA, "beta": bare.BETA, "decay": 0.0, "sign": "paper", "forward": "separate"},
    "ace": {"forward": "separate"},
}
NETS = {  # name → net, (H, W, C) of the images, classes
    "mlp": ({"name": "mlp", "hidden": [256, 256]}, (28, 28, 1), 10),
    "cnn": ({"name": "cnn", "width": 32}, (28, 28, 1), 47),
    "resnet18_reduced": ({"name": "resnet18_reduced", "width": 20, "head": "linear"}, (32, 32, 3), 10),
}
BUDGET = {
    "optimizer": "sgd",
    "learning_rate": bare.LEARNING_RATE,
    "batch": bare.BATCH,
    "replay_batch": bare.BATCH,
    "memory": bare.CAPACITY,
}
WARM_UP = 6  # steps until every memory holds all that MIR's candidates ask for
ITEMS = 20_000  # too many to be learnt by heart: gradients that vanish slow a CPU down


def clock(device: torch.device) -> float:
    """Seconds: of CPU time on a CPU, of the wall with the queue drained on a GPU."""
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def random_data(net: str, items: int) -> loop.Data:
    """Noise in the shape of the net's images; a test set of one item."""
    _, shape, classes = NETS[net]
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (items, *shape), dtype=np.uint8)
    y = rng.integers(0, classes, items)
    return loop.Data(x, y, x[:1], y[:1], classes)


def cell(net: str, method: str) -> dict:
    """The cell of a method on a net."""
    return {
        "dataset": net,
        "order": {"name": "random", "length": None},
        "oracle": {"name": "none"},
        "restriction": {"train": "none"},
        "learner": {"name": method, **OPTIONS[method]},
        "net": NETS[net][0],
        "budget": BUDGET,
        "scaling": "symmetric",
        "evaluation": {"points": 1, "probes": 1, "test": None, "oracles": {}},
        "precision": "float32",
    }


def stream(indices: np.ndarray, seed: int = 0) -> Stream:
    """The task-free stream of these training items, which it may repeat."""
    times = np.arange(len(indices)) / len(indices)
    return Stream(indices, times, np.empty((0, 4)), NO_BOUNDARIES, NO_TRANSFORMS, seed)


def learner(net: str, method: str, data: loop.Data, streams: np.ndarray, device: torch.device) -> Learner:
    """A learner with as many seeds as there are streams [S, n], apart from the loop."""
    spec = cell(net, method)
    images = Images(data.train_x, "symmetric", device, torch.float32)
    given = (stream(indices, seed) for seed, indices in enumerate(streams))
    scenarios = [scenario(spec, each, data.train_y, data.test_y, data.classes) for each in given]
    return learners.create(spec["learner"], loop.setting_of(spec, data, scenarios, images))


def planning(net: str, method: str, device: torch.device, steps: int = 1000) -> float:
    """Seconds a step that a learner spends before the first one, on the plan of its memory and its draws."""
    data = random_data(net, 100)
    streams = np.random.default_rng(0).integers(0, 100, (1, steps * bare.BATCH))
    few = streams[:, : bare.BATCH]
    seconds = []
    for n in (few, few, streams):  # the first is for imports and caches
        started = clock(device)
        learner(net, method, data, n, device)
        seconds.append(clock(device) - started)
    return (seconds[-1] - seconds[-2]) / steps


def turns(net: str, method: str, seconds: float, device: torch.device) -> tuple[list[float], list[float]]:
    """Seconds a step in each turn of the bare loop and of `loop.train`, which alternate for about `seconds` each."""
    data = random_data(net, ITEMS)
    torch.manual_seed(0)
    script = bare.METHODS[method](
        nets.build(NETS[net][0], (NETS[net][1][2], *NETS[net][1][:2]), data.classes).to(device).train(),
        torch.from_numpy(data.train_x).to(device),
        torch.from_numpy(data.train_y).to(device),
        torch.randint(ITEMS, (1_000_000,)),
    )

    def of_script(steps: int) -> float:
        started = clock(device)
        for _ in range(steps):
            next(script)
        return (clock(device) - started) / steps

    of_script(WARM_UP)
    one_step = of_script(1)
    steps = max(1, round(0.1 / one_step))  # a turn of 0.1 s, or of one step
    rounds = max(3, round(seconds / (steps * one_step)))
    bare_turns, loop_turns = [], []

    def taking_turns(every, **options):
        """The loop's progress bar; between the loop's turns, the script has its own."""
        with open(os.devnull, "w") as nowhere:
            bar = iter(tqdm(every, **options | {"file": nowhere}))
            yield from itertools.islice(bar, WARM_UP)
            for _ in range(rounds):
                bare_turns.append(of_script(steps))
                started = clock(device)
                yield from itertools.islice(bar, steps)
                loop_turns.append((clock(device) - started) / steps)

    items = np.random.default_rng(0).integers(0, ITEMS, (WARM_UP + rounds * steps) * bare.BATCH)
    with mock.patch.object(loop, "tqdm", taking_turns):
        loop.train(cell(net, method), data, {0: stream(items)}, device)
    return bare_turns, loop_turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--nets", nargs="+", choices=NETS, default=list(NETS))
    parser.add_argument("--learners", nargs="+", choices=OPTIONS, default=list(OPTIONS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows = []
    for net in options.nets:
        for method in options.learners:
            plan = planning(net, method, device)
            bare_turns, loop_turns = turns(net, method, 0.6 if options.quick else 5.0, device)
            ratios = sorted((ours + plan) / theirs for theirs, ours in zip(bare_turns, loop_turns))
            rows.append(
                (
                    net,
                    method,
                    1 / (statistics.median(loop_turns) + plan),
                    1 / statistics.median(bare_turns),
                    statistics.median(ratios),
                    f"{ratios[len(ratios) // 4]:.2f} - {ratios[-1 - len(ratios) // 4]:.2f}",
                )
            )
    print(f"Steps a second at S = 1 on {device.type}; ratio = clpapers' time / bare loop's time, median of turns")
    headers = ["net", "learner", "clpapers steps/s", "bare steps/s", "ratio", "quartiles"]
    print(tabulate(rows, headers, floatfmt=("", "", ".1f", ".1f", ".3f", "")))


if __name__ == "__main__":
    main()
