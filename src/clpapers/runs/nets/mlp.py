"""The multi-layer perceptron."""

import math
from itertools import pairwise

import torch
from torch import nn


class Copied(nn.Module):
    """Repeats every input, copies side by side: [B, n] → [B, copies·n], in a stack too ([B, S·n], seeds outermost)."""

    def __init__(self, copies: int):
        super().__init__()
        self.copies = copies

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.repeat_interleave(self.copies, dim=1)


def build(shape: tuple[int, int, int], classes: int, *, hidden: list[int], copies: int = 1) -> nn.Module:
    """Flattened pixels, hidden layers of the given widths with ReLU, a linear head.

    copies: how often each pixel enters: 3 for grey images that are read as coloured ones.
    """
    widths = [copies * math.prod(shape), *hidden]
    layers = [layer for n_in, n_out in pairwise(widths) for layer in (nn.Linear(n_in, n_out), nn.ReLU())]
    inputs = [nn.Flatten(), Copied(copies)] if copies > 1 else [nn.Flatten()]
    return nn.Sequential(*inputs, *layers, nn.Linear(widths[-1], classes))
