"""The reduced ResNet-18 of stf, Table 2 (right), from the codes of A-GEM and MIR."""

from collections import OrderedDict

import torch
from torch import nn

from clpapers.runs.nets import heads

ASKS = ("attributes",)


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with batch norm, and a shortcut: a 1×1 convolution where the shape changes (He et al. 2016).

    shortcut_norm: whether batch norm follows the shortcut's convolution.
    """

    def __init__(self, n_in: int, n_out: int, stride: int, shortcut_norm: bool = True):
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        shortcut: list[nn.Module] = []
        if stride != 1 or n_in != n_out:
            shortcut.append(nn.Conv2d(n_in, n_out, 1, stride, bias=False))
            if shortcut_norm:
                shortcut.append(nn.BatchNorm2d(n_out))
        self.shortcut = nn.Sequential(*shortcut)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.residual(x) + self.shortcut(x))


def stages(width: int, shortcut_norm: bool = True) -> OrderedDict[str, nn.Module]:
    """Four stages of two blocks, of width × (1, 2, 4, 8) maps; all but the first halve the maps' sides."""
    blocks: OrderedDict[str, nn.Module] = OrderedDict()
    n_in = width
    for i, stride in enumerate((1, 2, 2, 2)):
        n_out = width * 2**i
        first = BasicBlock(n_in, n_out, stride, shortcut_norm)
        blocks[f"stage{i + 1}"] = nn.Sequential(first, BasicBlock(n_out, n_out, 1))
        n_in = n_out
    return blocks


def build(
    shape: tuple[int, int, int], classes: int, *, width: int, head: str, attributes: torch.Tensor | None = None
) -> nn.Module:
    """Stem of `width` maps (3×3, stride 1, no pooling), four stages of two blocks, global average, head.

    Stages have width × (1, 2, 4, 8) maps, 20/40/80/160 in stf. Pooling is global, so that the printed Linear(160, c)
    fits 64×64 images too. `head` is one of `heads`; docs/decisions/stf.md explains `cosine`.
    """
    blocks = stages(width)
    stem = nn.Sequential(nn.Conv2d(shape[0], width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
    return nn.Sequential(
        OrderedDict(
            stem=stem,
            **blocks,
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            head=heads.make(head, 8 * width, classes, attributes),
        )
    )
