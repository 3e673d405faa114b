"""The harness of all learners' tests: small problems, cells and streams, and a learner on its way along them."""

import dataclasses

import numpy as np
import torch
import torch.nn.functional as F

from clpapers.catalogue import methods
from clpapers.runs import learners, loop, nets
from clpapers.runs.checkpoint import Checkpoint
from clpapers.runs.learner import Setting
from clpapers.runs.scenario import Scenario, scenario
from clpapers.streams import orders
from clpapers.streams.orders import NO_TRANSFORMS
from clpapers.streams.stream import Stream

CPU = torch.device("cpu")
METHODS = methods.methods()
torch.set_num_threads(1)  # as in a run
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
LR = 0.1  # of `described`
MLP = {"name": "mlp", "hidden": [6, 5]}
CNN = {"name": "cnn", "width": 2}
RESNET = {"name": "resnet18_reduced", "width": 2, "head": "linear"}
EMBEDDING = {"name": "resnet18_reduced", "width": 2, "head": "joint_embedding"}
LINEAR = {"name": "mlp", "hidden": []}
MEASURED = {"gradients": {"batches": 3, "size": 4, "repetitions": 2}, "trace": 5}  # by learners that declare it
BY_TASK = {"batch": "task", "optimizer": "adam", "learning_rate": 0.01}  # budget of learners of whole tasks
NONE, MIXED, CHUNKS = {"name": "none"}, {"name": "mixed"}, {"name": "chunks"}
RANDOM = {"name": "random", "length": None}
SPLIT = {"name": "split", "tasks": 2, "length": None}
DOMAINS = {"name": "permuted_pixels", "tasks": 3, "length": None}

STATIC = [each for each in VARIANTS if METHODS[each[0]].with_options(each[1]).static]
# The CNN is no net of theirs, or no net is.
OF_ONE_NET = {name for name, method in METHODS.items() if method.own_nets} - {"multi_model", "offline"} | {"gr"}


def images(classes=4, items=20, shape=(4, 4, 1), test_items=4):
    """A data set: noisy prototypes of each class, sorted by label, with attributes of the classes."""
    rng = np.random.default_rng(0)
    prototypes = rng.integers(40, 215, (classes, *shape))

    def split(n):
        y = np.repeat(np.arange(classes), n)
        return (prototypes[y] + rng.normal(0, 30, (n * classes, *shape))).clip(0, 255).astype(np.uint8), y

    return loop.Data(*split(items), *split(test_items), classes=classes, attributes=known(classes))


def known(classes, attributes=7):
    """Random attributes of each class, rows of length 1."""
    table = np.random.default_rng(1).random((classes, attributes), dtype=np.float32)
    return table / np.linalg.norm(table, axis=1, keepdims=True)


def problem() -> loop.Data:
    """Four classes of noisy 8×8 colour prototypes; 120 training and 24 test images."""
    return images(items=30, shape=(8, 8, 3), test_items=6)


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


def two_tasks(learner, net, *, oracle=None, order=None, train="none", scaling="unit", **budget):
    """A complete cell of two tasks; a `learner` is its name and options."""
    return described(
        learner,
        net,
        order=order or SPLIT,
        oracle=oracle or split(2),
        train=train,
        scaling=scaling,
        evaluation={"points": 2, "batch": 6},
        **{"replay_batch": 5, "memory": 12} | budget,
    )


def stream(indices, seed=0, boundaries=(), transforms=NO_TRANSFORMS) -> Stream:
    """The stream of these training items, in this order, with these boundaries."""
    n = len(indices)
    edges = np.array(boundaries, dtype=np.int64)
    return Stream(np.asarray(indices), np.arange(n) / n, np.full((4, 4), np.nan), edges, np.asarray(transforms), seed)


def scenarios(spec, data, streams) -> list[Scenario]:
    """The scenarios of a cell along some streams, seed → stream."""
    return [scenario(spec, s, data.train_y, data.test_y, data.classes) for s in streams.values()]


def pictures(spec, data, transforms=()) -> loop.Images:
    """The training images as a cell's learner sees them."""
    return loop.Images(data.train_x, spec["scaling"], CPU, torch.float64, transforms)


def setting(spec, data, streams) -> Setting:
    """The setting of a cell's learner for some streams, stacked."""
    gone_through = scenarios(spec, data, streams)
    return loop.setting_of(spec, data, gone_through, pictures(spec, data, [c.transforms for c in gone_through]))


def course(learner, options, net, data, seeds=2, **budget):
    """A cell with a change of task, masks, tests on the way and last batches of another size, and its streams."""
    method = METHODS[learner]
    oracle = CHUNKS if method.tasks_once or {"changes", "competing"} & {*method.uses} else NONE
    train = "oracle" if "competing" in method.uses else "none"
    spec = cell(learner, options, net, order=SPLIT, oracle=oracle, train=train, batch=4, **budget)
    return spec, {seed: orders.make(SPLIT, data.train_y, seed) for seed in range(seeds)}


