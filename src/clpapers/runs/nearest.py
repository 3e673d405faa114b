"""What learners that compare an item with stored vectors share: distances, and the best of each class."""

import torch

ROUNDING = 100  # how many units in the last place of the largest term a distance may be off


def squared_distances(x: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Squared Euclidean distances: x [B, D] and vectors [n, D] → [B, n].

    They come from one matrix product, whose rounding may depend on where a vector stands. So the nearest, and what is
    as near but for rounding, are then measured by subtraction: equal vectors are exactly equally near.
    """
    squares = vectors.square().sum(dim=1) + x.square().sum(dim=1, keepdim=True)
    slack = ROUNDING * torch.finfo(x.dtype).eps * squares.amax(dim=1, keepdim=True)
    distances = squares.addmm_(x, vectors.T, alpha=-2)
    near = distances <= distances.amin(dim=1, keepdim=True) + slack
    for query, row, candidates in zip(x, distances, near):
        row[candidates] = (vectors[candidates] - query).square().sum(dim=1)
    return distances.clamp_min_(0)


def best_of_classes(values: torch.Tensor, labels: torch.Tensor, classes: int) -> torch.Tensor:
    """The largest value of each class: values [B, n] of items that came in this order, int64 labels [n] → [B, classes].

    -∞ for a class without items. Of equal largest values the earliest item's class alone keeps it; the others' are the
    next smaller number, so that an arg-max over classes finds the class of the arg-max over items.
    """
    best = values.new_full((len(values), classes), -torch.inf)
    best.scatter_reduce_(1, labels.expand(len(values), -1), values, "amax")
    first = labels[values.argmax(dim=1)][:, None]
    tied = (best == best.gather(1, first)).scatter_(1, first, False)
    return torch.where(tied, best.nextafter(torch.full_like(best, -torch.inf)), best)
