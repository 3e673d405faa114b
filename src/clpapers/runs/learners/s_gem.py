"""Stochastic gradient episodic memory."""

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.constrained import Constrained
from clpapers.runs.device_step import row
from clpapers.runs.learner import Setting

DECLARATION = {
    "options": {"write": {"enum": ["uniform", "ring"], "examples": ["uniform"]}},
    "uses": ["tasks", "competing"],
    "memory_of_classes": True,
    "tasks_once": True,
    "static": True,
}


class SGEM(Constrained):
    """S-GEM (`agem`, appendix D.3): at each step one of GEM's constraints, with A-GEM's projection.

    memory: A-GEM's.  constraint: the loss on the whole memory of one completed task, drawn uniformly at each step.

    Parameters
    ----------
    write: as A-GEM's.
    """

    def __init__(self, setting: Setting, *, write: str):
        super().__init__(setting, write)
        choices = np.maximum(self.task, 1)  # 1 in the first task, which has no constraint
        chosen = np.stack([generator(seed, "reference").integers(choices) for seed in setting.seeds], axis=1)
        self.chosen = torch.from_numpy(chosen).to(setting.items.device)  # [T, S]

    def references(self, t: int) -> list[torch.Tensor]:
        slots, weight = self.memory.of_task(row(self.chosen, t))
        gradient = self.reference(*self.memory.read(slots), weight)
        return [each[:, None] for each in self.rows(gradient)]
