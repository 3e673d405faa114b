"""Averaged gradient episodic memory."""

from collections.abc import Sequence

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.constrained import Constrained
from clpapers.runs.device_step import row
from clpapers.runs.learner import Setting
from clpapers.runs.memories import uniform_draws

DECLARATION = {
    "options": {"write": {"enum": ["uniform", "ring"], "examples": ["uniform"]}},
    "uses": ["changes", "tasks", "competing"],
    "memory_of_classes": True,
    "tasks_once": True,
    "static": True,
}


class AGEM(Constrained):
    """A-GEM. Chaudhry et al. 2019 (`agem`), eqs. 10 and 11, algorithm 2.

    memory: per task, read once the task is completed.  constraint: the loss on a replay batch of all such tasks. It is
    drawn without replacement at each step; while the memory is smaller, all of it is used.

    Parameters
    ----------
    write: `uniform` samples all items of a class, as in the paper's text; `ring` keeps the last, as in the authors'
        later scripts for MNIST and CIFAR.
    """

    def __init__(self, setting: Setting, *, write: str):
        super().__init__(setting, write)
        self.batch = setting.budget["replay_batch"]
        self.filled = (~self.memory.valid).flatten(1).argsort(dim=1, stable=True)  # slots with items first
        self.rngs = [generator(seed, "reference") for seed in setting.seeds]

    def task_change(self, t: int) -> None:
        """Draw all batches of the task, as slots [steps, S, k]."""
        done, device = self.task[t], self.filled.device
        steps, size = int((self.task == done).sum()), min(self.batch, int(done) * self.memory.size)
        counts = self.memory.counts[:, :done].sum(axis=1)
        draws = [uniform_draws(np.full(steps, count), size, rng) for count, rng in zip(counts, self.rngs)]
        self.start, self.draws = t, torch.from_numpy(np.stack(draws, axis=1)).to(device)
        valid = np.arange(size) < counts[:, None]
        weight = torch.from_numpy(valid / valid.sum(axis=1, keepdims=True).clip(1))
        self.weight = None if valid.all() else weight.to(device, self.setting.images.dtype)

    def uncounted(self) -> Sequence[object]:
        return [vars(self).get("weight")]

    def references(self, t: int) -> list[torch.Tensor]:
        slots = self.filled.gather(1, row(self.draws, t, first=self.start))
        gradient = self.reference(*self.memory.read(slots), self.weight)
        return [each[:, None] for each in self.rows(gradient)]
