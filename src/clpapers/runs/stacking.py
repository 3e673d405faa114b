"""Measures whether a machine's CPU trains seeds of an MLP faster as a stack than one after the other.

A stack saves the overhead of calls and needs more cache. It depends on the machine, which of the two weighs more.
"""

import statistics
import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch

from clpapers.runs import learners, loop
from clpapers.runs.cuda_graphs import observe
from clpapers.runs.images import Images
from clpapers.runs.scenario import scenario
from clpapers.streams.orders import NO_BOUNDARIES, NO_TRANSFORMS
from clpapers.streams.stream import Stream

SEEDS, ITEMS, SHAPE, CLASSES = 5, 1000, (28, 28, 1), 10  # a block of seeds, and images
STEPS, TURNS = 4, 7
CELL: dict = {  # a net as large as the papers'
    "dataset": "noise",
    "order": {"name": "random", "length": None},
    "oracle": {"name": "none"},
    "restriction": {"train": "none"},
    "learner": {"name": "er", "forward": "separate"},
    "net": {"name": "mlp", "hidden": [256, 256]},
    "budget": {"optimizer": "sgd", "learning_rate": 0.01, "batch": 10, "replay_batch": 10, "memory": 200},
    "scaling": "symmetric",
    "evaluation": {"points": 1, "probes": 1, "test": None, "oracles": {}},
    "precision": "float32",
}


def gain() -> float:
    """The CPU time of a step of `SEEDS` seeds one after the other, as a multiple of their stack's.

    Both take turns; the median of the turns counts, after a first one that fills caches and memory.
    """
    turns = []
    alone, stacked = _steps(1), _steps(SEEDS)
    for _ in range(1 + TURNS):
        began = [time.process_time()]
        for steps, count in ((alone, SEEDS * STEPS), (stacked, STEPS)):
            for _ in range(count):
                next(steps)
            began.append(time.process_time())
        one, other = (after - before for before, after in pairwise(began))
        turns.append(one / max(other, 1e-9))
    return statistics.median(turns[1:])


def _steps(size: int) -> Iterator[None]:
    """Steps of a stack of `size` seeds, on noise."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (ITEMS, *SHAPE), dtype=np.uint8), rng.integers(0, CLASSES, ITEMS)
    data = loop.Data(x, y, x[:1], y[:1], CLASSES)
    n = (1 + TURNS) * STEPS * SEEDS * CELL["budget"]["batch"]
    streams = [
        Stream(rng.integers(0, ITEMS, n), np.arange(n) / n, np.empty((0, 4)), NO_BOUNDARIES, NO_TRANSFORMS, seed)
        for seed in range(size)
    ]
    images = Images(x, CELL["scaling"], torch.device("cpu"), torch.float32)
    setting = loop.setting_of(CELL, data, [scenario(CELL, each, y, y[:1], CLASSES) for each in streams], images)
    learner = learners.create(CELL["learner"], setting)
    for t in range(len(setting.ends)):
        observe(learner, t)
        yield
