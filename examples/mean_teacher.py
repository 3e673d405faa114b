"""Replay against a teacher that is the moving average of the net."""

import copy

import torch
import torch.nn.functional as F

from clpapers import Method

DECLARATION = {"grid": {"learner.weight": [0.1, 0.5]}}


class MeanTeacher(Method):
    """The net keeps to the logits of its own moving average on items of a memory, and the average answers.

    After CLS-ER (Arani et al. 2022), with one average in the place of two. memory: reservoir of images and labels.
    """

    def __init__(self, *, decay: float = 0.99, weight: float = 0.5):
        self.decay, self.weight = decay, weight
        self.teacher = copy.deepcopy(self.net).requires_grad_(False)

    def observe(self, x: torch.Tensor, y: torch.Tensor) -> None:
        loss = self.loss(self.net(x), y)
        if len(self.memory):
            old_x, old_y = self.memory.draw()
            logits = self.net(old_x)
            loss = loss + self.loss(logits, old_y) + self.weight * F.mse_loss(logits, self.teacher(old_x))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        for mean, own in zip(self.teacher.parameters(), self.net.parameters()):
            mean.lerp_(own.detach(), 1 - self.decay)
        self.memory.add(x, y)

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        return self.teacher(x)
