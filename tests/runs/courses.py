"""A learner on its way along hand-made streams: its setting made as the loop makes it, small and in float64."""

import numpy as np
import torch
import torch.nn.functional as F
from tiny import described, scenarios, setting, split

from clpapers.runs import learners, loop, nets
from clpapers.streams import orders

torch.set_num_threads(1)  # as in a run
LR = 0.1  # of `described`
MLP = {"name": "mlp", "hidden": [6, 5]}
CNN = {"name": "cnn", "width": 2}
RESNET = {"name": "resnet18_reduced", "width": 2, "head": "linear"}
EMBEDDING = {"name": "resnet18_reduced", "width": 2, "head": "joint_embedding"}
LINEAR = {"name": "mlp", "hidden": []}


def images(classes=4, items=20, shape=(4, 4, 1), test_items=4):
    """Noisy prototypes of each class, sorted by label."""
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


def cell(learner, net, *, oracle=None, order=None, train="none", scaling="unit", **budget):
    """A complete cell of two tasks; a `learner` is its name and options."""
    return described(
        learner,
        net,
        order=order or {"name": "split", "tasks": 2, "length": None},
        oracle=oracle or split(2),
        train=train,
        scaling=scaling,
        evaluation={"points": 2, "batch": 6},
        **{"replay_batch": 5, "memory": 12} | budget,
    )


def made(spec, data, seed=0):
    """The stream that the cell's order makes."""
    return orders.make(spec["order"], data.train_y, seed)


class Way:
    """A learner along the scenarios of some streams, one a seed."""

    def __init__(self, spec, data, streams):
        self.spec, self.data = spec, data
        self.scenarios = scenarios(spec, data, dict(enumerate(streams)))
        self.setting = setting(spec, data, dict(enumerate(streams)))
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
