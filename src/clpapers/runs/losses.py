"""Common losses and their gradients. The seed is the first axis: logits [S, B, K], losses [S]."""

import torch
import torch.nn.functional as F


def backward(loss: torch.Tensor) -> None:
    """Add every seed's own gradient of its loss [S] to the parameters' `grad`."""
    loss.sum().backward()  # given a gradient, PyTorch would import its symbolic algebra: a second a job


def masked(logits: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Logits [S, B, K] with those outside the mask [S, K] at -∞."""
    return logits if mask is None else logits.masked_fill(~mask[:, None], -torch.inf)


def cross_entropy(logits: torch.Tensor, y: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
    """Each seed's mean cross-entropy: logits [S, B, K], labels [S, B], weights [S, B] summing to one → [S]."""
    s, b, k = logits.shape
    if s == 1 and weight is None:
        return F.cross_entropy(logits.view(b, k), y.view(b)).view(1)
    each = F.cross_entropy(logits.reshape(s * b, k), y.reshape(s * b), reduction="none").view(s, b)
    return each.mean(dim=1) if weight is None else (each * weight).sum(dim=1)
