"""The multi-layer perceptron in ExStream's code (Hayes et al. 2019)."""

import math
from itertools import pairwise

from torch import nn


def build(
    shape: tuple[int, int, int], classes: int, *, hidden: list[int], batch_norm: bool, dropout: float
) -> nn.Module:
    """Flattened values, hidden layers of the given widths, a linear head.

    A hidden layer is linear, batch norm, ELU, dropout; `batch_norm` false and a `dropout` of 0 leave these out. Initial
    weights are normal as in Glorot & Bengio (2010), biases 1.
    """
    widths, layers = [math.prod(shape), *hidden], []
    for n_in, n_out in pairwise(widths):
        norm = [nn.BatchNorm1d(n_out)] if batch_norm else []
        drop = [nn.Dropout(dropout)] if dropout else []
        layers += [_linear(n_in, n_out), *norm, nn.ELU(), *drop]
    return nn.Sequential(nn.Flatten(), *layers, _linear(widths[-1], classes))


def _linear(n_in: int, n_out: int) -> nn.Linear:
    layer = nn.Linear(n_in, n_out)
    nn.init.xavier_normal_(layer.weight)
    nn.init.ones_(layer.bias)
    return layer
