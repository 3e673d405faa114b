"""Stacks of seeds: S ordinary modules packed into one that trains them all. Only this module knows about S.

Inside a stack, activations are `[B, S·C, …]` with the seed outermost in the channel axis, so that every layer without
parameters (ReLU, pooling, flatten, addition) works unchanged. Layers with parameters are replaced: a convolution
becomes a grouped convolution with S groups, batch norm runs over S·C channels, a linear layer becomes a batched matrix
product. Every parameter's first axis is the seed. A stack of one keeps its ordinary layers and their parameters, since
views that drop the axis in every pass would slow a small net down.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import once_differentiable

from clpapers.runs.nets.heads import CosineLinear, JointEmbedding
from clpapers.runs.nets.upsampling import UpsampledConv2d, upsampled_convolution

# oneDNN's strided 1×1 convolution on a CPU writes past its buffers where maps are channels-last in memory and have
# fewer channels than a vector register. It corrupts the heap, or just the gradient (uxlfoundation/oneDNN issue 6035).
VECTOR = 16


def seedwise(x: torch.Tensor, s: int) -> torch.Tensor:
    """[B, S·n] → [S, B, n], a view."""
    return x.reshape(x.shape[0], s, -1).transpose(0, 1)


def channelwise(x: torch.Tensor) -> torch.Tensor:
    """[S, B, n, …] → [B, S·n, …]."""
    return x.transpose(0, 1).flatten(1, 2)


class Stacked(nn.Module):
    """S layers as one; its `weight` and `bias` hold the parameters of all, or None where the layers have none."""

    weight: nn.Parameter
    bias: nn.Parameter | None

    def __init__(self, layers: Sequence[nn.Module]):
        super().__init__()
        for name in ("weight", "bias"):
            own = [getattr(layer, name) for layer in layers]
            setattr(self, name, None if own[0] is None else nn.Parameter(torch.stack([p.detach() for p in own])))


class _Affine(torch.autograd.Function):
    """x·Wᵀ + b, whose gradient of W lies in memory as W does.

    PyTorch's own gradient is Wᵀ's. The optimiser, or the sum over a step's passes, then copies it, which takes a third
    of a step of MLPs. The bits are the same.
    """

    @staticmethod
    def forward(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """x [S, B, in], weight [S, out, in], bias [S, out] → [S, B, out]."""
        return torch.bmm(x, weight.mT) if bias is None else torch.baddbmm(bias[:, None], x, weight.mT)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            torch.bmm(grad, weight) if of_x else None,
            torch.bmm(grad.mT, x) if of_weight else None,
            grad.sum(dim=1) if of_bias else None,
        )


class StackedLinear(Stacked):
    """S linear layers: weight [S, out, in], bias [S, out]; [B, S·in] → [B, S·out]."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return channelwise(_Affine.apply(seedwise(x, self.weight.shape[0]), self.weight, self.bias))


class StackedCosineLinear(Stacked):
    """S cosine classifiers: weight [S, out, in]; [B, S·in] → [B, S·out]."""

    def __init__(self, layers: Sequence[CosineLinear]):
        super().__init__(layers)
        self.scale = layers[0].scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.normalize(seedwise(x, self.weight.shape[0]), dim=-1)
        return channelwise(self.scale * torch.bmm(x, F.normalize(self.weight, dim=-1).transpose(1, 2)))


