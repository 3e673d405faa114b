"""The convolutional net of stf, Table 2 (left and middle)."""

from collections import OrderedDict

from torch import nn


def conv_block(n_in: int, n_out: int) -> nn.Module:
    """`ConvBlock(n_in, n_out)` in the printed order: convolution, ReLU, batch norm, twice; then max-pooling by 2.

    Kernel and padding are not printed; 3×3 with padding 1 keeps the maps' size.
    """
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, padding=1),
        nn.ReLU(),
        nn.BatchNorm2d(n_out),
        nn.Conv2d(n_out, n_out, 3, padding=1),
        nn.ReLU(),
        nn.BatchNorm2d(n_out),
        nn.MaxPool2d(2, 2),
    )


def build(shape: tuple[int, int, int], classes: int, *, width: int) -> nn.Module:
    """ConvBlock(C, width), ConvBlock(width, 2·width), global average, Linear(2·width, classes); width is 32 in stf.

    The printed Linear(64, c) takes one number a map, hence the global average.
    """
    return nn.Sequential(
        OrderedDict(
            block1=conv_block(shape[0], width),
            block2=conv_block(width, 2 * width),
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            head=nn.Linear(2 * width, classes),
        )
    )
