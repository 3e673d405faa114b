"""Maximally interfered retrieval."""

import contextlib

import torch
import torch.nn.functional as F

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.memories import Draw, Draws

DECLARATION = {
    "options": {
        "candidates": {"type": "integer", "minimum": 1, "examples": [12]},
        "forward": {
            "enum": ["separate", "joint", "joint_tracking"],
            "examples": ["separate", "joint", "joint_tracking"],
        },
    },
    "needs": {"budget.optimizer": ["sgd"]},
    "static": True,
}


class MIR(Replay):
    """MIR. Aljundi et al. 2019, eq. 3, as in its authors' code.

    memory: reservoir, written after the step.  replay: of C uniform candidates, those whose loss would rise most by a
    step on the stream batch alone.

    Parameters
    ----------
    candidates: C, scored in training mode.
    forward: `separate`, as in the authors' code, where the net's batch norm tracks the candidates too; or `joint`, as
        in the code of GMED, where looking ahead leaves no trace and one pass over stream and replay batch follows; or
        `joint_tracking`, that pass, but batch norm tracks the candidates too.
    """

    def __init__(self, setting: Setting, *, candidates: int, forward: str):
        super().__init__(setting)
        self.one_pass, self.tracks = forward != "separate", forward != "joint"
        self.size = setting.budget["replay_batch"]
        self.candidates = Draws(self.memory, candidates, purpose="candidates")

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        candidates = self.candidates(t)
        seen = self.stream_gradient(x, y, alone=candidates is None)
        if candidates is not None:
            seen = self.add_replay(seen, x, y, self.most_interfered_batch(candidates))
        self.optimizer.step()
        self.memory.write(t)
        return seen

    def most_interfered_batch(self, candidates: Draw) -> Draw:
        """The replay batch: the most interfered of the candidates."""
        positions = self.most_interfered(candidates)
        slots = candidates.slots.gather(1, positions)
        weight = None
        if candidates.weight is not None:  # fewer candidates than a replay batch: repetitions weigh nothing
            counted = (candidates.weight.gather(1, positions) > 0).to(candidates.weight.dtype)
            weight = counted / counted.sum(dim=1, keepdim=True)
        return Draw(*self.memory.read(slots), slots, weight)

    @torch.no_grad()
    def most_interfered(self, candidates: Draw) -> torch.Tensor:
        """Positions [S, k] of the candidates with the largest loss(θ - η·g_s) - loss(θ), g_s the stream's gradient."""
        with contextlib.nullcontext() if self.tracks else self.net.untracked():
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
