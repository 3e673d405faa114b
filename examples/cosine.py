"""Finetuning with momentum, a cosine schedule and gradients that are clipped."""

import torch

from clpapers import Method


class Cosine(Method):
    """Finetuning whose learning rate falls to zero along the stream (Loshchilov & Hutter 2017). memory: none."""

    def __init__(self, *, rate: float = 0.05, momentum: float = 0.9, clip: float = 1.0):
        self.clip = clip
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=rate, momentum=momentum)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=self.budget["steps"])

    def observe(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = self.net(x)
        loss = self.loss(logits, y)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.clip)
        self.optimizer.step()
        self.schedule.step()
        return logits
