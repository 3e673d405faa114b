"""A random guess that conforms to the experiment's masks."""

from __future__ import annotations

import torch

from clpapers.randomness import generator
from clpapers.runs.learners import Learner, Setting


class Random(Learner):
    """Random (`rules`, rule 2): a uniform guess among the classes that compete. Nothing is trained.

    A score for each class is drawn anew for every image, so that under any restriction each class that it leaves is as
    likely to have the largest as the next.
    """

    looks = False
    own_nets = True

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.rngs = [generator(seed, "guess") for seed in setting.seeds]

    def observe(self, t: int, x: None, y: None) -> None:
        pass

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        drawn = [torch.from_numpy(rng.random((x.shape[1], self.classes))) for rng in self.rngs]
        return torch.stack(drawn).to(x.device)
