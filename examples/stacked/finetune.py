"""Finetuning: the stream's batches alone, and nothing against forgetting; the smallest method that there can be."""

import torch

from clpapers.runs.learner import Learner, Observed

DECLARATION = {"options": {}}


class Finetune(Learner):
    """Finetuning, one step of cross-entropy a batch over all classes. memory: none."""

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.step(loss)
        return Observed(loss, logits)
