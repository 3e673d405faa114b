"""Gradient-based memory editing."""

import dataclasses

import torch

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draw, Draws

DECLARATION = {
    "options": {
        "alpha": {"type": "number", "minimum": 0, "examples": [0.5]},
        "beta": {"type": "number", "minimum": 0, "examples": [0.1]},
        "decay": {"type": "number", "minimum": 0, "maximum": 1, "examples": [0.1, 0.0]},
        "sign": {"enum": ["paper", "code"], "examples": ["paper", "code"]},
        "forward": {"enum": ["separate", "joint"], "examples": ["separate", "joint"]},
    },
    "needs": {"budget.optimizer": ["sgd"]},
    "static": True,
}


class GMED(Replay):
    """GMED. Jin et al. 2021, eqs. 3-4, as in its authors' code.

    memory: reservoir of pixels, written after the step.  replay: uniform; the drawn batch is edited, then used.

    Parameters
    ----------
    alpha: stride of an edit, in units of the scaled input.
    beta: weight of the term that keeps the loss before the step low.
    decay: an item's stride is α·(1-decay)^(times it was edited).
    sign: `paper` edits along (g₂ - g₁) - β·g₁; `code` along (g₂ - g₁) + β·g₁.
    forward: `joint`, as in the authors' code, or `separate`, as for ER.
    """

    keep_pixels = True

    def __init__(self, setting: Setting, *, alpha: float, beta: float, decay: float, sign: str, forward: str):
        super().__init__(setting)
        self.one_pass = forward == "joint"
        self.alpha, self.decay = alpha, decay
        self.beta = {"paper": beta, "code": -beta}[sign]
        self.replay = Draws(self.memory, setting.budget["replay_batch"])
        self.age = torch.zeros_like(self.memory.item, dtype=setting.images.dtype)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        replay = self.replay(t)
        seen = self.stream_gradient(x, y, alone=replay is None)
        if replay is not None:
            edited = dataclasses.replace(replay, x=self.edit(replay))
            with edited.writing():
                self.memory.replace(edited.slots, edited.x)
            seen = self.add_replay(seen, x, y, edited)
        self.optimizer.step()
        self.memory.write(t)
        return seen

    def edit(self, replay: Draw) -> torch.Tensor:
        """x + α·[(g₂ - g₁) - β·g₁], towards more interference by the step on the stream batch: [S, k, …]."""
        x = replay.x.detach().requires_grad_()
        with self.net.untracked():
            g1 = self.input_gradient(x, replay)
        with self.looking_ahead():
            g2 = self.input_gradient(x, replay)
        age = self.age.gather(1, replay.slots)
        stride = (self.alpha * (1 - self.decay) ** age)[..., None, None, None]
        with replay.writing():
            self.age.scatter_(1, replay.slots, age + 1)
        return x.detach() + stride * ((g2 - g1) - self.beta * g1)

    def input_gradient(self, x: torch.Tensor, replay: Draw) -> torch.Tensor:
        """∂(mean loss)/∂x at the present parameters; the batch mean, for which the authors tuned α."""
        loss = cross_entropy(self.net(x), replay.y, replay.weight)
        return torch.autograd.grad(loss.sum(), x)[0]
