"""A random guess under the experiment's masks."""

import contextlib
from collections.abc import Iterator

import torch

from clpapers.randomness import generator
from clpapers.runs.learner import Learner, Observed

DECLARATION = {"options": {}, "guesses": True, "uses_batch": False, "own_nets": True}


class Random(Learner):
    """Random (`rules`, rule 2): a uniform guess among the classes that compete. Nothing is trained.

    Every image gets a random score for each class, so that under any restriction all classes that it leaves are equally
    likely.
    """

    def observe(self, t: int, x: torch.Tensor | None, y: torch.Tensor | None) -> Observed:
        return Observed()

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        # Each evaluation has generators of its own: the number of its draws depends on the seed's stack mates.
        self.rngs = [generator(seed, "guess") for seed in self.setting.seeds]
        yield

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        scores = [torch.from_numpy(rng.random((x.shape[1], self.classes))) for rng in self.rngs]
        return torch.stack(scores).to(x.device)
