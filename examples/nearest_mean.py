"""Nearest class mean (NCM) on the features of a net that is finetuned."""

import torch

from clpapers import Method


class NearestMean(Method):
    """An image's class is the one whose mean feature is nearest (Mensink et al. 2013).

    A feature counts as it was when its image came, so that means lag behind the net. memory: the means.
    """

    def __init__(self):
        self.sums = torch.zeros(self.classes, self.net.head.in_features)
        self.counts = torch.zeros(self.classes)

    def observe(self, x: torch.Tensor, y: torch.Tensor) -> None:
        features = self.net.features(x)
        loss = self.loss(self.net.head(features), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.sums.index_add_(0, y, features.detach())
        self.counts += torch.bincount(y, minlength=self.classes)

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        means = self.sums / self.counts.clamp(min=1)[:, None]
        distances = torch.cdist(self.net.features(x), means)
        return -distances.masked_fill(self.counts == 0, torch.inf)
