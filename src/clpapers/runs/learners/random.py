"""A random guess that conforms to the experiment's masks."""

import contextlib
from collections.abc import Iterator

import torch

from clpapers.randomness import generator
from clpapers.runs.learner import Learner, Observed

DECLARATION = {"options": {}, "guesses": True, "looks": False, "own_nets": True}


class Random(Learner):
    """Random (`rules`, rule 2): a uniform guess among the classes that compete. Nothing is trained.

    A score for each class is drawn anew for every image, so that under any restriction each class that it leaves is as
    likely to have the largest as the next.
    """

    def observe(self, t: int, x: None, y: None) -> Observed:
        return Observed()

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        # anew each time, for how much an evaluation draws depends on the seed's stack mates
        self.rngs = [generator(seed, "guess") for seed in self.setting.seeds]
        yield

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        drawn = [torch.from_numpy(rng.random((x.shape[1], self.classes))) for rng in self.rngs]
        return torch.stack(drawn).to(x.device)
