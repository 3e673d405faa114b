"""Learning without forgetting (LwF)."""

import copy

import torch

from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.losses import masked

# λ_o = 1 and T = 2 are the paper's choice (its sections 3 and 4).
DECLARATION = {
    "options": {
        "strength": {"type": "number", "minimum": 0, "default": 1.0},
        "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 2.0},
    },
    "uses": ["changes", "competing"],
}


class LwF(Learner):
    """LwF. Li & Hoiem 2016, Learning without forgetting, eqs. 1-3: L_new + λ_o·L_old.

    L_old is the cross-entropy of the net's answers to new images with the answers of the net before the task changed.
    Both are softened by a temperature T, over the classes learnt until then. The paper has a softmax for each old task;
    here all old classes share one, so that no task need be known. The old net answers in evaluation mode, as in the
    paper, which asks it before the task. No weight decay, no warm-up.

    memory: none but the old net.

    Parameters
    ----------
    strength: λ_o.
    temperature: T.
    """

    def __init__(self, setting: Setting, *, strength: float, temperature: float):
        super().__init__(setting)
        self.strength, self.temperature = strength, temperature
        self.teacher = self.old = None  # the net before the change, and bool [S, K], the classes learnt by then

    def task_change(self, t: int) -> None:
        self.teacher = copy.deepcopy(self.net).requires_grad_(False).eval()
        learnt = self.setting.labels[:, : self.setting.step(t).start]
        self.old = torch.zeros((len(learnt), self.classes), dtype=torch.bool, device=learnt.device)
        self.old.scatter_(1, learnt, True)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x)
        loss = new_loss = self.loss(t, logits, y)
        if self.teacher is not None:
            loss = new_loss + self.strength * self.distance(logits, self.teacher(x))
        self.step(loss)
        return Observed(new_loss, logits)

    def distance(self, logits: torch.Tensor, recorded: torch.Tensor) -> torch.Tensor:
        """L_old [S], eq. 2, of logits and recorded logits [S, B, K]."""
        of_new, of_old = (masked(each / self.temperature, self.old) for each in (logits, recorded))
        each = of_old.softmax(dim=2) * of_new.log_softmax(dim=2).masked_fill(~self.old[:, None], 0)
        return -each.sum(dim=2).mean(dim=1)
