"""Memory-aware synapses."""

import torch

from clpapers.runs.importance import pull, values, zeros
from clpapers.runs.learner import Learner, Observed, Setting

DECLARATION = {
    "options": {
        "strength": {"type": "number", "minimum": 0, "examples": [0.5]},
        "per": {"enum": ["batch", "item"], "examples": ["batch"]},
        "reset": {"type": "boolean", "examples": [True]},
    },
    "uses": ["changes", "competing"],
    "without_changes": "single",
    "always_changing": "single",
    "static": True,
}


class MAS(Learner):
    """MAS. Aljundi et al. 2018, eqs. 2-4, in the code of Chaudhry et al. 2019 (`agem`): L + λ·Σ Ω·(θ - θ*)².

    At a task change θ* ← θ, and Ω becomes the sensitivity of the net's answers to each parameter. The ended task's
    items pass again, in evaluation mode. Ω is Σ |∂/∂θ Σ logit²|, over the classes that compete, / number of items.

    Parameters
    ----------
    strength: λ.
    per: whether absolute values are taken of each training `batch`'s gradient (`agem`) or each `item`'s (Aljundi).
    reset: whether Ω is the ended task's alone (`agem`) or the sum over all tasks (Aljundi).
    """

    def __init__(self, setting: Setting, *, strength: float, per: str, reset: bool):
        super().__init__(setting)
        self.strength, self.per, self.reset = strength, per, reset
        self.importance: list[torch.Tensor] | None = None  # Ω
        self.begun = 0  # the task's first step

    def task_change(self, t: int) -> None:
        new = self.sensitivity(range(self.begun, t))
        if self.importance and not self.reset:
            torch._foreach_add_(new, self.importance)
        self.importance, self.centre, self.begun = new, values(self.parameters), t

    def sensitivity(self, steps: range) -> list[torch.Tensor]:
        """Ω from the items of some steps, one tensor a parameter."""
        total, items = zeros(self.parameters), 0
        self.net.eval()
        for t in steps:
            x, mask = self.setting.images(self.setting.items[:, self.setting.step(t)]), self.mask(t)
            items += x.shape[1]
            for part in x.split(1, dim=1) if self.per == "item" else [x]:
                logits = self.net(part)
                if mask is not None:
                    logits = logits * mask[:, None]
                gradient = torch.autograd.grad(logits.square().sum(), self.parameters)
                torch._foreach_add_(total, torch._foreach_abs(gradient))
        self.net.train()
        torch._foreach_div_(total, items)
        return total

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.optimizer.gradient(loss)
        if self.importance:
            pull(self.parameters, self.importance, self.centre, 2 * self.strength)
        self.optimizer.step()
        return Observed(loss, logits)
