"""Squared gradients of single items: the diagonal of the Fisher information, estimated one item at a time."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from clpapers.runs.losses import masked
from clpapers.runs.nets.heads import JointEmbedding
from clpapers.runs.nets.stacked import (
    Stack,
    StackedBatchNorm,
    StackedConv2d,
    StackedJointEmbedding,
    StackedLinear,
)

CHUNK = 8  # items whose gradients of a convolution are held at once


def squared_gradients(
    net: Stack,
    x: torch.Tensor,
    mask: torch.Tensor | None = None,
    uniform: torch.Tensor | None = None,
    *,
    every: bool = False,
) -> list[torch.Tensor]:
    """Mean over the items x [S, B, …] of (∂ log p(ŷ|x)/∂θ)², ŷ the predicted class: one tensor a parameter.

    With `uniform` numbers [S, B] in [0, 1), ŷ is sampled from p instead, by inverting the distribution function. With
    `every` it is the mean over ŷ ~ p, in one backward pass for each class.

    The net is in evaluation mode, so that an item's gradient does not depend on its batch; with a `mask` [S, K] only
    its classes compete. Squares are taken item by item, since the square of a mean would shrink as batches grow. An
    item's gradient of a layer's parameters follows from the layer's input and from the gradient of its output.

    Raises ValueError for a layer with parameters that `SQUARED` does not know.
    """
    training = net.training
    layers: list[Any] = [m for m in net.eval().modules() if next(m.parameters(recurse=False), None) is not None]
    for layer in layers:
        if type(layer) not in SQUARED:
            raise ValueError(f"no squared gradients for {type(layer).__name__}; add it to SQUARED")
    seen: dict[nn.Module, tuple[torch.Tensor, torch.Tensor]] = {}
    hooks = [m.register_forward_hook(lambda m, inputs, out: seen.update({m: (inputs[0], out)})) for m in layers]
    log_p = F.log_softmax(masked(net(x), mask), dim=2)
    if every:  # √p times the gradient squares to p times its square
        competing = [each.masked_fill(each == -torch.inf, 0) for each in log_p.unbind(dim=2)]
        roots = log_p.detach().mul(0.5).exp().unbind(dim=2)
        likelihoods = [(root * each).sum() for root, each in zip(roots, competing) if root.any()]
    else:
        likelihoods = [(log_p.amax(dim=2) if uniform is None else _sampled(log_p, uniform)).sum()]
    for hook in hooks:
        hook.remove()
    net.train(training)
    estimate: dict[torch.Tensor, torch.Tensor] = {}
    for likelihood in likelihoods:
        deltas = torch.autograd.grad(likelihood, [seen[layer][1] for layer in layers], retain_graph=every)
        for layer, delta in zip(layers, deltas):
            weight, bias = SQUARED[type(layer)](layer, seen[layer][0].detach(), delta, len(x))
            for parameter, square in ((layer.weight, weight), (layer.bias, bias)):
                if parameter is not None:
                    mean = square.view(parameter.shape) / x.shape[1]
                    estimate[parameter] = mean if parameter not in estimate else estimate[parameter] + mean
    return [estimate[p] for p in net.parameters()]


def squared_mean_gradient(net: Stack, x: torch.Tensor, mask: torch.Tensor | None = None) -> list[torch.Tensor]:
    """(∂/∂θ of the mean over the items x [S, B, …] of log p(ŷ|x))², as of a program with one backward pass a batch.

    Smaller than `squared_gradients`, as the items' gradients cancel; the same for one item. Otherwise as there.
    """
    training = net.training
    log_p = F.log_softmax(masked(net.eval()(x), mask), dim=2)
    net.train(training)
    return [g.square() for g in torch.autograd.grad(log_p.amax(dim=2).mean(dim=1).sum(), list(net.parameters()))]


def _sampled(log_p: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """log p [S, B] of the sampled class of each item, from log p [S, B, K] and uniform numbers [S, B]."""
    reached = log_p.detach().double().cpu().exp().cumsum(dim=2)  # on a GPU this sum has no fixed order
    y = (reached <= uniform.cpu()[..., None] * reached[..., -1:]).sum(dim=2)  # never a class of probability 0
    return log_p.gather(2, y[..., None].to(log_p.device)).squeeze(2)


def _linear(layer: Any, a: torch.Tensor, delta: torch.Tensor, s: int) -> tuple[torch.Tensor, torch.Tensor]:
    """An item's gradient of the weight is δ·aᵀ, hence its square (δ²)·(a²)ᵀ: one matrix product for all items."""
    squared, a = (v.view(len(v), s, -1).transpose(0, 1).square() for v in (delta, a))  # [S, B, out], [S, B, in]
    return squared.transpose(1, 2) @ a, squared.sum(dim=1)


def _joint_embedding(layer: Any, a: torch.Tensor, delta: torch.Tensor, s: int) -> tuple[torch.Tensor, torch.Tensor]:
    """An item's gradient of W is (Aᵀδ)·aᵀ, as of a linear layer with output gradient Aᵀδ."""
    _, bias = _linear(layer, a, delta, s)
    delta = delta.view(len(delta), s, 1, -1) @ layer.attributes.view(s, *layer.attributes.shape[-2:])
    return _linear(layer, a, delta, s)[0], bias


def _convolution(layer: Any, a: torch.Tensor, delta: torch.Tensor, s: int) -> tuple[torch.Tensor, torch.Tensor]:
    """An item's gradient of the weight is the sum over places of δ times the patch there."""
    delta = delta.reshape(len(delta), s, -1, delta.shape[2] * delta.shape[3])  # [B, S, out, places]
    weight: torch.Tensor | int = 0
    for a_, delta_ in zip(a.split(CHUNK), delta.split(CHUNK)):
        patches = F.unfold(a_, layer.weight.shape[-2:], layer.dilation, layer.padding, layer.stride)
        patches = patches.view(len(a_), s, -1, patches.shape[2])  # [B, S, in·k·k, places]
        weight = weight + (delta_ @ patches.transpose(2, 3)).square().sum(dim=0)
    assert isinstance(weight, torch.Tensor)
    return weight, delta.sum(dim=3).square().sum(dim=0)


def _batch_norm(layer: Any, a: torch.Tensor, delta: torch.Tensor, s: int) -> tuple[torch.Tensor, torch.Tensor]:
    """In evaluation mode the layer scales and shifts each channel."""
    mean, variance = (v.view(-1, 1, 1) for v in (layer.running_mean, layer.running_var))
    normalised = (a - mean) * (variance + layer.eps).rsqrt()
    weight, bias = (each.sum(dim=(2, 3)).square().sum(dim=0) for each in (delta * normalised, delta))
    return weight, bias


SQUARED: dict[type[nn.Module], Callable[..., tuple[torch.Tensor, torch.Tensor]]] = {
    nn.Linear: _linear,
    StackedLinear: _linear,
    JointEmbedding: _joint_embedding,
    StackedJointEmbedding: _joint_embedding,
    nn.Conv2d: _convolution,
    StackedConv2d: _convolution,
    nn.BatchNorm2d: _batch_norm,
    StackedBatchNorm: _batch_norm,
}
