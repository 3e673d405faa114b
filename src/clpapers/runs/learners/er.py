"""Experience replay."""

import torch

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draws

DECLARATION = {
    "options": {
        "forward": {"enum": ["separate", "joint", "concatenated"], "examples": ["separate", "joint", "concatenated"]},
        "classes": {"enum": ["all", "of_task"], "default": "all", "examples": ["all", "of_task"]},
    },
    "static": True,
    "where": {"classes": {"of_task": {"uses": ["tasks", "competing"]}}},
}


class ER(Replay):
    """ER. Isele & Cosgun 2018; Chaudhry et al. 2019, as in the code of GMED, or of MIR and ACE.

    memory: reservoir, written after the step.  replay: uniform, as soon as the memory holds an item.

    Parameters
    ----------
    forward: `separate` (MIR, ACE) passes stream and replay batch through the net one after the other and sums their
        mean losses. `joint` (GMED) sums them too, but passes both as one batch, with batch statistics over both.
        `concatenated` (A-GEM) passes them as one batch and takes the mean over all items, which halves the step.
    classes: what competes in training: `all` classes; or those that the cell's restriction names for the stream batch,
        and for a replayed item those `of_task`, its own.
    """

    weighted = False

    def __init__(self, setting: Setting, *, forward: str, classes: str = "all"):
        super().__init__(setting)
        self.beside: torch.Tensor | None = None  # bool [S, K, K], the classes of a class's tasks, where they compete
        if classes == "of_task" and setting.masks is not None:
            of_task = setting.task_classes
            self.beside = (of_task[..., None] & of_task[:, :, None]).any(dim=1)
        self.one_pass, self.one_mean = forward != "separate", forward == "concatenated"
        self.replay = Draws(self.memory, setting.budget["replay_batch"], weighted=self.weighted)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        replay = self.replay(t)
        logits, replayed = self.logits(x, None if replay is None else replay.x)
        loss = stream_loss = cross_entropy(logits, y) if self.beside is None else self.loss(t, logits, y)
        if replay is not None:
            assert replayed is not None
            if self.beside is not None:
                rows = torch.arange(len(replay.y), device=replay.y.device)[:, None]
                replayed = replayed.masked_fill(~self.beside[rows, replay.y], -torch.inf)
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
