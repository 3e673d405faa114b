"""The methods, one a file. A learner implements `observe(t, x, y)`, one step on one stream batch, and what is its own.

Everything has the seed as its first axis: images x [S, B, C, H, W], labels y [S, B], logits [S, B, K], losses [S].
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F

from clpapers.randomness import generator
from clpapers.runs.images import Images
from clpapers.runs.memories import Memory
from clpapers.runs.nets.stacked import Stack
from clpapers.runs.optimizers import OPTIMIZERS, SGD


@dataclasses.dataclass
class Setting:
    """What a learner is given: S streams over one data set, what it is told of them, and the budget.

    items, labels: int64 [S, n], the streams, on the training device.
    ends: int64 [T], stream items seen after each step.
    spec: the cell's net. build: makes a fresh stack of one net a seed; by default the cell's net, from the seeds for
        `torch.manual_seed` that `init` gives.
    oracle: the cell's oracle. tasks: int64 [S, n], the task that it gives each stream position, with `task_count`
        of them. may_hold: bool [S, tasks, K], the classes that each task may hold.
    masks: bool [S, T, K], the classes that compete at each training step; None where all do.
    """

    images: Images
    items: torch.Tensor
    labels: torch.Tensor
    classes: int
    seeds: Sequence[int]
    budget: dict
    ends: np.ndarray
    spec: dict
    build: Callable[..., Stack]
    oracle: dict
    task_count: int
    tasks: torch.Tensor
    may_hold: torch.Tensor
    masks: torch.Tensor | None

    def init(self, purpose: str = "init") -> list[int]:
        """One seed for `torch.manual_seed` a stream, drawn for a purpose."""
        return [int(generator(seed, purpose).integers(2**63)) for seed in self.seeds]

    def net(self, purpose: str = "init", **options) -> Stack:
        """A fresh stack, in training mode; `options` as those of `build`."""
        return self.build(self.init(purpose), **options).train()

    def step(self, t: int) -> slice:
        """The stream positions of step t."""
        return slice(int(self.ends[t - 1]) if t else 0, int(self.ends[t]))


class Learner:
    """A net and its optimiser. Subclasses say what a step is.

    stackable: whether the seeds of a job train as one tensor program; if not, they follow one another.
    looks: whether a step looks at the stream batch itself; if not, it is not even gathered.
    own_nets: whether the learner makes its nets itself; if so, `net` is None unless it says otherwise.
    uncertainty: of a learner that has this method, how uncertain it is of images x, [S, B] in nats, the mutual
        information of prediction and weights; it answers in evaluation, and is asked after each task (`TaskTests`).
    passing: attributes with what belongs to steps of the stream or to tests, not to the learner
        (`holdings.learner_bytes`).
    """

    stackable = True
    looks = True
    own_nets = False
    passing: tuple[str, ...] = ()

    def __init__(self, setting: Setting):
        self.setting, self.classes = setting, setting.classes
        self.learning_rate = setting.budget["learning_rate"]
        self.net = None if self.own_nets else setting.net()
        if not self.own_nets:
            self.parameters = list(self.net.parameters())
            self.optimizer = self.optimize(self.parameters)

    def optimize(self, parameters: Sequence[torch.Tensor]) -> SGD:
        """The budget's optimiser, for some parameters."""
        return OPTIMIZERS[self.setting.budget["optimizer"]](parameters, self.learning_rate)

    def task_change(self, t: int) -> None:
        """The oracle's task changes with the batch of step t, which is learnt next."""

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Learn stream batch number t. Returns its loss [S] and logits [S, B, K] before learning, or None for both.

        A learner that says nothing of a batch before it learns it returns None for both, at every step. One that does
        not look gets no x and y, and returns the loss [S] that it trains on, or None.
        """
        raise NotImplementedError

    def skip(self, t: int) -> None:
        """Go on as if step t had been learnt; a rehearsal (`runs.rehearsal`) leaves most steps out."""

    def prepare(self) -> None:
        """Train what is trained for a test alone; it is called right before each `evaluation`."""

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """Inside, the nets are in evaluation mode and `scores` answers."""
        if self.net is not None:
            self.net.eval()
        yield
        if self.net is not None:
            self.net.train()

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """What is largest for the predicted class, [S, B, K], of images x whose tasks [S, B] the oracle gives."""
        return self.net(x)

    def confidence(self, scores: torch.Tensor) -> torch.Tensor:
        """How sure `scores` [S, B, K] are of their answers, [S, B]: here, as of logits, the largest probability."""
        return scores.softmax(dim=2).amax(dim=2)

    def mask(self, t: int) -> torch.Tensor | None:
        """The classes that compete at step t, bool [S, K]; None where all do."""
        return None if self.setting.masks is None else self.setting.masks[:, t]

    def loss(self, t: int, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Cross-entropy [S] of step t over the classes that compete."""
        return cross_entropy(masked(logits, self.mask(t)), y)

    def step(self, loss: torch.Tensor) -> None:
        """One descent step on the seeds' losses [S]."""
        self.optimizer.zero_grad()
        backward(loss)
        self.optimizer.step()

    def needed_to_answer(self) -> object:
        """What holds the tensors that `scores` needs; it is asked for after an evaluation."""
        return self.net

    def memory_use(self, s: int) -> dict:
        """What the memory of the stack's seed number s holds: items, bytes, items per class."""
        return {"items": 0, "bytes": 0, "per_class": [0] * self.classes}

    def report(self, s: int) -> dict:
        """What the learner itself has to say of the run of the stack's seed number s, ready for JSON."""
        return {}


