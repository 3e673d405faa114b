"""The multi-layer perceptrons of a GAN: a generator and a discriminator."""

import math

from torch import nn

from clpapers.runs.nets.inits import begin_as_keras

DROPOUT = 0.3


def generator(shape: tuple[int, int, int], *, latent: int, width: int) -> nn.Module:
    """Latents to pixels of images of `shape`, in [-1, 1]: layers of width × (1, 2, 4), leaky ReLU, then tanh.

    256, 512 and 1024 units (`desiderata`, B.2); details as in Keras-MNIST-GAN, which has the same layers.
    """
    hidden = [layer for n in (1, 2) for layer in (nn.Linear(n * width, 2 * n * width), nn.LeakyReLU(0.2))]
    pixels = nn.Linear(4 * width, math.prod(shape))
    net = nn.Sequential(nn.Flatten(), nn.Linear(latent, width), nn.LeakyReLU(0.2), *hidden, pixels, nn.Tanh())
    return begin_as_keras(net)


def discriminator(shape: tuple[int, int, int], *, width: int) -> nn.Module:
    """Images in [-1, 1] to a logit: layers of width × (4, 2, 1), each with leaky ReLU and dropout."""
    layers: list[nn.Module] = [nn.Flatten()]
    n_in = math.prod(shape)
    for n in (4, 2, 1):
        layers += [nn.Linear(n_in, n * width), nn.LeakyReLU(0.2), nn.Dropout(DROPOUT)]
        n_in = n * width
    return begin_as_keras(nn.Sequential(*layers, nn.Linear(n_in, 1)))
