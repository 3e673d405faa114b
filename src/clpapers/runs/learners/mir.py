"""Maximally interfered retrieval."""

import torch
import torch.nn.functional as F

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import backward, cross_entropy
from clpapers.runs.memories import Draw, Draws

DECLARATION = {
    "options": {"candidates": {"type": "integer", "minimum": 1, "examples": [12]}},
    "needs": {"budget.optimizer": ["sgd"]},
}


class MIR(Replay):
    """MIR. Aljundi et al. 2019, eq. 3, as in its authors' code.

    memory: reservoir, written after the step.  replay: of C uniform candidates, those whose loss would rise most by a
    step on the stream batch alone.

    Parameters
    ----------
    candidates: C. They are scored in training mode and tracked by the net's batch norm, as in the code.
    """

    def __init__(self, setting: Setting, *, candidates: int):
        super().__init__(setting)
        self.size = setting.budget["replay_batch"]
        self.candidates = Draws(self.memory, candidates, purpose="candidates")

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x)
        loss = cross_entropy(logits, y)
        self.optimizer.gradient(loss)
        candidates = self.candidates(t)
        if candidates is not None:
            chosen = self.most_interfered(candidates)
            x_r, y_r = self.memory.read(candidates.slots.gather(1, chosen))
            weight = None
            if candidates.weight is not None:  # fewer candidates than a replay batch: repetitions weigh nothing
                counted = (candidates.weight.gather(1, chosen) > 0).to(loss.dtype)
                weight = counted / counted.sum(dim=1, keepdim=True)
            backward(cross_entropy(self.net(x_r), y_r, weight))
        self.optimizer.step()
        self.memory.write(t)
        return Observed(loss, logits)

    @torch.no_grad()
    def most_interfered(self, candidates: Draw) -> torch.Tensor:
        """Positions [S, k] of the candidates with the largest loss(θ - η·g_s) - loss(θ), g_s the stream's gradient."""
        before = self.each_loss(candidates)
        with self.looking_ahead():
            interference = self.each_loss(candidates) - before
        if candidates.weight is not None:
            interference = interference.masked_fill(candidates.weight == 0, -torch.inf)
        return interference.topk(self.size, dim=1).indices

    def each_loss(self, batch: Draw) -> torch.Tensor:
        """Cross-entropy of each item [S, C]."""
        logits = self.net(batch.x)
        return F.cross_entropy(logits.flatten(0, 1), batch.y.flatten(), reduction="none").view(batch.y.shape)
