"""The standard ResNet-18 (He et al. 2016) of `agem`, optionally with pre-trained weights."""

import re
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from clpapers.runs.nets import heads
from clpapers.runs.nets.resnet18_reduced import stages

ASKS = ("attributes", "pretrained")


def build(
    shape: tuple[int, int, int],
    classes: int,
    *,
    width: int,
    pool: bool,
    head: str,
    weights: str,
    shortcut_norm: bool = True,
    attributes: torch.Tensor | None = None,
    pretrained: Mapping[str, np.ndarray] | None = None,
) -> nn.Module:
    """Stem of `width` maps (7×7, stride 2; with `pool` max-pooling), four stages of two blocks, global average, head.

    Parameters
    ----------
    width: maps of the stem and the first stage; 64 is the standard.
    head: one of `heads`. attributes: [classes, A], for the head `joint_embedding`.
    shortcut_norm: whether batch norm follows the shortcuts' convolutions.
    pool: whether 3×3 max-pooling with stride 2 follows the stem.
    weights: `none`, or the name of pre-trained weights for all layers but the head.
    pretrained: these weights, for `set_weights`.
    """
    blocks = stages(width, shortcut_norm)
    stem = [nn.Conv2d(shape[0], width, 7, 2, padding=3, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    net = nn.Sequential(
        OrderedDict(
            stem=nn.Sequential(*stem, *([nn.MaxPool2d(3, 2, padding=1)] if pool else [])),
            **blocks,
            pool=nn.AdaptiveAvgPool2d(1),
            flatten=nn.Flatten(),
            head=heads.make(head, 8 * width, classes, attributes),
        )
    )
    if weights != "none":
        assert pretrained is not None  # as the cell names them
        set_weights(net, pretrained)
    return net


@torch.no_grad()
def set_weights(net: nn.Module, pretrained: Mapping[str, np.ndarray]) -> None:
    """Set parameters and running statistics of all layers but the head, by torchvision's names.

    Raises ValueError for the weights of another net.
    """
    own = {n: v for n, v in net.state_dict().items() if not n.startswith("head.") and v.is_floating_point()}
    shapes = {name: tuple(value.shape) for name, value in own.items()}
    given = {_own_name(name): value for name, value in pretrained.items()}
    wrong = sorted(
        name for name in shapes.keys() | given.keys() if shapes.get(name) != getattr(given.get(name), "shape", 0)
    )
    if wrong:
        raise ValueError(f"the pre-trained weights are of another net: see {wrong[0]}")
    for name, value in own.items():
        value.copy_(torch.from_numpy(given[name]))


LAYERS = {
    r"^conv1": "stem.0",
    r"^bn1": "stem.1",
    r"^layer": "stage",
    r"conv1": "residual.0",
    r"bn1": "residual.1",
    r"conv2": "residual.3",
    r"bn2": "residual.4",
    r"downsample": "shortcut",
}


def _own_name(name: str) -> str:
    """This net's name for torchvision's: `layer2.0.conv1.weight` → `stage2.0.residual.0.weight`."""
    for theirs, ours in LAYERS.items():
        name = re.sub(theirs, ours, name)
    return name
