"""Experience replay whose replayed items weigh less or more than the stream's."""

from __future__ import annotations

import torch

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draws

DECLARATION = {"options": {"weight": {"type": "number", "minimum": 0, "examples": [0.5, 2.0]}}}


class WeightedReplay(Replay):
    """ER with a weight.

    Parameters
    ----------
    weight: that of the replay batch's mean loss; the stream batch's has 1.
    """

    def __init__(self, setting: Setting, *, weight: float):
        super().__init__(setting)
        self.weight, self.replay = weight, Draws(self.memory, setting.budget["replay_batch"])

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x)
        loss = stream_loss = cross_entropy(logits, y)
        replay = self.replay(t)
        if replay is not None:
            loss = stream_loss + self.weight * cross_entropy(self.net(replay.x), replay.y, replay.weight)
        self.step(loss)
        self.memory.write(t)
        return Observed(stream_loss, logits)
