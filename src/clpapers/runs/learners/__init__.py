"""The methods, one a file. A learner implements `observe(t, x, y)`, one step on one stream batch, and nothing else.

Everything has the seed as its first axis: images x [S, B, C, H, W], labels y [S, B], logits [S, B, K], losses [S].
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F

from clpapers.runs.images import Images
from clpapers.runs.memories import Memory
from clpapers.runs.nets.stacked import Stack


@dataclasses.dataclass
class Setting:
    """What a learner is given: S nets, S streams over one data set, and the budget.

    items, labels: int64 [S, n], the streams, on the training device.
    build: makes a fresh stack of the same S nets' architecture from S seeds for `torch.manual_seed`.
    """

    net: Stack
    images: Images
    items: torch.Tensor
    labels: torch.Tensor
    classes: int
    seeds: Sequence[int]
    budget: dict
    build: Callable[[Sequence[int]], Stack]


class Learner:
    """The net, its optimiser, and a memory filled by `policy`. Subclasses say what a step is.

    stackable: whether the seeds of a job train as one tensor program; if not, they follow one another.
    looks: whether a step looks at the stream batch itself; if not, it is not even gathered.
    """

    policy = "reservoir"
    keep_pixels = False
    stackable = True
    looks = True

    def __init__(self, setting: Setting):
        self.setting, self.net, self.classes = setting, setting.net, setting.classes
        self.learning_rate = setting.budget["learning_rate"]
        self.parameters = list(self.net.parameters())
        self.optimizer = torch.optim.SGD(self.parameters, lr=self.learning_rate, foreach=True)
        self.memory = Memory(
            self.policy,
            setting.budget["memory"],
            setting.images,
            setting.items,
            setting.labels,
            setting.budget["batch"],
            setting.seeds,
            keep_pixels=self.keep_pixels,
        )

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Learn stream batch number t. Returns its loss [S] and logits [S, B, K] before learning.

        A learner that does not look gets no x and y, and returns nothing.
        """
        raise NotImplementedError

    def model(self) -> Stack:
        """The net to evaluate now."""
        return self.net

    def step(self, loss: torch.Tensor) -> None:
        """One descent step on the seeds' losses [S]."""
        self.optimizer.zero_grad()
        backward(loss)
        self.optimizer.step()

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
    loss.backward(torch.ones_like(loss))


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
