"""A random guess that knows the task of each test item."""

import torch

from clpapers.runs.learners.random import Random

DECLARATION = {
    "options": {},
    "uses": ["tasks"],
    "answers_by_task": True,
    "guesses": True,
    "uses_batch": False,
    "own_nets": True,
}


class RandomMultiModel(Random):
    """RandMM (`rules`, rule 2): as Random, among the classes of the task that the oracle names for each image.

    This equals a multi-model of untrained models. Where the oracle names no task, all classes compete.
    """

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        drawn = super().scores(x, tasks)
        classes = self.setting.task_classes
        seeds = torch.arange(len(classes), device=classes.device)[:, None]
        return drawn.masked_fill(~classes[seeds, tasks], -torch.inf)
