"""The tiny problem of this stage's tests: options, nets, cells, streams and what learners are given."""

import numpy as np
import torch

from clpapers.catalogue import methods
from clpapers.runs import loop
from clpapers.runs.checkpoint import Checkpoint
from clpapers.runs.learner import Setting
from clpapers.runs.scenario import Scenario, scenario
from clpapers.streams import orders
from clpapers.streams.orders import NO_TRANSFORMS
from clpapers.streams.stream import Stream

CPU = torch.device("cpu")
METHODS = methods.methods()
OPTIONS = {name: method.examples()[0] for name, method in METHODS.items()}
VARIANTS = [(name, options) for name, method in METHODS.items() for options in method.examples()]
# Learning is compared on the MLP and the CNN: a ResNet on 8×8 images ends in 1×1 maps, where batch norm over a handful
# of numbers multiplies rounding errors by ten or more a step.
NETS = {
    "mlp": {"name": "mlp", "hidden": [16]},
    "exstream": {"name": "exstream_mlp", "hidden": [16, 12], "batch_norm": True, "dropout": 0.0},
    "cnn": {"name": "cnn", "width": 3},
    "resnet": {"name": "resnet18_reduced", "width": 2, "head": "linear"},
    "cosine": {"name": "resnet18_reduced", "width": 2, "head": "cosine"},
    "resnet18": {"name": "resnet18", "width": 2, "pool": True, "head": "linear", "weights": "none"},
    "embedding": {"name": "resnet18_reduced", "width": 2, "head": "joint_embedding"},
}
MEASURED = {"gradients": {"batches": 3, "size": 4, "repetitions": 2}, "trace": 5}  # by learners that declare it
BY_TASK = {"batch": "task", "optimizer": "adam", "learning_rate": 0.01}  # budget of learners of whole tasks
NONE, MIXED, CHUNKS = {"name": "none"}, {"name": "mixed"}, {"name": "chunks"}
RANDOM = {"name": "random", "length": None}
SPLIT = {"name": "split", "tasks": 2, "length": None}
DOMAINS = {"name": "permuted_pixels", "tasks": 3, "length": None}

STATIC = [each for each in VARIANTS if METHODS[each[0]].with_options(each[1]).static]
# The CNN is no net of theirs, or no net is.
OF_ONE_NET = {name for name, method in METHODS.items() if method.own_nets} - {"multi_model", "offline"} | {"gr"}


def problem() -> loop.Data:
    """Four classes of noisy 8×8 colour prototypes; 120 training and 24 test images, sorted by label."""
    rng = np.random.default_rng(0)
    prototypes = rng.integers(40, 215, (4, 8, 8, 3))

    def split(n):
        y = np.repeat(np.arange(4), n // 4)
        return (prototypes[y] + rng.normal(0, 30, (n, 8, 8, 3))).clip(0, 255).astype(np.uint8), y

    return loop.Data(*split(120), *split(24), classes=4)


def split(tasks: int, *, aligned: bool = True) -> dict:
    """The oracle that splits the classes into tasks."""
    return {"name": "split", "tasks": tasks, "aligned": aligned}


def told(learner: str) -> dict:
    """An oracle that the learner can do with on a drifting stream, and that shows it all that it looks at.

    Tasks, where it looks at them, change at the same steps of every seed.
    """
    method = METHODS[learner]
    if method.tasks_once:
        return NONE
    return split(2) if method.answers_by_task else MIXED if "changes" in method.uses else NONE


def described(learner, net, *, order, oracle, train="none", scaling, evaluation, **budget):
    """A complete cell, in float64; `learner` is its name and options."""
    return {
        "dataset": "tiny",
        "order": order,
        "oracle": oracle,
        "restriction": {"train": train},
        "learner": learner,
        "net": net,
        "budget": {"optimizer": "sgd", "learning_rate": 0.1, "batch": 5, "replay_batch": 4, "memory": 20} | budget,
        "scaling": scaling,
        "evaluation": {"probes": 20, "test": None, "oracles": {}} | evaluation,
        "precision": "float64",
    }


def cell(learner, options, net="resnet", *, oracle=NONE, train="none", order=RANDOM, oracles=None, **budget):
    """A complete cell on the tiny problem: with what its learner needs, and what only it measures."""
    method = METHODS[learner].with_options(options)
    return described(
        {"name": learner, **options},
        NETS[net],
        order=order,
        oracle=oracle,
        train=train,
        scaling=method.needs.get("scaling", ["symmetric"])[0],
        evaluation={"points": 3, "probes": 17, "oracles": oracles or {}} | {k: MEASURED[k] for k in method.measures},
        **budget | (BY_TASK if "budget.batch" in method.needs else {}),
    )


def stream(indices, seed=0, boundaries=(), transforms=NO_TRANSFORMS) -> Stream:
    """The stream of these training items, in this order, with these boundaries."""
    n = len(indices)
    edges = np.array(boundaries, dtype=np.int64)
    return Stream(np.asarray(indices), np.arange(n) / n, np.full((4, 4), np.nan), edges, np.asarray(transforms), seed)


def scenarios(spec, data, streams) -> list[Scenario]:
    """The scenarios of a cell along some streams, seed → stream."""
    return [scenario(spec, s, data.train_y, data.test_y, data.classes) for s in streams.values()]


def images(spec, data, transforms=()) -> loop.Images:
    """The training images as a cell's learner sees them."""
    return loop.Images(data.train_x, spec["scaling"], CPU, torch.float64, transforms)


def setting(spec, data, streams) -> Setting:
    """What a cell's learner is given for some streams, stacked."""
    gone_through = scenarios(spec, data, streams)
    return loop.setting_of(spec, data, gone_through, images(spec, data, [c.transforms for c in gone_through]))


def course(learner, options, net, data, seeds=2, **budget):
    """A cell with a change of task, masks, tests on the way and last batches of another size, and its streams."""
    method = METHODS[learner]
    oracle = CHUNKS if method.tasks_once or {"changes", "competing"} & {*method.uses} else NONE
    train = "oracle" if "competing" in method.uses else "none"
    spec = cell(learner, options, net, order=SPLIT, oracle=oracle, train=train, batch=4, **budget)
    return spec, {seed: orders.make(SPLIT, data.train_y, seed) for seed in range(seeds)}


class Killed(Exception):
    pass


class Kept(Checkpoint):
    """Ends the training once it has saved the state before a step."""

    def __init__(self, path, step):
        super().__init__(path, {})
        self.asked, self.step = 0, step

    def is_due(self):
        self.asked += 1
        return self.asked == self.step

    def save(self, *state):
        super().save(*state)
        raise Killed
