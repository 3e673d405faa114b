"""The multi-layer perceptron."""

import math
from itertools import pairwise

from torch import nn


def build(shape: tuple[int, int, int], classes: int, *, hidden: list[int]) -> nn.Module:
    """Flattened pixels, hidden layers of the given widths with ReLU, a linear head."""
    widths = [math.prod(shape), *hidden]
    layers = [layer for n_in, n_out in pairwise(widths) for layer in (nn.Linear(n_in, n_out), nn.ReLU())]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], classes))
