"""Fold batch norm into the convolution before it, where nets only predict."""

import contextlib
import copy
import itertools
from collections.abc import Iterator

import torch
from torch import nn

from clpapers.runs.nets.stacked import StackedBatchNorm, StackedConv2d


@contextlib.contextmanager
def folded(net: nn.Module) -> Iterator[None]:
    """Inside, batch norms in evaluation mode are folded into the convolutions that they follow in an `nn.Sequential`.

    The net computes the same function, to rounding, with fewer passes over the maps. It gives no gradients; parameters
    and running statistics must not change inside.
    """
    pairs = [
        (within, conv, norm)
        for within in net.modules()
        if isinstance(within, nn.Sequential)
        for conv, norm in itertools.pairwise(within._modules)
        if isinstance(within._modules[conv], nn.Conv2d | StackedConv2d)
        and isinstance(within._modules[norm], nn.BatchNorm2d | StackedBatchNorm)
        and not within._modules[norm].training
    ]
    apart = [(within._modules[conv], within._modules[norm]) for within, conv, norm in pairs]
    for (within, conv, norm), each in zip(pairs, apart):
        within._modules[conv], within._modules[norm] = _one(*each), nn.Identity()
    try:
        yield
    finally:
        for (within, conv, norm), each in zip(pairs, apart):
            within._modules[conv], within._modules[norm] = each


@torch.no_grad()
def _one(conv: nn.Module, norm: nn.Module) -> nn.Module:
    """One convolution equal to `conv` followed by `norm`."""
    scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
    bias = norm.bias - norm.running_mean * scale
    both = copy.copy(conv)
    both._parameters = {}
    both.weight = conv.weight * scale[..., None, None, None]
    both.bias = bias if conv.bias is None else bias + conv.bias * scale
    return both
