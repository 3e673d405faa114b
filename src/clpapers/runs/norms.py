"""How many items a net's batch norm must have in a training batch: of one value a map there is no variance."""

from collections.abc import Mapping, Sequence

# The longest side of images (H, W) whose maps have one pixel at a net's last batch norm.
ONE_PIXEL = {"resnet18_reduced": 8, "resnet18": 16}


def fewest(net: Mapping, shape: Sequence[int]) -> int:
    """The fewest items that a net, as a cell describes it, can train on at once; images are of `shape` (H, W, …)."""
    if net.get("batch_norm"):
        return 2
    side = ONE_PIXEL.get(net["name"], 0) * (2 if net.get("pool") else 1)
    return 2 if max(shape[:2]) <= side else 1
