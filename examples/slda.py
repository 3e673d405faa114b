"""Streaming linear discriminant analysis (SLDA) on the features of a net that does not learn."""

import torch

from clpapers import Method


class SLDA(Method):
    """SLDA. Hayes & Kanan 2020, Lifelong machine learning with deep streaming linear discriminant analysis.

    Running class means μ and one covariance Σ. A class scores as a Gaussian with the precision
    Λ = ((1 - ε)·Σ + ε·I)⁻¹, ε = 1e-4. The net stays as the run begins with it. memory: μ and Σ.
    """

    def __init__(self, *, shrinkage: float = 1e-4):
        size = self.net.head.in_features
        self.shrinkage, self.seen = shrinkage, 0
        self.means, self.counts = torch.zeros(self.classes, size), torch.zeros(self.classes)
        self.covariance = torch.zeros(size, size)
        self.net.eval()

    @torch.no_grad()
    def observe(self, x: torch.Tensor, y: torch.Tensor) -> None:
        for z, c in zip(self.net.features(x), y):
            off = z - self.means[c]
            self.covariance = (self.covariance + torch.outer(off, off) / (self.seen + 1)) * self.seen / (self.seen + 1)
            self.seen += 1
            self.counts[c] += 1
            self.means[c] += off / self.counts[c]

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        shrunk = torch.lerp(self.covariance, torch.eye(len(self.covariance)), self.shrinkage)
        weights = torch.linalg.solve(shrunk, self.means.T)
        scores = self.net.features(x) @ weights - (self.means.T * weights).sum(0) / 2
        return scores.masked_fill(self.counts == 0, -torch.inf)
