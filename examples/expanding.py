"""A net that grows: a further expert for each task."""

import copy

import torch

from clpapers import Method

DECLARATION = {"grows": True}


class Expanding(Method):
    """Experts whose logits add up, as in boosting: for each new task one more learns, and the earlier ones stay.

    In the manner of progressive networks (Rusu et al. 2016), but with one output for all tasks. memory: none.
    """

    def __init__(self, *, most: int = 5):
        self.most, self.experts = most, []

    def begin_task(self) -> None:
        if len(self.experts) < self.most:
            for expert in self.experts:
                expert.requires_grad_(False).eval()
            self.experts.append(copy.deepcopy(self.net))
            self.optimizer = self.optimize(self.experts[-1].parameters())

    def observe(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        logits = self.predict(x)
        loss = self.loss(logits, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return logits

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        return sum(expert(x) for expert in self.experts)
