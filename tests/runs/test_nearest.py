"""The best of each class, and distances."""

import math

import numpy as np
import pytest
import torch

from clpapers.runs.nearest import best_of_classes, squared_distances


def test_best_of_classes_by_hand():
    """Item 0 ties with no other; items 1, 2 and 4 tie for the second query, and 1 came first."""
    values = torch.tensor([[5.0, 1.0, 3.0, 2.0, 4.0], [0.0, 7.0, 7.0, -1.0, 7.0]])
    labels = torch.tensor([2, 3, 0, 0, 2])
    best = best_of_classes(values, labels, 5)
    below = np.nextafter(np.float32(7), np.float32(0))
    assert best.tolist() == [[3, -math.inf, 5, 1, -math.inf], [below, -math.inf, below, 7, -math.inf]]
    assert best.argmax(dim=1).tolist() == [2, 3]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 129])
@pytest.mark.parametrize("b", [1, 2, 5])
def test_equal_vectors_are_equally_near(n, b):
    """So that the earliest can win, whatever kernel a matrix product of this shape takes."""
    rng = torch.Generator().manual_seed(n)
    x, vector = torch.rand(b, 2048, generator=rng), torch.rand(1, 2048, generator=rng)
    found = squared_distances(x, vector.expand(n, -1).contiguous())
    assert (found == found[:, :1]).all()


def test_squared_distances():
    rng = torch.Generator().manual_seed(0)
    x, vectors = torch.rand(4, 30, generator=rng), torch.rand(9, 30, generator=rng)
    expected = (x[:, None].double() - vectors.double()).square().sum(dim=2)
    torch.testing.assert_close(squared_distances(x, vectors).double(), expected, rtol=1e-5, atol=1e-6)
    assert (squared_distances(x, x) >= 0).all()
