"""The reduced ResNet-18 reversed: from a latent to an image."""

import math
from collections import OrderedDict

from torch import nn

from clpapers.runs.nets.resnet18_reduced import BasicBlock


def build(shape: tuple[int, int, int], classes: int, *, width: int, image: list[int]) -> nn.Module:
    """A linear layer to maps as small as the ResNet's last, four stages of two blocks, a 3×3 convolution.

    Stages have width × (8, 4, 2, 1) maps. Each but the last ends in upsampling (nearest) to the size of the ResNet's
    maps at that stage: 4, 8, 16, 32 pixels a side for 32×32 images. It follows the ResNetVae in the code of Lee et
    al. 2020, whose decoder upsamples by transposed convolutions and has one more stage.

    Parameters
    ----------
    shape: of a latent, (z, 1, 1).
    classes: the number of outputs, C·H·W.
    image: C, H, W of the outputs, pixels' logits [B, C, H, W].
    """
    c, *size = image
    if c * math.prod(size) != classes:
        raise ValueError(f"an image of {image} does not have {classes} pixels")
    sizes = [size]
    for _ in range(3):
        sizes.append([-(-side // 2) for side in sizes[-1]])
    n = 8 * width
    stages = OrderedDict(
        stem=nn.Sequential(
            nn.Flatten(),
            nn.Linear(math.prod(shape), n * math.prod(sizes[3]), bias=False),
            nn.Unflatten(1, (-1, *sizes[3])),  # -1, as a stack has S·n channels
            nn.BatchNorm2d(n),
            nn.ReLU(),
        )
    )
    for i in (4, 3, 2):
        up = nn.Upsample(size=tuple(sizes[i - 2]))
        stages[f"stage{i}"] = nn.Sequential(BasicBlock(n, n, 1), BasicBlock(n, n // 2, 1), up)
        n //= 2
    stages["stage1"] = nn.Sequential(BasicBlock(n, n, 1), BasicBlock(n, n, 1))
    return nn.Sequential(OrderedDict(**stages, image=nn.Conv2d(n, c, 3, padding=1)))
