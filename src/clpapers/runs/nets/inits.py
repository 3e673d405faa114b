"""How the layers of a net begin, where that is not PyTorch's way; each function sets one layer."""

import math

import torch
from torch import nn


@torch.no_grad()
def truncated_normal(layer: nn.Module) -> None:
    """Linear layers: weights of deviation 0.1, cut off at 0.2, biases 0.1; the MLP in the code of A-GEM's authors."""
    if isinstance(layer, nn.Linear):
        nn.init.trunc_normal_(layer.weight, std=0.1, a=-0.2, b=0.2)
        if layer.bias is not None:
            layer.bias.fill_(0.1)


@torch.no_grad()
def uniform_side(layer: nn.Module) -> None:
    """Convolutions: uniform up to 1/√(side of the kernel · maps in), where PyTorch has the kernel's area.

    The ResNets in the code of A-GEM's authors, whose linear layers begin as PyTorch's do.
    """
    if isinstance(layer, nn.Conv2d):
        bound = 1 / math.sqrt(layer.kernel_size[0] * layer.in_channels)
        nn.init.uniform_(layer.weight, -bound, bound)


@torch.no_grad()
def uniform_gamma(layer: nn.Module) -> None:
    """Batch normalisations: factors uniform in [0, 1], as PyTorch's began until 1.1; the ResNet of GEM's authors."""
    if isinstance(layer, nn.BatchNorm2d):
        nn.init.uniform_(layer.weight)


@torch.no_grad()
def xavier(layer: nn.Module) -> None:
    """Linear layers: uniform as of Glorot & Bengio (2010), biases zero; the MLP in the code of GEM's authors."""
    if isinstance(layer, nn.Linear):
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            layer.bias.zero_()


@torch.no_grad()
def begin_as_keras(net: nn.Sequential) -> nn.Sequential:
    """A net that begins as the GANs of Keras-MNIST-GAN: its first layer with weights of deviation 0.02.

    The others as of Glorot & Bengio (2010), which is Keras's way; biases zero.
    """
    layers = [layer for layer in net if hasattr(layer, "weight")]
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight)
        layer.bias.zero_()
    layers[0].weight.normal_(std=0.02)
    return net


def pytorch(layer: nn.Module) -> None:
    """As PyTorch has it."""


INITS = {each.__name__: each for each in (pytorch, truncated_normal, uniform_gamma, uniform_side, xavier)}
