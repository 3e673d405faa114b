"""Elastic weight consolidation, online."""

from __future__ import annotations

import torch

from clpapers.runs.fisher import squared_gradients
from clpapers.runs.learners import Learner, Setting, backward


class EWC(Learner):
    """EWC. Kirkpatrick et al. 2017, eq. 3, with one running centre (Schwarz et al. 2018): L + (λ/2)·Σ F·(θ - θ*)².

    At a task change F ← γ·F + F_new and θ* ← θ. F_new is the mean over single items of the squared gradient of
    log p(ŷ|x), ŷ the predicted class, on the last batch of the segment that ended: a stream keeps no other data.

    Parameters
    ----------
    strength: λ.
    gamma: γ, what is kept of the old F.
    """

    def __init__(self, setting: Setting, *, strength: float, gamma: float):
        super().__init__(setting)
        self.strength, self.gamma = strength, gamma
        self.fisher: list[torch.Tensor] | None = None
        self.last: torch.Tensor | None = None

    def task_change(self, t: int) -> None:
        new = squared_gradients(self.net, self.last, self.mask(t - 1))
        old = self.fisher or [torch.zeros_like(p) for p in self.parameters]
        self.fisher = torch._foreach_add(new, old, alpha=self.gamma)
        self.centre = [p.detach().clone() for p in self.parameters]

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.optimizer.zero_grad()
        backward(loss)
        if self.fisher:
            moved = torch._foreach_sub([p.detach() for p in self.parameters], self.centre)
            torch._foreach_addcmul_([p.grad for p in self.parameters], self.fisher, moved, value=self.strength)
        self.optimizer.step()
        self.last = x
        return loss, logits
