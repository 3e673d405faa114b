"""The convolutional nets of a GAN: a generator and a discriminator."""

from torch import nn

from clpapers.runs.nets.inits import begin_as_keras
from clpapers.runs.nets.upsampling import UpsampledConv2d

DROPOUT = 0.3


def generator(shape: tuple[int, int, int], *, latent: int, width: int) -> nn.Module:
    """Latents to images of `shape`, in [-1, 1]: 2·width maps, twice enlarged by 2 and convolved (5×5), then tanh.

    One fully connected layer and convolutions to 64 and 1 channels (`desiderata`, B.3); details as in Keras-MNIST-GAN,
    which has the same layers. Raises `ValueError` for sides that are no multiple of 4.
    """
    c, *small = shape[0], *quarters(shape)
    net = nn.Sequential(
        nn.Flatten(),
        nn.Linear(latent, 2 * width * small[0] * small[1]),
        nn.LeakyReLU(0.2),
        nn.Unflatten(1, (-1, *small)),  # -1, as a stack has S times as many maps
        UpsampledConv2d(2 * width, width),
        nn.LeakyReLU(0.2),
        UpsampledConv2d(width, c),
        nn.Tanh(),
    )
    return begin_as_keras(net)


def discriminator(shape: tuple[int, int, int], *, width: int) -> nn.Module:
    """Images in [-1, 1] to a logit: 5×5 convolutions of stride 2 to width × (1, 2) maps, leaky ReLU and dropout."""
    h, w = quarters(shape)
    net = nn.Sequential(
        nn.Conv2d(shape[0], width, 5, stride=2, padding=2),
        nn.LeakyReLU(0.2),
        nn.Dropout(DROPOUT),
        nn.Conv2d(width, 2 * width, 5, stride=2, padding=2),
        nn.LeakyReLU(0.2),
        nn.Dropout(DROPOUT),
        nn.Flatten(),
        nn.Linear(2 * width * h * w, 1),
    )
    return begin_as_keras(net)


def quarters(shape: tuple[int, int, int]) -> tuple[int, int]:
    """A quarter of an image's height and width. Raises `ValueError` where 4 does not divide them."""
    _, h, w = shape
    if h % 4 or w % 4:
        raise ValueError(f"convolutional GANs need sides that are multiples of 4 pixels, not {h}×{w}; take gan_mlp")
    return h // 4, w // 4
