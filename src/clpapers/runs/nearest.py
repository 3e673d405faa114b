"""Comparison of items with stored vectors: distances, and the best of each class."""

import torch

ROUNDING = 100  # the rounding error of a distance, at most, in units in the last place of its largest term


def squared_distances(x: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Squared Euclidean distances: x [B, D] and vectors [n, D] → [B, n].

    They come from one matrix product, whose rounding may depend on a vector's place. So the nearest vectors, up to
    rounding, are measured again by subtraction: equal vectors are exactly equally near.
    """
    squares = vectors.square().sum(dim=1) + x.square().sum(dim=1, keepdim=True)
    slack = ROUNDING * torch.finfo(x.dtype).eps * squares.amax(dim=1, keepdim=True)
    distances = squares.addmm_(x, vectors.T, alpha=-2)
    near = distances <= distances.amin(dim=1, keepdim=True) + slack
    for query, row, candidates in zip(x, distances, near):
        row[candidates] = (vectors[candidates] - query).square().sum(dim=1)
    return distances.clamp_min_(0)


def best_of_classes(values: torch.Tensor, labels: torch.Tensor, classes: int) -> torch.Tensor:
    """The largest value of each class: values [B, n] of items in stream order, int64 labels [n] → [B, classes].

    -∞ for a class without items. Where several values are largest, only the earliest item's class keeps it. The others
    get the next smaller number, so that an arg-max over classes finds the class of the arg-max over items.
    """
    best = values.new_full((len(values), classes), -torch.inf)
    best.scatter_reduce_(1, labels.expand(len(values), -1), values, "amax")
    first = labels[values.argmax(dim=1)][:, None]
    tied = (best == best.gather(1, first)).scatter_(1, first, False)
    return torch.where(tied, best.nextafter(torch.full_like(best, -torch.inf)), best)
