"""Synaptic intelligence."""

from __future__ import annotations

import torch

from clpapers.runs.learners import Learner, Setting, backward


class SI(Learner):
    """SI. Zenke et al. 2017, eqs. 3-5, as in van de Ven & Tolias 2019: L + c·Σ Ω·(θ - θ̃)².

    Each step: ω += -g·Δθ, g the gradient of the whole loss. At a task change:
    Ω += ω/((θ - θ̃)² + ξ), θ̃ ← θ, ω ← 0.

    Parameters
    ----------
    strength: c. damping: ξ.
    """

    def __init__(self, setting: Setting, *, strength: float, damping: float):
        super().__init__(setting)
        self.strength, self.damping = strength, damping
        self.path = [torch.zeros_like(p) for p in self.parameters]  # ω
        self.importance = [torch.zeros_like(p) for p in self.parameters]  # Ω
        self.anchor = self.values()  # θ̃
        self.consolidated = False

    def values(self) -> list[torch.Tensor]:
        """A copy of the parameters; the live ones move on."""
        return [p.detach().clone() for p in self.parameters]

    def task_change(self, t: int) -> None:
        here = self.values()
        moved2 = torch._foreach_pow(torch._foreach_sub(here, self.anchor), 2)
        torch._foreach_addcdiv_(self.importance, self.path, torch._foreach_add(moved2, self.damping))
        torch._foreach_zero_(self.path)
        self.anchor, self.consolidated = here, True

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.optimizer.zero_grad()
        backward(loss)
        before, gradient = self.values(), [p.grad for p in self.parameters]
        if self.consolidated:
            moved = torch._foreach_sub(before, self.anchor)
            torch._foreach_addcmul_(gradient, self.importance, moved, value=2 * self.strength)
        self.optimizer.step()
        step = torch._foreach_sub([p.detach() for p in self.parameters], before)
        torch._foreach_addcmul_(self.path, gradient, step, value=-1)
        return loss, logits
