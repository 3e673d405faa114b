"""Synaptic intelligence."""

import torch

from clpapers.runs.importance import pull, step_along, values, zeros
from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.optimizers import gradients

DECLARATION = {
    "options": {
        "strength": {"type": "number", "minimum": 0, "examples": [0.5, 0.1]},
        "damping": {"type": "number", "exclusiveMinimum": 0, "examples": [0.1, 0.001]},
        "gradient": {"enum": ["whole", "task"], "examples": ["whole", "task"]},
        "clip": {"type": "boolean", "examples": [False, True]},
    },
    "uses": ["changes", "competing"],
    "without_changes": "single",
    "always_changing": "single",
    "static": True,
}


class SI(Learner):
    """SI. Zenke et al. 2017, eqs. 3-5, as in van de Ven & Tolias 2019: L + c·Σ Ω·(θ - θ̃)².

    Each step: ω += -g·Δθ. At a task change: Ω += ω/((θ - θ̃)² + ξ), θ̃ ← θ, ω ← 0. Chaudhry et al. 2019 (`agem`) call it
    PI; in their code g is the task's gradient, and a task's contribution is clipped.

    Parameters
    ----------
    strength: c. damping: ξ.
    gradient: g, of the `whole` loss or of the `task`'s cross-entropy alone.
    clip: whether negative ω add nothing to Ω.
    """

    def __init__(self, setting: Setting, *, strength: float, damping: float, gradient: str, clip: bool):
        super().__init__(setting)
        self.strength, self.damping, self.clip = strength, damping, clip
        self.whole = gradient == "whole"
        self.path, self.importance = zeros(self.parameters), zeros(self.parameters)  # ω, Ω
        self.anchor = values(self.parameters)  # θ̃
        self.consolidated = False

    def task_change(self, t: int) -> None:
        here = values(self.parameters)
        moved2 = torch._foreach_pow(torch._foreach_sub(here, self.anchor), 2)
        if self.clip:
            torch._foreach_clamp_min_(self.path, 0)
        torch._foreach_addcdiv_(self.importance, self.path, torch._foreach_add(moved2, self.damping))
        torch._foreach_zero_(self.path)
        self.anchor, self.consolidated = here, True

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.optimizer.gradient(loss)
        gradient = gradients(self.parameters)
        if self.consolidated:
            if not self.whole:
                gradient = [g.clone() for g in gradient]  # the penalty is added in place
            pull(self.parameters, self.importance, self.anchor, 2 * self.strength)
        step_along(self.path, gradient, self.parameters, self.optimizer)
        return Observed(loss, logits)
