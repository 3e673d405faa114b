"""Riemannian walk."""

import torch

from clpapers.runs.importance import RunningFisher, Tensors, min_max, pull, step_along, values, zeros
from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.optimizers import gradients

DECLARATION = {
    "options": {
        "strength": {"type": "number", "minimum": 0, "examples": [0.5]},
        "damping": {"type": "number", "exclusiveMinimum": 0, "examples": [0.001]},
        "interval": {"type": "integer", "minimum": 1, "examples": [2]},
        "decay": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "examples": [0.9]},
        "published": {"type": "boolean", "examples": [False]},
    },
    "uses": ["changes", "competing"],
    "without_changes": "single",
    "always_changing": "single",
    "static": True,
}


class RWalk(Learner):
    """RWALK. Chaudhry et al. 2018, in the code of Chaudhry et al. 2019 (`agem`): L + λ·Σ (F̂ + ŝ)·(θ - θ*)².

    Each step ω += -g·Δθ, g the gradient of the task's cross-entropy. Before each update of F, a `RunningFisher`,
    S += relu(ω/(F·(θ - θ')² + ξ)), θ' the parameters at the last update, and ω ← 0. At a task change
    s ← s + (s + S)/2 (after the first task s = S), S ← 0, θ* ← θ' ← θ. F̂ and ŝ are a seed's F and s scaled to [0, 1].

    Parameters
    ----------
    strength: λ. damping: ξ. interval, decay: of the `RunningFisher`.
    published: as in the paper of 2018: s ← (s + S)/2, half of F in S's denominator, and a new sum of squares in every
        interval. In the code the sum grows until the task ends.
    """

    def __init__(
        self, setting: Setting, *, strength: float, damping: float, interval: int, decay: float, published: bool
    ):
        super().__init__(setting)
        self.strength, self.damping, self.published = strength, damping, published
        self.fisher = RunningFisher(self.parameters, interval, decay)
        self.path, self.gain = zeros(self.parameters), zeros(self.parameters)  # ω, S
        self.before = values(self.parameters)  # θ'
        self.score: Tensors | None = None  # s
        self.begun = 0  # the task's first step

    def task_change(self, t: int) -> None:
        if self.score is None:
            self.score = values(self.gain)
        else:
            mean = torch._foreach_mul(torch._foreach_add(self.score, self.gain), 0.5)
            self.score = mean if self.published else torch._foreach_add(self.score, mean)
        seeds = len(self.setting.seeds)
        self.importance = torch._foreach_add(min_max(self.fisher.value, seeds), min_max(self.score, seeds))
        self.fisher.clear()
        for each in (self.path, self.gain):
            torch._foreach_zero_(each)
        self.centre, self.before, self.begun = values(self.parameters), values(self.parameters), t

    def update(self) -> None:
        """End an interval: add the path's gain to S, and update F."""
        here = values(self.parameters)
        length = torch._foreach_pow(torch._foreach_sub(here, self.before), 2)
        torch._foreach_mul_(length, self.fisher.value)
        if self.published:
            torch._foreach_mul_(length, 0.5)
        torch._foreach_add_(length, self.damping)
        torch._foreach_clamp_min_(self.path, 0)
        torch._foreach_addcdiv_(self.gain, self.path, length)
        torch._foreach_zero_(self.path)
        self.fisher.update()
        if self.published:
            self.fisher.clear()
        torch._foreach_copy_(self.before, here)

    def graph_key(self, t: int) -> bool:
        return self.fisher.updates_before(t - self.begun)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        if self.fisher.updates_before(t - self.begun):
            self.update()
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.optimizer.gradient(loss)
        gradient = gradients(self.parameters)
        self.fisher.add(gradient)
        if self.score:
            gradient = [g.clone() for g in gradient]  # the penalty is added in place
            pull(self.parameters, self.importance, self.centre, 2 * self.strength)
        step_along(self.path, gradient, self.parameters, self.optimizer)
        return Observed(loss, logits)