def made(spec, data, seed=0):
    """The stream that the cell's order makes."""
    return orders.make(spec["order"], data.train_y, seed)


class Way:
    """A learner along the scenarios of some streams, one a seed; `given` takes the place of parts of its setting."""

    def __init__(self, spec, data, streams, **given):
        self.spec, self.data = spec, data
        self.scenarios = scenarios(spec, data, dict(enumerate(streams)))
        self.setting = dataclasses.replace(setting(spec, data, dict(enumerate(streams))), **given)
        self.learner = learners.create(spec["learner"], self.setting)
        self.changes = self.scenarios[0].changes
        self.t = 0

    def batch(self, t):
        """Images [S, B, C, H, W] and labels [S, B] of a step."""
        now = self.setting.step(t)
        return self.setting.images(self.setting.items[:, now]), self.setting.labels[:, now]

    def step(self):
        """The next step, as the loop takes it; returns loss and logits."""
        t, self.t = self.t, self.t + 1
        if self.changes[t]:
            self.learner.task_change(t)
        return self.learner.observe(t, *self.batch(t))

    def walk(self, until=None):
        """All steps (up to number `until`); returns the learner."""
        while self.t < (len(self.changes) if until is None else until):
            self.step()
        return self.learner

    def ordinary(self, purpose="init", s=0, net=None, shape=None, classes=None):
        """The net of one seed as an ordinary module, not yet trained."""
        torch.manual_seed(self.setting.init(purpose)[s])
        shape, classes = shape or self.setting.images.shape, classes or self.setting.classes
        known = self.data.attributes
        table = None if known is None else torch.from_numpy(known[self.scenarios[s].class_of_output])
        return nets.build(net or self.spec["net"], shape, classes, attributes=table).double().train()

    def optimizer(self, net):
        """The budget's, as torch has it by default."""
        kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[self.spec["budget"]["optimizer"]]
        return kind(net.parameters(), lr=self.spec["budget"]["learning_rate"])

    def mask(self, t, s=0):
        """The classes that compete at a step, as a list; all where training is not masked."""
        masks = self.setting.masks
        return list(range(self.setting.classes)) if masks is None else masks[s, t].nonzero()[:, 0].tolist()


def cross_entropy(logits, y, allowed):
    """Mean cross-entropy of the softmax over the `allowed` classes: logits [B, K], labels [B]."""
    return F.cross_entropy(logits[:, allowed], torch.tensor([allowed.index(c) for c in y.tolist()]))


def assert_same_net(stacked, ordinary, s=0, rtol=1e-9, atol=1e-11):
    """Parameters and floating buffers of seed number s of a stack, against an ordinary module's."""
    for part in ("parameters", "buffers"):
        theirs = [v for v in getattr(ordinary, part)() if v.is_floating_point()]
        ours = [v for v in getattr(stacked, part)() if v.is_floating_point()]
        for mine, other in zip(ours, theirs, strict=True):
            mine = (mine if mine.numel() == other.numel() else mine[s]).view(other.shape)
            torch.testing.assert_close(mine, other, rtol=rtol, atol=atol)


GAN = {"name": "gan_mlp", "latent": 3, "width": 4, "epochs": 2, "batch": 6, "learning_rate": 0.01}
VGR = {
    "name": "vgr",
    "epochs": 2,
    "batch": 25,
    "batch_per_task": False,
    "initial_variance": 0.02,
    "samples": 3,
    "prediction_samples": 7,
    "generated": 4,
    "fit_mean": "every_task",
    "gan": GAN,
}


class Killed(Exception):
    """The end of a training that is not over."""


class Kept(Checkpoint):
    """Ends the training once it has saved the state before a step."""

    def __init__(self, path, step):
        super().__init__(path, {})
        self.asked, self.step = 0, step

    def is_due(self):
        self.asked += 1
        return self.asked == self.step

    def save(self, *state, **told):
        super().save(*state, **told)
        raise Killed


def stacked(spec, data, streams, kept=None):
    """The results of some seeds, as one stack where the learner allows it; saved where and when `kept` says."""
    named = spec["learner"]
    if not learners.find(named["name"], named.get("file")).stackable:
        return loop.train(spec, data, streams, CPU, None, kept)
    course = loop.Course(spec, data, scenarios(spec, data, streams), CPU, kept)
    for taken in course.steps():
        if kept is not None and taken < course.count and kept.is_due():
            course.save(kept)
    return course.results()


def assert_same(one, other):
    """Equal results of a seed, but for the last digits of its losses."""
    for key in one.keys() - {"online"}:
        assert one[key] == other[key], key
    assert one["online"]["correct"] == other["online"]["correct"]
    if one["online"]["loss"] is not None:
        np.testing.assert_allclose(one["online"]["loss"], other["online"]["loss"], rtol=1e-5)
