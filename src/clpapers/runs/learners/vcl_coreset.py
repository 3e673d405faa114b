"""Variational continual learning with coresets."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.learner import Setting
from clpapers.runs.learners.vcl import VCL
from clpapers.runs.scenario import ScenarioError
from clpapers.runs.variational import Gaussian, Posterior, Randomness

DECLARATION = {
    "like": "vcl",
    "options": {
        "coreset": {"type": "integer", "minimum": 1, "examples": [4]},
        "coreset_epochs": {"type": "integer", "minimum": 1, "examples": [2]},
        "selection": {"enum": ["k_center", "random"], "examples": ["k_center", "random"]},
        "prior": {"enum": ["previous", "standard"], "examples": ["previous", "standard"]},
    },
    "measures": [],
    "repeats": ["epochs", "coreset_epochs"],
}


class VCLCoreset(VCL):
    """VCL with coresets. Nguyen et al. 2018, algorithm 1, in their code; coreset-only as `desiderata`, section 6.

    memory: a coreset of each task, which the posterior never learns (but the maximum-likelihood
    solution of the first task does). For a test a copy of the posterior, with the posterior as its prior, learns all
    coresets, answers, and is discarded. Where training is masked, each head has a copy, which learns its own task's
    coreset; a recurring task brings no new one.

    Parameters
    ----------
    epochs, batch, initial_variance, samples, prediction_samples, prior_weight: as of `VCL`; batch and prior_weight also
        hold for coresets.
    coreset: items a task.
    coreset_epochs: of a copy's training.
    selection: how a coreset is chosen, by `k_center` or uniformly at `random`; that code offers both.
    prior: `previous`, or `standard`, N(0, 1) for each task and each copy: coreset-only.
    """

    def __init__(
        self, setting: Setting, *, coreset: int, coreset_epochs: int, selection: str, prior: str, **options: Any
    ):
        super().__init__(setting, **options)
        self.coreset, self.coreset_epochs, self.previous = coreset, coreset_epochs, prior == "previous"
        self.centred = selection == "k_center"
        steps = range(len(setting.ends))
        self.task = [int(setting.tasks[0, setting.step(t).start]) for t in steps]  # by step
        if setting.masks is not None:
            for t in steps:
                if (setting.tasks[:, setting.step(t)] != self.task[t]).any():
                    raise ScenarioError("oracle: a head's own coreset needs the stream's tasks; take chunks")
        tasks = len(steps) * setting.items[0].unique().numel() // setting.items.shape[1]  # repetitions excluded
        if tasks * coreset > setting.budget["memory"]:
            raise ScenarioError(
                f"budget.memory: {setting.budget['memory']} does not hold coresets of {tasks} times {coreset} items"
            )
        self.items: dict[int, torch.Tensor] = {}  # step → its coreset, int64 [S, coreset]
        self.labels: dict[int, torch.Tensor] = {}
        self.copies: list[Posterior] = []  # for tests: one for each head's task, or one for all
        self.prepared = 0  # steps learnt by the copied posterior
        self.heads: dict[int, torch.Tensor] = {}  # during a test: task → its head's nets [S, K, P]

    def learnt_of(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        items = self.setting.items[:, self.setting.step(t)]
        stored = self.in_coreset(items)
        if not stored.any():
            chosen = self.choose(t, x)
            self.items[t], self.labels[t] = items.gather(1, chosen), y.gather(1, chosen)
            stored = self.in_coreset(items)
        rest = (~stored).nonzero()[:, 1].view(len(x), -1)
        return x[torch.arange(len(x), device=x.device)[:, None], rest], y.gather(1, rest)

    def in_coreset(self, items: torch.Tensor) -> torch.Tensor:
        """Whether items [S, n] are in a coreset, bool [S, n]."""
        if not self.items:
            return torch.zeros_like(items, dtype=torch.bool)
        return torch.stack([torch.isin(*pair) for pair in zip(items, torch.cat([*self.items.values()], dim=1))])

    def choose(self, t: int, x: torch.Tensor) -> torch.Tensor:
        """Task t's coreset, as positions among its images x [S, n, …]: int64 [S, coreset]."""
        n = x.shape[1]
        if n <= self.coreset:
            raise ScenarioError(
                f"learner.coreset: {self.coreset} leaves none of the {n} items of task {t + 1} to learn"
            )
        rngs = [generator(seed, f"coreset {t}") for seed in self.setting.seeds]
        if not self.centred:
            drawn = np.stack([rng.choice(n, self.coreset, replace=False) for rng in rngs])
            return torch.from_numpy(drawn).to(x.device)
        starts = [int(rng.integers(n)) for rng in rngs]
        return torch.stack([k_center(own, self.coreset, start) for own, start in zip(x.flatten(2), starts)])

    def next_prior(self, mask: torch.Tensor | None) -> Gaussian:
        return super().next_prior(mask) if self.previous else self.prior

    def prepare(self) -> None:
        """Train the copies, unless they are copies of the present posterior."""
        if self.prepared == self.steps:
            return
        learnt = [[t] for t in self.items] if self.setting.masks is not None else [list(self.items)]
        self.copies = [self.trained_on(steps) for steps in learnt]
        self.prepared = self.steps

    def answering(self) -> Posterior:
        return self.copies[0] if self.setting.masks is None and self.copies else self.posterior

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        if self.setting.masks is not None:
            self.heads = {self.task[t]: self.nets_of(q) for t, q in zip(self.items, self.copies)}
        with super().evaluation():
            yield
        self.heads = {}

    def trained_on(self, steps: list[int]) -> Posterior:
        """A copy of the posterior, trained on the coresets of some steps under the last one's mask."""
        q, prior = self.posterior.copy(), self.posterior.now if self.previous else self.prior
        items, labels = (torch.cat([kept[t] for t in steps], dim=1) for kept in (self.items, self.labels))
        randomness = Randomness(self.setting, f"coreset after {self.steps}")
        x, mask = self.setting.images(items), self.mask(steps[-1])
        self.fit(q, prior, x, labels, mask, randomness, self.coreset_epochs, self.prior_weight)
        return q

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        if not self.heads:
            return super().scores(x, tasks)
        answers: torch.Tensor | int = 0
        for task in tasks.unique().tolist():
            nets = self.heads.get(task, self.drawn)
            assert nets is not None  # during a test
            answers = answers + self.probabilities(nets, x).mean(dim=1) * (tasks == task)[..., None]
        assert isinstance(answers, torch.Tensor)
        return answers

    def uncounted(self) -> Sequence[object]:
        return [*super().uncounted(), self.copies, self.heads]

    def memory_use(self, s: int) -> dict:
        return self.stored(torch.cat([self.setting.labels[s, :0], *(each[s] for each in self.labels.values())]))


def k_center(x: torch.Tensor, count: int, start: int) -> torch.Tensor:
    """The greedy k-center (Gonzalez 1985): each next item is the farthest from all before, int64 [count].

    x: [n, d], with Euclidean distance. start: the first item. Among equals the first is taken.
    """
    chosen, distance = [torch.tensor(start, device=x.device)], x.new_full((len(x),), torch.inf)
    for _ in range(count - 1):
        distance = torch.minimum(distance, (x - x[chosen[-1]]).square().sum(dim=1))
        chosen.append(distance.argmax())
    return torch.stack(chosen)
