"""iCaRL, batch by batch or task by task."""

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F

from clpapers.randomness import generator
from clpapers.runs.images import joined
from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.nets.stacked import Stack
from clpapers.streams.oracles import task_changes

DECLARATION = {
    "options": {
        "loss": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"enum": ["binary", "softmax", "cross_entropy"]}},
            "allOf": [
                {
                    "if": {"properties": {"name": {"const": "binary"}}},
                    "then": {
                        "required": ["temperature"],
                        "additionalProperties": False,
                        "properties": {"name": {}, "temperature": {"type": "number", "exclusiveMinimum": 0}},
                    },
                },
                {
                    "if": {"properties": {"name": {"const": "softmax"}}},
                    "then": {
                        "required": ["strength"],
                        "additionalProperties": False,
                        "properties": {"name": {}, "strength": {"type": "number", "minimum": 0}},
                    },
                },
                {
                    "if": {"properties": {"name": {"const": "cross_entropy"}}},
                    "then": {
                        "required": ["exemplars"],
                        "additionalProperties": False,
                        "properties": {"name": {}, "exemplars": {"type": "integer", "minimum": 1}},
                    },
                },
            ],
            "examples": [
                {"name": "binary", "temperature": 2.0},
                {"name": "softmax", "strength": 1.0},
                {"name": "cross_entropy", "exemplars": 3},
            ],
        },
        "space": {"enum": ["features", "logits"], "examples": ["features", "logits"]},
        "exemplars": {
            "enum": ["batch", "batch_alone", "task"],
            "examples": ["batch", "batch_alone", "task"],
        },
    },
    "uses": ["changes", "competing"],
    "stackable": False,  # classes differ in their number of exemplars, and so do seeds
    "where": {"exemplars": {"task": {"uses": ["changes", "tasks", "competing"]}}},
}

PASSED_AT_ONCE = 1000  # images that pass the net together outside of training


