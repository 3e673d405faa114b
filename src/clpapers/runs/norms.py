"""The least that a net can train on: how large an image, and how many items a batch.

Batch norm has no variance of one value a map. Plans read this, so nothing here imports torch.
"""

from collections.abc import Mapping, Sequence

# The longest side of images (H, W) whose maps have one pixel at a net's last batch norm.
ONE_PIXEL = {"resnet18_reduced": 8, "resnet18": 16}

LEAST_SIDE = {"cnn": 4}  # of images (H, W): it halves their sides twice


def least_side(net: Mapping) -> int:
    """The shortest side of an image, in pixels, that a net takes, as a cell describes it."""
    return LEAST_SIDE.get(net["name"], 1)


def fewest(net: Mapping, shape: Sequence[int]) -> int:
    """The fewest items that a net, as a cell describes it, can train on at once; images are of `shape` (H, W, …)."""
    if net.get("batch_norm"):
        return 2
    side = ONE_PIXEL.get(net["name"], 0) * (2 if net.get("pool") else 1)
    return 2 if max(shape[:2]) <= side else 1
