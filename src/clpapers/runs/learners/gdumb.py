"""GDumb, extended to streams without an end."""

import torch

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draws

DECLARATION = {
    "options": {"memory_batch": {"type": "integer", "minimum": 1, "examples": [8]}},
    "uses_batch": False,
    "static": True,
}


class GDumb(Replay):
    """GDUMB. Prabhu et al. 2020; the extension that stf announces, by the reading in docs/decisions/stf.md.

    memory: greedy, written before the step.  The net learns from the memory only, one step a stream batch.

    Parameters
    ----------
    memory_batch: items drawn from the memory a step; with 20, as many as ER's stream and replay batch together.
    """

    policy = "greedy"

    def __init__(self, setting: Setting, *, memory_batch: int):
        super().__init__(setting)
        self.draws = Draws(self.memory, memory_batch, after_write=True)

    def observe(self, t: int, x: torch.Tensor | None, y: torch.Tensor | None) -> Observed:
        self.memory.write(t)
        batch = self.draws(t)
        assert batch is not None  # the memory holds the first item
        loss = cross_entropy(self.net(batch.x), batch.y, batch.weight)
        self.step(loss)
        return Observed(loss)