class Objective(Protocol):
    """A loss that ties the net to its answers at the last task change."""

    def task_change(self, t: int) -> None: ...

    def __call__(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The loss [1] to descend, the loss of the stream batch alone, and its logits."""


class ICaRL(Learner):
    """iCaRL. Rebuffi et al. 2017, algorithms 1-5: online in `rules` (3.3, A.5), from GEM's authors' code in `agem`.

    A step descends a loss that ties the net to its answers at the last task change. When exemplars are due, herding
    chooses m = ⌊budget / classes seen⌋ (at least one) for each class that came since the last choice. It chooses among
    the class's old exemplars and the new items, or among the new items alone. The other classes keep their first m.
    Prediction: the
    class with the nearest mean of exemplars; the first competing class where none has exemplars.

    Parameters
    ----------
    loss: `{name: binary, temperature}` (`Binary`; `rules`), `{name: softmax, strength}` (`Softmax`; `agem`) or
        `{name: cross_entropy, exemplars}` (`CrossEntropy`; a sensitivity row of `rules`).
    space: the space of herding and of means. `features`: normalised, below the head; means are normalised too
        (`rules`). `logits`: of all classes, but herding uses only those that compete (`agem`).
    exemplars: due after each `batch` (`rules`); the same, from the items of the `batch_alone` (a sensitivity row of
        `rules`, 3.3); or at the end of each `task` (`agem`).
    """

    objective: Objective

    def __init__(self, setting: Setting, *, loss: dict, space: str, exemplars: str):
        super().__init__(setting)
        self.space, self.budget = space, setting.budget["memory"]
        self.exemplars: dict[int, torch.Tensor] = {}  # class → item indices, best first
        self.due, self.begun = np.ones(len(setting.ends), dtype=bool), 0  # by step; first item since the last choice
        self.alone = exemplars == "batch_alone"
        if exemplars == "task":
            self.due[:-1] = task_changes(setting.tasks[0].cpu().numpy(), setting.ends)[1:]
        options = dict(loss)
        self.objective = LOSSES[options.pop("name")](self, **options)

    def task_change(self, t: int) -> None:
        self.objective.task_change(t)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        loss, stream_loss, logits = self.objective(t, x, y)
        self.step(loss)
        if self.due[t]:
            self.choose(t)
        return Observed(stream_loss, logits)

    def mark_taken(self, t: int) -> None:
        if self.due[t]:
            self.choose(t, herded=False)

    @torch.no_grad()
    def choose(self, t: int, *, herded: bool = True) -> None:
        """Herd the classes that came since the last choice, up to step t, and shorten the others.

        herded: if not, the first items of a class are taken as they come.
        """
        came = slice(self.begun, self.setting.step(t).stop)
        items, y, self.begun = self.setting.items[0, came], self.setting.labels[0, came], came.stop
        present = y.unique().tolist()
        m = max(self.budget // len({*self.exemplars, *present}), 1)
        none = items[:0]
        old = {} if self.alone else self.exemplars
        pools = [self.pool(old.get(c, none), items[y == c]) for c in present]
        self.exemplars |= zip(present, self.herded(t, pools, m) if herded else (pool[:m] for pool in pools))
        self.shorten(m)

    def shorten(self, m: int) -> None:
        """Leave each class its first m."""
        for c in self.exemplars:
            self.exemplars[c] = self.exemplars[c][:m]

    def herded(self, t: int, pools: list[torch.Tensor], m: int) -> Iterator[torch.Tensor]:
        """The best m of each pool at step t, best first."""
        embedded = self.still(self.embed, torch.cat(pools))
        if self.space == "logits":
            embedded = embedded[:, self.competing(t)]
        points = embedded.cpu().numpy()
        for pool in pools:
            own, points = points[: len(pool)], points[len(pool) :]
            yield pool[torch.from_numpy(herd(own, m)).to(pool.device)]

    @staticmethod
    def pool(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """Old and new items together; an item that the stream repeats counts once."""
        both = torch.cat([old, new])
        return both if len(both.unique()) == len(both) else both.unique()

    def labels_of_exemplars(self) -> torch.Tensor:
        """The class of each exemplar, in the memory's order."""
        sizes = [len(items) for items in self.exemplars.values()]
        classes, counts = (torch.tensor(each, device=self.setting.items.device) for each in ([*self.exemplars], sizes))
        return classes.repeat_interleave(counts)

    def competing(self, t: int) -> torch.Tensor:
        """The classes that compete at step t, bool [K]."""
        mask = self.mask(t)
        return torch.ones(self.classes, dtype=torch.bool, device=self.setting.items.device) if mask is None else mask[0]

    def embed(self, x: torch.Tensor) -> torch.Tensor:
        """The embedding [1, N, d] of images [1, N, …] in the space."""
        return self.net(x) if self.space == "logits" else F.normalize(self.net.features(x), dim=2)

    def still(self, answer: Callable[[torch.Tensor], torch.Tensor], items: torch.Tensor) -> torch.Tensor:
        """`answer` to items [N] with the net in evaluation mode: [N, d]."""
        training = self.net.training
        self.net.eval()
        answers = torch.cat([answer(self.setting.images(part[None]))[0] for part in items.split(PASSED_AT_ONCE)])
        self.net.train(training)
        return answers

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        with super().evaluation(), torch.no_grad():
            if self.exemplars:
                points = self.still(self.embed, torch.cat(list(self.exemplars.values())))
                each = points.split([len(items) for items in self.exemplars.values()])
                means = torch.stack([own.mean(dim=0) for own in each])
                self.means = means if self.space == "logits" else F.normalize(means, dim=1)
            yield

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """Minus the squared distance to each class's mean; the least number for a class without exemplars."""
        scores = x.new_full((1, x.shape[1], self.classes), torch.finfo(x.dtype).min)
        if self.exemplars:
            scores[0, :, list(self.exemplars)] = -torch.cdist(self.embed(x)[0], self.means).square()
        return scores

    def confidence(self, scores: torch.Tensor) -> torch.Tensor:
        return scores.amax(dim=2)

    def needed_to_answer(self) -> object:
        return self.net, getattr(self, "means", None)  # none before a task's end, where exemplars are due then

    def uncounted(self) -> Sequence[object]:
        return [self.objective.logits] if isinstance(self.objective, Binary) else []

    def memory_use(self, s: int) -> dict:
        counts = [len(self.exemplars.get(c, ())) for c in range(self.classes)]
        return {"items": sum(counts), "bytes": sum(counts) * self.setting.images.pixels[0].nbytes, "per_class": counts}


class Binary:
    """Binary cross-entropy on the batch and all exemplars.

    A class that was known at the last task change, and is not in the batch, has the target σ(z̃/T), z̃ being the net's
    logit at that time. Any other class has one or zero. Most exemplars stay from step to step, and so do their z̃.

    temperature: T.
    """

    def __init__(self, learner: ICaRL, *, temperature: float):
        self.learner, self.temperature = learner, temperature
        self.items = learner.setting.items[0, :0]  # the exemplars of the last step, ascending
        self.logits = torch.empty(0, learner.classes, dtype=learner.setting.images.dtype, device=self.items.device)  # z̃
        self.old: Stack | None = None  # the net at the last task change, and the classes that it knew
        self.known = torch.zeros(learner.classes, dtype=torch.bool, device=learner.setting.items.device)

    def task_change(self, t: int) -> None:
        if self.old is None:
            self.old = copy.deepcopy(self.learner.net).requires_grad_(False).eval()
        self.old.load_state_dict(self.learner.net.state_dict())
        self.items, self.logits = self.items[:0], self.logits[:0]
        self.known[list(self.learner.exemplars)] = True

    def __call__(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        learner, b, all_x, all_y, stored = self.learner, x.shape[1], x, y, self.items[:0]
        if learner.exemplars:
            stored = torch.cat(list(learner.exemplars.values()))
            all_x = joined(x, learner.setting.images(stored[None]))
            all_y = torch.cat([y, learner.labels_of_exemplars()[None]], dim=1)
        logits = learner.net(all_x)
        target = self.targets(x, stored, all_y, y)
        each = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        mask = learner.mask(t)
        loss = (each if mask is None else each * mask[:, None]).sum(dim=2)
        return loss.mean(dim=1), loss[:, :b].mean(dim=1), logits[:, :b]

    @torch.no_grad()
    def targets(self, x: torch.Tensor, stored: torch.Tensor, y: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        """Targets [1, B, K]: the old net's for classes that it knew and that are not present; else one-hot.

        x: the stream batch [1, b, …]. stored: the exemplars [B - b]. y: the labels of both [1, B].
        """
        target = F.one_hot(y, self.learner.classes).to(x.dtype)
        if self.old is not None:
            distilled = self.known.clone()
            distilled[present.flatten()] = False
            then = torch.cat([self.old(x), self.answers(stored)[None]], dim=1)
            target[..., distilled] = torch.sigmoid(then[..., distilled] / self.temperature)
        return target

    def answers(self, items: torch.Tensor) -> torch.Tensor:
        """The old net's logits [m, K] of exemplars [m]; it passes those alone that were none at the last step."""
        order = items.argsort()
        position = torch.searchsorted(self.items, items).clamp_max(max(len(self.items) - 1, 0))
        stored = self.items[position] == items if len(self.items) else torch.zeros_like(items, dtype=torch.bool)
        logits = self.logits.new_empty(len(items), self.logits.shape[1])
        logits[stored] = self.logits[position[stored]]
        if not stored.all():
            assert self.old is not None  # which `targets` has asked for
            logits[~stored] = self.old(self.learner.setting.images(items[~stored][None]))[0]
        self.items, self.logits = items[order], logits[order]
        return logits


class Softmax:
    """Cross-entropy of the batch + λ · Σ over past tasks of KL(softmax then ‖ now) on one exemplar of each class.

    A past task has the classes that got their first exemplars in it, with a softmax over those that competed. A task
    change stores the net's logits of all exemplars, in evaluation mode. At each step each past task passes the net
    separately, in training mode; its KL is the mean over its classes, with exemplars drawn uniformly.

    strength: λ.
    """

    def __init__(self, learner: ICaRL, *, strength: float):
        self.learner, self.strength = learner, strength
        steps, seed = len(learner.setting.ends), learner.setting.seeds[0]
        self.draws = generator(seed, "distillation").random((steps, learner.classes))  # shares of a class's exemplars
        self.past: list[tuple[list[int], torch.Tensor]] = []  # classes of each task, and those that competed
        self.then: dict[int, tuple] = {}  # class → exemplars at the last task change, [m], and their logits [m, K]

    @torch.no_grad()
    def task_change(self, t: int) -> None:
        exemplars = self.learner.exemplars
        new = [c for c in exemplars if c not in self.then]
        if new:
            self.past.append((new, self.learner.competing(t - 1)))
        self.then = {c: (items, self.learner.still(self.learner.net, items)) for c, items in exemplars.items()}

    def __call__(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        logits = self.learner.net(x)
        stream_loss = self.learner.loss(t, logits, y)
        loss = stream_loss
        for classes, competing in self.past:
            loss = loss + self.strength * self.divergence(t, classes, competing)
        return loss, stream_loss, logits

    def divergence(self, t: int, classes: list[int], competing: torch.Tensor) -> torch.Tensor:
        """KL of one past task."""
        noted = [self.then[c] for c in classes]
        drawn = [int(self.draws[t, c] * len(items)) for c, (items, _) in zip(classes, noted)]
        items, then = (torch.stack([each[i] for each, i in zip(part, drawn)]) for part in zip(*noted))
        now = self.learner.net(self.learner.setting.images(items[None]))[0]
        now, then = (logits[:, competing].log_softmax(dim=1) for logits in (now, then))
        return F.kl_div(now, then, log_target=True, reduction="batchmean")


class CrossEntropy:
    """Mean cross-entropy of the batch and, from the first task change on, of some exemplars; nothing is distilled.

    exemplars: how many of all there are are drawn a step, each at most once; all, where there are no more.
    """

    def __init__(self, learner: ICaRL, *, exemplars: int):
        self.learner, self.count, self.changed = learner, exemplars, False
        self.rng = generator(learner.setting.seeds[0], "exemplars")

    def task_change(self, t: int) -> None:
        self.changed = True

    def __call__(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        learner, b = self.learner, x.shape[1]
        if not (self.changed and learner.exemplars):
            logits = learner.net(x)
            loss = learner.loss(t, logits, y)
            return loss, loss, logits
        labels = learner.labels_of_exemplars()
        drawn = torch.from_numpy(self.rng.permutation(len(labels))[: self.count]).to(labels.device)
        stored = torch.cat(list(learner.exemplars.values()))[drawn]
        logits = learner.net(torch.cat([x, learner.setting.images(stored[None])], dim=1))
        loss = learner.loss(t, logits[:, :b], y)
        of_exemplars = cross_entropy(logits[:, b:], labels[None, drawn])  # all classes compete, whatever the batch has
        share = b / logits.shape[1]
        return share * loss + (1 - share) * of_exemplars, loss, logits[:, :b]


LOSSES: dict[str, Callable[..., Objective]] = {"binary": Binary, "softmax": Softmax, "cross_entropy": CrossEntropy}


def herd(features: np.ndarray, m: int) -> np.ndarray:
    """Algorithm 4: positions of m of the features [N, d]; each brings their mean nearest to the mean of all."""
    inner = features @ features.T
    towards, squares = inner.mean(axis=1), inner.diagonal() / 2
    chosen, sum_ = np.empty(min(m, len(features)), dtype=np.int64), np.zeros(len(features), features.dtype)
    free = np.zeros(len(features), features.dtype)
    for k in range(len(chosen)):
        # -‖(k+1)·μ - Σ chosen - f‖²/2 without terms that are equal for all f
        best = int(np.argmax((k + 1) * towards - sum_ - squares + free))
        chosen[k], free[best] = best, -np.inf
        sum_ += inner[best]
    return chosen
