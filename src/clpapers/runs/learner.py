"""The base of every method: its setting, the base class of learners, and the class of learners with a replay memory.

Everything has the seed as its first axis: images x [S, B, C, H, W], labels y [S, B], logits [S, B, K], losses [S].
"""

import contextlib
import copy
import dataclasses
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.contracts import Undeclared
from clpapers.runs.device_step import columns, row
from clpapers.runs.images import Images, joined
from clpapers.runs.losses import backward, cross_entropy, masked
from clpapers.runs.memories import Draw, Memory
from clpapers.runs.nets.folding import folded
from clpapers.runs.nets.stacked import Stack
from clpapers.runs.optimizers import OPTIMIZERS, SGD, gradients


@dataclasses.dataclass
class Setting:
    """A learner's inputs: S streams over one data set, the oracle's tasks, and the budget.

    items, labels: int64 [S, n], the streams, on the training device.
    ends: int64 [T], stream items seen after each step.
    spec: the cell's net. build: makes a fresh stack of one net a seed, by default the cell's net, from seeds for
        `torch.manual_seed` (`init`).
    oracle: the cell's oracle. tasks: int64 [S, n], its task of each stream position, of `task_count` tasks.
        task_classes: bool [S, tasks, K], the classes that each task may hold.
    masks: bool [S, T, K], the classes that compete at each training step; None where all do.
    changes: bool [T], whether the task changes with a step.
    evaluation: the cell's, with the measurements that a learner takes itself.
    gans: seed → task's classes → generators that runs share (`shared_gans.load`); None where a learner trains its own.
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
    task_classes: torch.Tensor
    masks: torch.Tensor | None
    changes: np.ndarray
    evaluation: dict
    gans: Mapping[int, Mapping[tuple[int, ...], Mapping[str, np.ndarray]]] | None = None

    def apart(self, uses: Sequence[str]) -> "Setting":
        """The setting of a method from outside, which declares `uses`: copies of its own, and no undeclared facts."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        given |= {name: each.clone() for name, each in given.items() if isinstance(each, torch.Tensor)}
        given |= {name: copy.deepcopy(each) for name, each in given.items() if isinstance(each, dict | np.ndarray)}
        if "tasks" not in uses:
            given |= {name: Undeclared(f"setting.{name}", "tasks") for name in ("task_count", "tasks", "task_classes")}
        return Setting(**given)

    def init(self, purpose: str = "init") -> list[int]:
        """A seed for `torch.manual_seed` for each stream, drawn for a purpose."""
        return [int(generator(seed, purpose).integers(2**63)) for seed in self.seeds]

    def net(self, purpose: str = "init", **options: object) -> Stack:
        """A fresh stack, in training mode; `options` as for `build`."""
        return self.build(self.init(purpose), **options).train()

    def step(self, t: int) -> slice:
        """The stream positions of step t."""
        return slice(int(self.ends[t - 1]) if t else 0, int(self.ends[t]))

    def columns(self, table: torch.Tensor, t: int) -> torch.Tensor:
        """The columns [S, B] of a stream's table [S, n] at step t."""
        return columns(table, t, self.ends)


