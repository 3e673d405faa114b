"""A random guess that is told the task of each test item."""

import torch

from clpapers.runs.learners.random import Random

DECLARATION = {
    "options": {},
    "looks_at": ["tasks"],
    "answers_by_task": True,
    "guesses": True,
    "looks": False,
    "own_nets": True,
}


class RandomMultiModel(Random):
    """RandMM (`rules`, rule 2): as Random, among the classes of the task that the oracle names for each image.

    That is what a multi-model of untrained models knows. Where the oracle names no task all classes compete.
    """

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        drawn = super().scores(x, tasks)
        held = self.setting.task_classes
        seeds = torch.arange(len(held), device=held.device)[:, None]
        return drawn.masked_fill(~held[seeds, tasks], -torch.inf)