class Replay(Learner):
    """A learner with a memory that `policy` fills.

    keep_pixels: whether the memory holds the images themselves, for learners that edit them.
    """

    policy = "reservoir"
    keep_pixels = False

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.memory = Memory(
            self.policy,
            setting.budget["memory"],
            setting.images,
            setting.items,
            setting.labels,
            setting.ends,
            setting.seeds,
            keep_pixels=self.keep_pixels,
        )

    def memory_use(self, s: int) -> dict:
        count = self.memory.held(s)
        return {
            "items": count,
            "bytes": count * self.memory.bytes_an_item,
            "per_class": self.memory.per_class(s, self.classes),
        }

    @contextlib.contextmanager
    def looking_ahead(self) -> Iterator[None]:
        """Inside, the nets are where one step down their present gradient would take them; afterwards, back.

        Batch norm's running statistics stay as they are, like those of a net whose copy took the step.
        """
        here = [p.data for p in self.parameters]
        ahead = torch._foreach_add(here, [p.grad for p in self.parameters], alpha=-self.learning_rate)
        self.place(ahead)
        with self.net.untracked():
            yield
        self.place(here)

    def place(self, values: Sequence[torch.Tensor]) -> None:
        """Let the parameters have these values."""
        for parameter, value in zip(self.parameters, values):
            parameter.data = value


def backward(loss: torch.Tensor) -> None:
    """Add every seed's own gradient of its loss [S] to the parameters' `grad`."""
    loss.sum().backward()  # with a gradient given, PyTorch would import its symbolic algebra: a second a job


def masked(logits: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Logits [S, B, K] with those outside the mask [S, K] at -∞."""
    return logits if mask is None else logits.masked_fill(~mask[:, None], -torch.inf)


def cross_entropy(logits: torch.Tensor, y: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
    """Each seed's mean cross-entropy: logits [S, B, K], labels [S, B], weights [S, B] summing to one → [S]."""
    s, b, k = logits.shape
    if s == 1 and weight is None:
        return F.cross_entropy(logits.view(b, k), y.view(b)).view(1)
    each = F.cross_entropy(logits.reshape(s * b, k), y.reshape(s * b), reduction="none").view(s, b)
    return each.mean(dim=1) if weight is None else (each * weight).sum(dim=1)


def create(options: dict, setting: Setting) -> Learner:
    """The learner that a cell's `learner` names, with its options."""
    options = dict(options)
    return find(options.pop("name"))(setting, **options)


def find(name: str) -> type[Learner]:
    """The learner's class: the one that its module defines."""
    module = importlib.import_module(f"{__name__}.{name}")
    defined = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__]
    return next(v for v in defined if issubclass(v, Learner))
