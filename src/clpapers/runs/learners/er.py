"""Experience replay."""

import torch

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draws

DECLARATION = {
    "options": {
        "forward": {"enum": ["separate", "joint", "concatenated"], "examples": ["separate", "joint", "concatenated"]}
    },
    "static": True,
}


class ER(Replay):
    """ER. Isele & Cosgun 2018; Chaudhry et al. 2019, as in the code of GMED, or of MIR and ACE.

    memory: reservoir, written after the step.  replay: uniform, as soon as the memory holds an item.

    Parameters
    ----------
    forward: `separate` (MIR, ACE) passes stream and replay batch through the net one after the other and sums their
        mean losses. `joint` (GMED) sums them too, but passes both as one batch, with batch statistics over both.
        `concatenated` (A-GEM) passes them as one batch and takes the mean over all items, which halves the step.
    """

    weighted = False

    def __init__(self, setting: Setting, *, forward: str):
        super().__init__(setting)
        self.one_pass, self.one_mean = forward != "separate", forward == "concatenated"
        self.replay = Draws(self.memory, setting.budget["replay_batch"], weighted=self.weighted)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        replay = self.replay(t)
        logits, replayed = self.logits(x, None if replay is None else replay.x)
        loss = stream_loss = cross_entropy(logits, y)
        if replay is not None:
            assert replayed is not None
            replay_loss = cross_entropy(replayed, replay.y, replay.weight)
            loss = self.combined(stream_loss, replay_loss, x.shape[1], replay.x.shape[1])
        self.step(loss)
        self.memory.write(t)
        return Observed(stream_loss, logits)

    def combined(self, stream_loss: torch.Tensor, replay_loss: torch.Tensor, b: int, k: int) -> torch.Tensor:
        """L_s + L_r of the mean losses [S], or (b·L_s + k·L_r)/(b + k), of b and k items."""
        if not self.one_mean:
            return stream_loss + replay_loss
        share = b / (b + k)
        return share * stream_loss + (1 - share) * replay_loss
