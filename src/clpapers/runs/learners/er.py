"""Experience replay."""

import torch

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draws

DECLARATION = {"options": {"forward": {"enum": ["separate", "concatenated"], "examples": ["separate", "concatenated"]}}}


class ER(Replay):
    """ER. Isele & Cosgun 2018; Chaudhry et al. 2019, as in the code of MIR and ACE.

    memory: reservoir, written after the step.  replay: uniform, as soon as the memory holds an item.

    Parameters
    ----------
    forward: `separate` passes stream and replay batch through the net one after the other and sums their mean losses;
        `concatenated` passes them as one batch and takes the mean over all items, which halves the step.
    """

    weighted = False

    def __init__(self, setting: Setting, *, forward: str):
        super().__init__(setting)
        self.joined = {"separate": False, "concatenated": True}[forward]
        self.replay = Draws(self.memory, setting.budget["replay_batch"], weighted=self.weighted)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        replay = self.replay(t)
        loss, stream_loss, logits = (self.concatenated if self.joined else self.separate)(x, y, replay)
        self.step(loss)
        self.memory.write(t)
        return Observed(stream_loss, logits)

    def separate(self, x, y, replay):
        """L_s + L_r, each with its own mean and batch-norm statistics."""
        logits = self.net(x)
        loss = stream_loss = cross_entropy(logits, y)
        if replay is not None:
            loss = stream_loss + cross_entropy(self.net(replay.x), replay.y, replay.weight)
        return loss, stream_loss, logits

    def concatenated(self, x, y, replay):
        """(B·L_s + k·L_r)/(B + k), in one pass."""
        if replay is None:
            return self.separate(x, y, None)
        b = x.shape[1]
        logits = self.net(torch.cat([x, replay.x], dim=1))
        stream_loss = cross_entropy(logits[:, :b], y)
        replay_loss = cross_entropy(logits[:, b:], replay.y, replay.weight)
        share = b / logits.shape[1]
        return share * stream_loss + (1 - share) * replay_loss, stream_loss, logits[:, :b]
