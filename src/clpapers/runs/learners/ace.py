"""Asymmetric cross-entropy."""

import torch

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draws

DECLARATION = {
    "options": {"forward": {"enum": ["separate", "joint"], "examples": ["separate", "joint"]}},
    "static": True,
}


class ACE(Replay):
    """ER-ACE. Caccia et al. 2022, eq. 4: stream and replay batches have different losses.

    memory: reservoir, written after the step.  replay: uniform, all classes compete. In the stream's loss only the
    batch's own classes compete, so that new classes do not disturb old representations. (The authors' code also admits
    every class above the highest label seen, as unseen; that holds only where classes come in ascending order.)

    Parameters
    ----------
    forward: `separate`, as in the authors' code, or `joint`, as for ER.
    """

    def __init__(self, setting: Setting, *, forward: str):
        super().__init__(setting)
        self.one_pass = forward == "joint"
        self.replay = Draws(self.memory, setting.budget["replay_batch"])

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        replay = self.replay(t)
        logits, replayed = self.logits(x, None if replay is None else replay.x)
        loss = stream_loss = cross_entropy(self.present_only(logits, y), y)
        if replay is not None:
            assert replayed is not None
            loss = stream_loss + cross_entropy(replayed, replay.y, replay.weight)
        self.step(loss)
        self.memory.write(t)
        return Observed(stream_loss, logits)

    @staticmethod
    def present_only(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Logits [S, B, K] with -∞ for the classes absent from the seed's batch, which get no gradient."""
        absent = torch.ones_like(logits[:, 0], dtype=torch.bool).scatter_(1, y, False)
        return logits.masked_fill(absent[:, None], -torch.inf)
