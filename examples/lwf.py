"""Learning without forgetting (LwF)."""

import copy

import torch
import torch.nn.functional as F

from clpapers import Method


class LwF(Method):
    """LwF. Li & Hoiem 2016, Learning without forgetting, eqs. 1-3: L_new + λ_o·L_old.

    The net from before the task changed answers the new images, too. L_old is the cross-entropy with its answers. Both
    are softened by a temperature T, over the classes learnt until then. All old classes share a softmax here, so that
    no task need be known. λ_o = 1 and T = 2 are the paper's choice. memory: none but the old net.
    """

    def __init__(self, *, strength: float = 1.0, temperature: float = 2.0):
        self.strength, self.temperature, self.teacher = strength, temperature, None
        self.learnt = torch.zeros(self.classes, dtype=torch.bool)

    def end_task(self) -> None:
        self.teacher, self.old = copy.deepcopy(self.net).requires_grad_(False).eval(), self.learnt.clone()

    def observe(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = self.net(x)
        loss = self.loss(logits, y)
        if self.teacher is not None:
            old = (self.teacher(x)[:, self.old] / self.temperature).softmax(dim=1)
            loss = loss + self.strength * F.cross_entropy(logits[:, self.old] / self.temperature, old)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.learnt[y] = True
        return logits
