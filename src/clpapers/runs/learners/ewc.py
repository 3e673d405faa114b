"""Elastic weight consolidation, online."""

from __future__ import annotations

import torch

from clpapers.runs.fisher import squared_gradients
from clpapers.runs.importance import RunningFisher, min_max, pull, values, zeros
from clpapers.runs.learners import Learner, Setting, backward


class EWC(Learner):
    """EWC. Kirkpatrick et al. 2017, eq. 3, with one running centre (Schwarz et al. 2018): L + (λ/2)·Σ F·(θ - θ*)².

    At a task change F ← γ·F + F_new and θ* ← θ. A stream keeps no data to estimate F_new on: `rules` has the last batch
    of the segment that ended, the code of Chaudhry et al. 2019 (`agem`) the squares that the steps leave in passing.

    Parameters
    ----------
    strength: λ.
    gamma: γ, what is kept of the old F. `agem` keeps nothing.
    fisher: F_new. `last_batch`, the mean over the single items of the ended segment's last batch of the squared
        gradient of log p(ŷ|x), ŷ being the predicted class; or {interval, decay}, the options of a `RunningFisher`.
    normalise: whether each seed's F pulls scaled to [0, 1], as in `agem`.
    half: whether the penalty is λ/2 times the sum, as printed, or λ times, as in `agem`.
    """

    def __init__(
        self, setting: Setting, *, strength: float, gamma: float, fisher: str | dict, normalise: bool, half: bool
    ):
        super().__init__(setting)
        self.strength, self.gamma, self.normalise = strength if half else 2 * strength, gamma, normalise
        self.running = None if fisher == "last_batch" else RunningFisher(self.parameters, **fisher)
        self.fisher: list[torch.Tensor] | None = None  # F
        self.last: torch.Tensor | None = None
        self.begun = 0  # the task's first step

    def task_change(self, t: int) -> None:
        if self.running is None:
            new = squared_gradients(self.net, self.last, self.mask(t - 1))
        else:
            new = self.running.value
            self.running.clear()
        self.fisher = torch._foreach_add(new, self.fisher or zeros(self.parameters), alpha=self.gamma)
        self.importance = min_max(self.fisher, len(self.setting.seeds)) if self.normalise else self.fisher
        self.centre, self.begun = values(self.parameters), t

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.running and self.running.due(t - self.begun):
            self.running.update()
            self.running.clear()
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.optimizer.zero_grad()
        backward(loss)
        if self.running:
            self.running.add([p.grad for p in self.parameters])
        if self.fisher:
            pull(self.parameters, self.importance, self.centre, self.strength)
        self.optimizer.step()
        if not self.running:
            self.last = x
        return loss, logits