class StackedJointEmbedding(Stacked):
    """S joint-embedding heads: weight [S, attributes, in], bias [S, out], attributes [S, out, attributes].

    [B, S·in] → [B, S·out].
    """

    bias: nn.Parameter
    attributes: torch.Tensor

    def __init__(self, layers: Sequence[JointEmbedding]):
        super().__init__(layers)
        self.register_buffer("attributes", torch.stack([layer.attributes for layer in layers]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        embedded = torch.bmm(seedwise(x, self.weight.shape[0]), self.weight.transpose(1, 2))
        return channelwise(torch.baddbmm(self.bias[:, None], embedded, self.attributes.transpose(1, 2)))


class StackedConv2d(Stacked):
    """S convolutions as one with S groups: weight [S, out, in, k, k]; [B, S·in, H, W] → [B, S·out, H', W'].

    Where oneDNN's strided convolution is unsafe, the pixels that the stride skips are dropped first; then even a single
    layer is replaced.
    """

    def __init__(self, layers: Sequence[nn.Conv2d]):
        super().__init__(layers)
        padded_point = layers[0].kernel_size == (1, 1) and layers[0].padding != (0, 0)
        if layers[0].groups != 1 or layers[0].padding_mode != "zeros" or padded_point:
            raise ValueError(f"no stacked form for {layers[0]}")
        self.stride, self.padding, self.dilation = layers[0].stride, layers[0].padding, layers[0].dilation
        self.mended = self.breaks(layers[0])

    @staticmethod
    def breaks(layer: nn.Module) -> bool:
        """Whether a layer is a convolution that oneDNN computes unsafely."""
        if not isinstance(layer, nn.Conv2d) or layer.kernel_size != (1, 1):
            return False
        return layer.stride != (1, 1) and layer.in_channels < VECTOR

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = None if self.bias is None else self.bias.flatten()
        stride = self.stride
        if self.mended:
            x, stride = x[..., :: stride[0], :: stride[1]], (1, 1)
        groups = self.weight.shape[0]
        return F.conv2d(x, self.weight.flatten(0, 1), bias, stride, self.padding, self.dilation, groups)


class StackedConvTranspose2d(Stacked):
    """S transposed convolutions as one with S groups: weight [S, in, out, k, k].

    [B, S·in, H, W] → [B, S·out, H', W'].
    """

    def __init__(self, layers: Sequence[nn.ConvTranspose2d]):
        super().__init__(layers)
        if layers[0].groups != 1 or layers[0].dilation != (1, 1):
            raise ValueError(f"no stacked form for {layers[0]}")
        padding = layers[0].padding
        assert not isinstance(padding, str)  # which transposed convolutions do not take
        self.stride, self.padding, self.output_padding = layers[0].stride, padding, layers[0].output_padding

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = None if self.bias is None else self.bias.flatten()
        weight, groups = self.weight.flatten(0, 1), self.weight.shape[0]
        return F.conv_transpose2d(x, weight, bias, self.stride, self.padding, self.output_padding, groups)


class StackedUpsampledConv2d(Stacked):
    """S upsampled convolutions with S groups: weight [S, out, in, 5, 5]; [B, S·in, H, W] → [B, S·out, 2H, 2W]."""

    bias: nn.Parameter

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return upsampled_convolution(x, self.weight.flatten(0, 1), self.bias.flatten(), self.weight.shape[0])


class StackedDropout(nn.Module):
    """S dropouts, each with masks from its own generator (`Stack.drop_by`); it replaces a single one too."""

    def __init__(self, layers: Sequence[nn.Dropout]):
        super().__init__()
        self.p = layers[0].p
        self.rngs: Sequence[torch.Generator] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        assert self.rngs is not None  # `Stack.drop_by` has come before
        shape = (x.shape[0], x.shape[1] // len(self.rngs), *x.shape[2:])
        drawn = torch.cat([torch.rand(shape, generator=rng, device=x.device) for rng in self.rngs], dim=1)
        return torch.where(drawn < self.p, 0, x / (1 - self.p))


class StackedBatchNorm(Stacked):
    """S batch norms over S·C channels: weight and bias [S, C], running statistics [S, C].

    As in PyTorch's, a forward pass in training mode leaves the running statistics alone while
    `track_running_stats` is off.
    """

    bias: nn.Parameter
    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, layers: Sequence[nn.BatchNorm1d | nn.BatchNorm2d]):
        super().__init__(layers)
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, torch.stack([getattr(layer, name) for layer in layers]))
        momentum = layers[0].momentum
        assert momentum is not None  # no net of ours averages over all of training
        self.momentum, self.eps, self.track_running_stats = momentum, layers[0].eps, True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        untracked = self.training and not self.track_running_stats
        mean = None if untracked else self.running_mean.view(-1)
        variance = None if untracked else self.running_var.view(-1)
        weight, bias = self.weight.flatten(), self.bias.flatten()
        return F.batch_norm(x, mean, variance, weight, bias, self.training, self.momentum, self.eps)


STACKED = {
    nn.Linear: StackedLinear,
    CosineLinear: StackedCosineLinear,
    JointEmbedding: StackedJointEmbedding,
    nn.Conv2d: StackedConv2d,
    nn.ConvTranspose2d: StackedConvTranspose2d,
    UpsampledConv2d: StackedUpsampledConv2d,
    nn.BatchNorm1d: StackedBatchNorm,
    nn.BatchNorm2d: StackedBatchNorm,
    nn.Dropout: StackedDropout,
}


def _pack(modules: Sequence[nn.Module]) -> nn.Module:
    """The stacked form of S equal modules, made inside `modules[0]`; a single module stays unchanged."""
    template = modules[0]
    if type(template) in STACKED:
        mended = isinstance(template, nn.Dropout) or StackedConv2d.breaks(template)
        alone = len(modules) == 1 and not mended
        return template if alone else STACKED[type(template)](modules)
    if next(template.parameters(recurse=False), None) is not None:
        raise ValueError(f"no stacked form for {type(template).__name__}; add one to STACKED")
    for name, _ in list(template.named_children()):
        setattr(template, name, _pack([getattr(module, name) for module in modules]))
    return template


class Stack(nn.Module):
    """S nets as one: images [S, B, C, H, W] → logits [S, B, K]."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._through(self.net, x)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """The input of the head, the net's last layer: [S, B, d]."""
        assert isinstance(self.net, nn.Sequential)
        return self._through(self.net[:-1], x)

    @staticmethod
    def _through(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
        s = x.shape[0]
        if s == 1:
            return net(x.squeeze(0)).flatten(1).unsqueeze(0)
        return seedwise(net(channelwise(x)), s)

    def drop_by(self, rngs: Sequence[torch.Generator]) -> None:
        """Give dropout a generator for each net's masks, on the nets' device."""
        for module in self.modules():
            if isinstance(module, StackedDropout):
                module.rngs = rngs

    @contextlib.contextmanager
    def untracked(self) -> Iterator[None]:
        """Inside, forward passes do not update the running statistics of batch norm.

        In training mode they still normalise by their batch, like a temporary copy of the net.
        """
        norms = [m for m in self.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, StackedBatchNorm))]
        for norm in norms:
            norm.track_running_stats = False
        try:
            yield
        finally:
            for norm in norms:
                norm.track_running_stats = True


def stack(build: Callable[..., nn.Module], seeds: Sequence[int], *given: Sequence) -> Stack:
    """Build one module a seed, each under its own `torch.manual_seed` and from its own entries of `given`; pack them.

    The global random state is restored. Raises `ValueError` for a layer that has no stacked form.
    """
    modules = []
    with torch.random.fork_rng(devices=[]):
        for seed, *own in zip(seeds, *given, strict=True):
            torch.manual_seed(seed)
            modules.append(build(*own))
    return Stack(_pack(modules))
