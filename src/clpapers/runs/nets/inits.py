"""Initialisations of nets other than PyTorch's; each function sets one layer."""

import math

import torch
from torch import nn


@torch.no_grad()
def draw_truncated(weight: torch.Tensor, std: float) -> None:
    """Fill `weight` with normal values of deviation `std`; those beyond two deviations are drawn again.

    `nn.init.trunc_normal_` draws the same from PyTorch 2.12 on; older versions make other numbers of the same seed. So
    a net begins with the same weights on every version.
    """
    bound = weight.new_tensor(2 * std).item()  # as the weights' type has it
    weight.normal_(std=std)
    while (beyond := weight.abs() > bound).any():
        weight.copy_(torch.where(beyond, torch.empty_like(weight).normal_(std=std), weight))


@torch.no_grad()
def truncated_normal(layer: nn.Module) -> None:
    """Linear layers: weights of deviation 0.1, truncated at 0.2, biases 0.1; the MLP in the code of A-GEM's authors.

    VCL's code draws its weights the same way, but its biases too, which are 0.1 here.
    """
    if isinstance(layer, nn.Linear):
        draw_truncated(layer.weight, 0.1)
        if layer.bias is not None:
            layer.bias.fill_(0.1)


@torch.no_grad()
def uniform_side(layer: nn.Module) -> None:
    """Convolutions: uniform up to 1/√(side of the kernel · maps in), where PyTorch takes the kernel's area.

    The ResNets in the code of A-GEM's authors, whose linear layers have PyTorch's initialisation.
    """
    if isinstance(layer, nn.Conv2d):
        bound = 1 / math.sqrt(layer.kernel_size[0] * layer.in_channels)
        nn.init.uniform_(layer.weight, -bound, bound)


@torch.no_grad()
def uniform_side_zero(layer: nn.Module) -> None:
    """As `uniform_side`, and batch norm's running mean and variance from 0, where PyTorch's variance begins at 1.

    TensorFlow's moving averages of tensors, which the code of A-GEM's authors keeps, begin so.
    """
    uniform_side(layer)
    if isinstance(layer, nn.BatchNorm2d):
        assert layer.running_var is not None  # no net of ours has a batch norm without
        layer.running_var.zero_()


@torch.no_grad()
def fan_out(layer: nn.Module) -> None:
    """Convolutions: normal of variance 2/(kernel's area · maps out) (He et al. 2015), as in torchvision's ResNets."""
    if isinstance(layer, nn.Conv2d):
        nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")


@torch.no_grad()
def uniform_gamma(layer: nn.Module) -> None:
    """Batch norm: factors uniform in [0, 1], PyTorch's initialisation until 1.1; the ResNet of GEM's authors."""
    if isinstance(layer, nn.BatchNorm2d):
        nn.init.uniform_(layer.weight)


@torch.no_grad()
def xavier(layer: nn.Module) -> None:
    """Linear layers: uniform as in Glorot & Bengio (2010), biases zero; the MLP in the code of GEM's authors."""
    if isinstance(layer, nn.Linear):
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            layer.bias.zero_()


@torch.no_grad()
def begin_as_keras(net: nn.Sequential) -> nn.Sequential:
    """Initialise a net like the GANs of Keras-MNIST-GAN: first-layer weights of deviation 0.02, biases zero.

    The other layers have uniform weights as in Glorot & Bengio (2010), Keras's default.
    """
    layers = [layer for layer in net if isinstance(layer, nn.Linear | nn.Conv2d)]
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight)
        assert layer.bias is not None  # in each layer of these nets
        layer.bias.zero_()
    layers[0].weight.normal_(std=0.02)
    return net


def pytorch(layer: nn.Module) -> None:
    """Keep PyTorch's own initialisation."""


ALL = (fan_out, pytorch, truncated_normal, uniform_gamma, uniform_side, uniform_side_zero, xavier)
INITS = {each.__name__: each for each in ALL}
