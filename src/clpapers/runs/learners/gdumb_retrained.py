"""GDumb as published, at every evaluation."""

import torch

from clpapers.randomness import generator
from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import cross_entropy

DECLARATION = {
    "options": {
        "memory_batch": {"type": "integer", "minimum": 1, "examples": [5]},
        "epochs": {"type": "integer", "minimum": 1, "examples": [1]},
    },
    "stackable": False,  # memories differ in size, and so do their epochs
    "uses_batch": False,
    "repeats": ["epochs"],
}


class GDumbRetrained(Replay):
    """GDUMB with a fresh net trained on the memory whenever it is evaluated, as in the survey code of Mai et al. 2021.

    memory: greedy.  Learning rate constant, no augmentation, no clipping.

    Parameters
    ----------
    memory_batch, epochs: of the fresh net's training.
    """

    policy = "greedy"

    def __init__(self, setting: Setting, *, memory_batch: int, epochs: int):
        super().__init__(setting)
        self.memory_batch, self.epochs = memory_batch, epochs
        self.rng = generator(setting.seeds[0], "retraining")

    def observe(self, t: int, x: torch.Tensor | None, y: torch.Tensor | None) -> Observed:
        self.memory.write(t)
        return Observed()

    def prepare(self) -> None:
        """Train a fresh net on the memory."""
        self.net = self.setting.build([int(self.rng.integers(2**63))]).train()
        optimizer = self.optimize(self.net.parameters())
        count = self.memory.count(0)
        for _ in range(self.epochs):
            order = torch.from_numpy(self.rng.permutation(count)).to(self.memory.item.device)
            for slots in order.split(self.memory_batch):
                x, y = self.memory.read(slots[None])
                optimizer.descend(cross_entropy(self.net(x), y))
