"""One net, trained on the stream without continual learning."""

import torch

from clpapers.runs.learner import Learner, Observed

DECLARATION = {"options": {}, "uses": ["competing"], "static": True}


class Single(Learner):
    """Single (`rules`, 3.3), also called finetuning: the baseline below every method. memory: none."""

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.step(loss)
        return Observed(loss, logits)
