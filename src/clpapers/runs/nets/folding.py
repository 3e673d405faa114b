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
        (within._modules, first, conv, second, norm)
        for within in net.modules()
        if isinstance(within, nn.Sequential)
        for (first, conv), (second, norm) in itertools.pairwise(within._modules.items())
        if isinstance(conv, nn.Conv2d | StackedConv2d)
        and isinstance(norm, nn.BatchNorm2d | StackedBatchNorm)
        and not norm.training
    ]
    for modules, first, conv, second, norm in pairs:
        modules[first], modules[second] = _one(conv, norm), nn.Identity()
    try:
        yield
    finally:
        for modules, first, conv, second, norm in pairs:
            modules[first], modules[second] = conv, norm


@torch.no_grad()
def _one(conv: nn.Conv2d | StackedConv2d, norm: nn.BatchNorm2d | StackedBatchNorm) -> nn.Module:
    """One convolution equal to `conv` followed by `norm`."""
    assert norm.running_mean is not None  # no net of ours has a batch norm without running statistics
    assert norm.running_var is not None
    scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
    bias = norm.bias - norm.running_mean * scale
    both = copy.copy(conv)
    both._parameters = {}
    weight = conv.weight * scale[..., None, None, None]
    vars(both).update(weight=weight, bias=bias if conv.bias is None else bias + conv.bias * scale)
    return both
