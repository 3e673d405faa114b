"""DCGAN: a generator and a discriminator."""

import torch
from torch import nn

from clpapers.runs.nets.gan_conv import quarters
from clpapers.runs.nets.inits import draw_truncated

MAPS = 10  # extra maps for the label in the authors' discriminator: one for each class of MNIST


def generator(shape: tuple[int, int, int], *, latent: int, width: int) -> nn.Module:
    """Latents to images of `shape`, in [0, 1]: two linear layers, two transposed convolutions (5×5), batch norm, ReLU.

    As in carpedm20/DCGAN-tensorflow for MNIST (Radford et al. 2016), width 64, but without a label in every layer.
    Raises `ValueError` for sides that are no multiple of 4.
    """
    c, *small = shape[0], *quarters(shape)
    maps = 2 * width * small[0] * small[1]
    net = nn.Sequential(
        nn.Flatten(),
        nn.Linear(latent, 16 * width),
        nn.BatchNorm1d(16 * width),
        nn.ReLU(),
        nn.Linear(16 * width, maps),
        nn.BatchNorm1d(maps),
        nn.ReLU(),
        nn.Unflatten(1, (-1, *small)),  # -1, as a stack has S times as many maps
        nn.ConvTranspose2d(2 * width, 2 * width, 5, stride=2, padding=2, output_padding=1),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, c, 5, stride=2, padding=2, output_padding=1),
        nn.Sigmoid(),
    )
    return net.apply(_begin)


def discriminator(shape: tuple[int, int, int], *, width: int) -> nn.Module:
    """Images in [0, 1] to a logit: 5×5 convolutions of stride 2, two linear layers, batch norm, leaky ReLU.

    The convolutions have C + 10 and width + 10 maps, as in that code, which adds 10 for the label.
    """
    c, h, w = shape[0], *quarters(shape)
    net = nn.Sequential(
        nn.Conv2d(c, c + MAPS, 5, stride=2, padding=2),
        nn.LeakyReLU(0.2),
        nn.Conv2d(c + MAPS, width + MAPS, 5, stride=2, padding=2),
        nn.BatchNorm2d(width + MAPS),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear((width + MAPS) * h * w, 16 * width),
        nn.BatchNorm1d(16 * width),
        nn.LeakyReLU(0.2),
        nn.Linear(16 * width, 1),
    )
    return net.apply(_begin)


@torch.no_grad()
def _begin(layer: nn.Module) -> None:
    """Draw weights with deviation 0.02, convolutions' truncated at two deviations; biases are zero."""
    if isinstance(layer, nn.Conv2d):
        draw_truncated(layer.weight, 0.02)
    elif isinstance(layer, nn.ConvTranspose2d | nn.Linear):
        layer.weight.normal_(std=0.02)
    else:
        return
    assert layer.bias is not None  # in each layer of these nets
    layer.bias.zero_()