class Observed(NamedTuple):
    """A step's loss and predictions.

    loss: [S], of the stream batch before it is learnt; of the training batch, for a learner that does not use the
        stream batch; None where there is neither.
    logits: [S, B, K] of the stream batch before it is learnt; None, at every step, for a learner that does not predict.
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None


class Learner:
    """A net and its optimiser. Subclasses implement `observe`, one step on one stream batch.

    stackable, uses_batch, own_nets, past_tasks_frozen, static, uses: from the `DECLARATION` of the class's module
        (`catalogue.Method`).
    outside: whether it is a method from outside, whose answers are checked (`contracts`).
    net, parameters, optimizer: of one net a seed. A learner with nets of its own starts with `net` None, and without
        the other two.
    uncertainty: an optional method, the uncertainty of images x in nats, [S, B], as the mutual information of
        prediction and weights. It is called in evaluation after each task (`TaskUncertainty`).
    """

    net: Stack
    parameters: list[torch.Tensor]
    optimizer: SGD
    uncertainty: Callable[[torch.Tensor], torch.Tensor]

    stackable = True
    uses_batch = True
    own_nets = False
    past_tasks_frozen = False
    static = False
    uses: Sequence[str] = ()
    outside = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        module = sys.modules.get(cls.__module__)
        cls.outside = getattr(module, "__spec__", None) is None  # made of a file (`learners.find`), not imported
        declared = getattr(module, "DECLARATION", None)
        if declared is not None:  # the class's own, not its parent's unless it is `like` that
            for flag in ("stackable", "uses_batch", "own_nets", "past_tasks_frozen", "static", "uses"):
                setattr(cls, flag, declared.get(flag, getattr(cls if "like" in declared else Learner, flag)))

    def __init__(self, setting: Setting):
        self.setting, self.classes = setting, setting.classes
        self.learning_rate = setting.budget["learning_rate"]
        if self.own_nets:
            self.net = None  # type: ignore[assignment]  # such a learner uses none, or sets it
            return
        self.net = setting.net()
        self.parameters = list(self.net.parameters())
        self.optimizer = self.optimize(self.parameters)

    def optimize(self, parameters: Iterable[torch.Tensor]) -> SGD:
        """The budget's optimiser for some parameters."""
        budget = self.setting.budget
        options = {key: budget[key] for key in ("momentum", "clip") if key in budget}
        return OPTIMIZERS[budget["optimizer"]](parameters, self.learning_rate, **options)

    def task_change(self, t: int) -> None:
        """React to a task change, before the batch of step t is learnt."""

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        """Learn stream batch number t, images x and labels y; both are None where `uses_batch` is false."""
        raise NotImplementedError

    def mark_taken(self, t: int) -> None:
        """Go on as if step t had been learnt: a rehearsal (`runs.cost_timing`) leaves most out, a GPU replays some."""

    def graph_key(self, t: int) -> Hashable | None:
        """For `static` learners, the kind of step t, one of few; None for a step of no such kind.

        Between two task changes all steps of a kind with batches of a size are one program, on the same memory. They
        read the differences by `row` and `Setting.columns`, and look at no values (`captured`).
        """
        return ()

    def prepare(self) -> None:
        """Train nets that serve a test alone; called right before each `evaluation`."""

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """Inside, the nets are in evaluation mode, with batch norm folded, and `scores` answers."""
        if self.net is None:
            yield
            return
        self.net.eval()
        with folded(self.net):
            yield
        self.net.train()

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """Scores [S, B, K], largest for the predicted class, of images x with the oracle's tasks [S, B]."""
        return self.net(x)

    def snapshot(self, task: int) -> object | None:
        """A copy, inside `evaluation`, of what learns now, for `scores_of` before the task changes.

        None where that is not all that changes until then of the answers in a task, or where to test it later saves
        nothing.
        """
        return None

    def scores_of(self, snapshots: Sequence[Any], x: torch.Tensor) -> torch.Tensor:
        """The scores [n, S, B, K] of images x that n snapshots stand for, inside `evaluation`."""
        raise NotImplementedError

    @property
    def scores_alike(self) -> bool:
        """Whether an image has the same scores in all tasks."""
        return type(self).scores is Learner.scores

    def confidence(self, scores: torch.Tensor) -> torch.Tensor:
        """The confidence [S, B] of answers by `scores` [S, B, K]: for logits the largest probability."""
        return scores.softmax(dim=2).amax(dim=2)

    def mask(self, t: int) -> torch.Tensor | None:
        """The classes that compete at step t, bool [S, K]; None where all do."""
        return None if self.setting.masks is None else row(self.setting.masks, t, dim=1)

    def loss(self, t: int, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Cross-entropy [S] of step t over the classes that compete."""
        return cross_entropy(masked(logits, self.mask(t)), y)

    def step(self, loss: torch.Tensor) -> None:
        """One descent step on the seeds' losses [S]."""
        self.optimizer.descend(loss)

    def needed_to_answer(self) -> object:
        """The object that holds the tensors for `scores`; called after an evaluation."""
        return self.net

    def uncounted(self) -> Sequence[object]:
        """Objects of single steps or tests, or counted elsewhere; `footprint.learner_bytes` leaves them out."""
        return ()

    def memory_use(self, s: int) -> dict:
        """The content of the memory of the stack's seed number s: items, bytes, items per class."""
        return self.stored(self.setting.labels[s, :0])

    def stored(self, labels: torch.Tensor) -> dict:
        """The `memory_use` of a memory that holds images of these labels [n], as the data set has them."""
        return {
            "items": len(labels),
            "bytes": len(labels) * self.setting.images.pixels[0].nbytes,
            "per_class": torch.bincount(labels, minlength=self.classes).tolist(),
        }

    def report(self, s: int) -> dict:
        """The learner's own entries in the result of the stack's seed number s, ready for JSON."""
        return {}


class Replay(Learner):
    """A learner with a memory that `policy` fills.

    keep_pixels: whether the memory holds the images themselves, for learners that edit them.
    one_pass: whether stream and replay batch go through the net as one batch, with batch statistics over both.
    """

    policy = "reservoir"
    keep_pixels = False
    one_pass = False

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

    def mark_taken(self, t: int) -> None:
        self.memory.steps = t + 1

    def graph_key(self, t: int) -> Hashable | None:
        return self.memory.graph_key(t)

    def logits(self, x: torch.Tensor, replayed: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The logits of a stream batch [S, B, …] and of a replay batch [S, k, …]; None where there is none."""
        if replayed is None:
            return self.net(x), None
        if not self.one_pass:
            return self.net(x), self.net(replayed)
        b = x.shape[1]
        logits = self.net(joined(x, replayed))
        return logits[:, :b], logits[:, b:]

    def stream_gradient(self, x: torch.Tensor, y: torch.Tensor, *, alone: bool) -> Observed:
        """Predict a stream batch by itself and take its loss's gradient, to look ahead along it.

        alone: whether the step will be along it too. If it will not, as another pass over both batches follows
            (`one_pass`), this one leaves batch norm's running statistics as they are.
        """
        with self.net.untracked() if self.one_pass and not alone else contextlib.nullcontext():
            logits = self.net(x)
        loss = cross_entropy(logits, y)
        self.optimizer.gradient(loss)
        return Observed(loss, logits)

    def add_replay(self, observed: Observed, x: torch.Tensor, y: torch.Tensor, replay: Draw) -> Observed:
        """Take the gradient of the sum of both batches' losses; so far it is the stream batch's (`stream_gradient`)."""
        if not self.one_pass:
            backward(cross_entropy(self.net(replay.x), replay.y, replay.weight))
            return observed
        logits, replayed = self.logits(x, replay.x)
        assert replayed is not None
        loss = cross_entropy(logits, y)
        self.optimizer.gradient(loss + cross_entropy(replayed, replay.y, replay.weight))
        return Observed(loss, logits)

    def memory_use(self, s: int) -> dict:
        count = self.memory.count(s)
        return self.stored(self.memory.label[s, :count]) | {"bytes": count * self.memory.bytes_an_item}

    @contextlib.contextmanager
    def looking_ahead(self) -> Iterator[None]:
        """Inside, the nets have taken one plain step down their present gradient; afterwards it is undone.

        Batch norm's running statistics stay, as if a copy of the net had taken the step.
        """
        here = [p.data for p in self.parameters]
        ahead = torch._foreach_add(here, gradients(self.parameters), alpha=-self.learning_rate)
        self.set_parameters(ahead)
        try:
            with self.net.untracked():
                yield
        finally:
            self.set_parameters(here)

    def set_parameters(self, values: Sequence[torch.Tensor]) -> None:
        """Set the parameters to these values."""
        for parameter, value in zip(self.parameters, values):
            parameter.data = value
