"""Dark experience replay++ (DER++)."""

import torch
import torch.nn.functional as F

from clpapers import Method


class DERpp(Method):
    """DER++. Buzzega et al. 2020, Dark experience for general continual learning: a strong, simple baseline.

    The loss is ℓ(h(x), y) + α·‖z' - h(x')‖² + β·ℓ(h(x''), y''), with the mean over items and, as in the authors' code,
    over logits. The defaults are their choice for class-incremental CIFAR-10 with a memory of 500 items.

    memory: reservoir of items with the logits that the net gave them when they came.
    """

    def __init__(self, *, alpha: float = 0.2, beta: float = 0.5):
        self.alpha, self.beta = alpha, beta

    def observe(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = self.net(x)
        loss = self.loss(logits, y)
        if len(self.memory):
            old_x, _, old_logits = self.memory.draw()
            loss = loss + self.alpha * F.mse_loss(self.net(old_x), old_logits)
            old_x, old_y, _ = self.memory.draw()
            loss = loss + self.beta * self.loss(self.net(old_x), old_y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.memory.add(x, y, logits)
        return logits
