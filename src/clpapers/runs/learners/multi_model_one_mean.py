"""Separate small models with one loss for the whole batch."""

import torch

from clpapers.runs.learner import Observed
from clpapers.runs.learners.multi_model import MultiModel
from clpapers.runs.losses import backward, cross_entropy, masked

DECLARATION = {"like": "multi_model"}


class MultiModelOneMean(MultiModel):
    """MM whose loss is the mean over the batch, not over each model's items; a reading of `rules`, rule 3.

    A model's gradient is MM's times its share of the batch. So it is MM where one model has the whole batch, and nearly
    MM under Adam, which does not see a gradient's scale. Under plain descent, as on CIFAR-100, a model with a tenth of
    the items takes a tenth of the step.

    Parameters
    ----------
    widths: as of MM.
    """

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits, optimizers = x.new_zeros(1, x.shape[1], self.classes), []
        for model, optimizer, items in self.routed(x, self.setting.tasks[:, self.setting.step(t)]):
            logits[:, items] = model(x[:, items])
            optimizer.zero_grad()
            optimizers.append(optimizer)
        loss = cross_entropy(masked(logits, self.mask(t)), y)
        backward(loss)
        for optimizer in optimizers:
            optimizer.step()
        return Observed(loss.detach(), logits.detach())
