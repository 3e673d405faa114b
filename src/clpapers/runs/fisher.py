"""Squared gradients of single items: the diagonal of the Fisher information, estimated one item at a time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from clpapers.runs.learners import masked
from clpapers.runs.nets.stacked import Stack, StackedLinear

CHUNK = 8  # items whose gradients are held at once where a net is more than linear layers


def squared_gradients(net: Stack, x: torch.Tensor, mask: torch.Tensor | None = None) -> list[torch.Tensor]:
    """Mean over the items x [S, B, …] of (∂ log p(ŷ|x)/∂θ)², ŷ the predicted class: one tensor a parameter.

    The net answers in evaluation mode, so that an item's gradient does not depend on its batch; with a `mask`
    [S, K] only its classes compete. Never the square of a mean, which would shrink as batches grow.
    """
    training = net.training
    net.eval()
    linear = [m for m in net.modules() if isinstance(m, (nn.Linear, StackedLinear))]
    weighted = [m for m in net.modules() if next(m.parameters(recurse=False), None) is not None]
    estimate = _of_linear_layers(net, linear, x, mask) if linear == weighted else _item_by_item(net, x, mask)
    net.train(training)
    return estimate


def _log_likelihood(net: Stack, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Σ over seeds and items of log p(ŷ|x)."""
    return F.log_softmax(masked(net(x), mask), dim=2).amax(dim=2).sum()


def _of_linear_layers(net, layers, x, mask) -> list[torch.Tensor]:
    """An item's gradient of a weight is δ·aᵀ, hence its square (δ²)·(a²)ᵀ: one matrix product for all items."""
    seen: dict[nn.Module, tuple[torch.Tensor, torch.Tensor]] = {}
    hooks = [m.register_forward_hook(lambda m, inputs, out: seen.update({m: (inputs[0], out)})) for m in layers]
    likelihood = _log_likelihood(net, x, mask)
    for hook in hooks:
        hook.remove()
    deltas = torch.autograd.grad(likelihood, [seen[layer][1] for layer in layers])
    s, b = x.shape[:2]
    estimate = {}
    for layer, delta in zip(layers, deltas):
        delta2 = delta.view(b, s, -1).transpose(0, 1).square()  # [S, B, out]
        input2 = seen[layer][0].detach().view(b, s, -1).transpose(0, 1).square()
        estimate[layer.weight] = (delta2.transpose(1, 2) @ input2).view(layer.weight.shape) / b
        if layer.bias is not None:
            estimate[layer.bias] = delta2.mean(dim=1).view(layer.bias.shape)
    return [estimate[p] for p in net.parameters()]


def _item_by_item(net, x, mask) -> list[torch.Tensor]:
    """The gradients themselves, of a few items at a time."""
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def likelihood(parameters, item):
        return _functional(net, parameters, item[:, None], mask)

    gradients = torch.func.vmap(torch.func.grad(likelihood), in_dims=(None, 0))
    total = [torch.zeros_like(p) for p in parameters.values()]
    for chunk in x.transpose(0, 1).split(CHUNK):
        for sum_, each in zip(total, gradients(parameters, chunk).values()):
            sum_ += each.square().sum(dim=0)
    return [sum_ / x.shape[1] for sum_ in total]


def _functional(net, parameters, x, mask) -> torch.Tensor:
    logits = torch.func.functional_call(net, parameters, (x,))
    return F.log_softmax(masked(logits, mask), dim=2).amax(dim=2).sum()
