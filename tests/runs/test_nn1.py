"""The nearest neighbour: against a library at every event, ties, and what is stored; distances."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree
from tiny import CPU, Way, cell, images, stream

from clpapers.runs import loop
from clpapers.runs.footprint import learner_bytes
from clpapers.runs.images import Images
from clpapers.runs.nearest import best_of_classes, squared_distances

DATA = images(classes=4, items=30, shape=(3, 4, 1), test_items=40)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_a_librarys_at_every_event(dtype):
    """Two seeds, one item a step, tested after every fifth; classes come one after the other in the second seed."""
    rng = np.random.default_rng(0)
    orders = {0: rng.permutation(120), 1: np.arange(120)}
    streams = [stream(order, seed) for seed, order in orders.items()]
    pictures = Images(DATA.train_x, "symmetric", CPU, dtype)
    way = Way(cell("nn1", {}, "mlp", batch=1), DATA, streams, images=pictures)
    flat = {"train": DATA.train_x.reshape(120, -1) / 127.5 - 1, "test": DATA.test_x.reshape(160, -1) / 127.5 - 1}
    test, learner = pictures.with_pixels(DATA.test_x)(torch.arange(160).expand(2, -1)), way.learner
    for t in range(120):
        assert way.step() == (None, None)
        if t % 5 == 4:
            with learner.evaluation():
                answers = learner.scores(test, None).argmax(dim=2)
            for s, order in orders.items():
                seen = order[: t + 1]
                _, nearest = cKDTree(flat["train"][seen]).query(flat["test"])
                assert answers[s].tolist() == DATA.train_y[seen][nearest].tolist()


def test_of_equally_near_vectors_the_earliest_wins():
    """Eight copies of one image, of four classes; a class that was never seen has no score."""
    x = np.repeat(np.full((1, 3, 3, 1), 9, np.uint8), 8, axis=0)
    data = loop.Data(x, np.array([0, 0, 1, 1, 2, 2, 3, 3]), x[:4], np.arange(4), classes=4)
    spec = cell("nn1", {}, "mlp", batch=1)
    way = Way(spec, data, [stream([5, 0, 3, 1], 0), stream([2, 4, 5, 0], 1)])
    learner = way.walk()
    with learner.evaluation():
        scores = learner.scores(way.setting.images(torch.zeros(2, 6, dtype=torch.long)), None)
    assert scores.argmax(dim=2).tolist() == [[2] * 6, [1] * 6]
    assert (scores[:, :, 3] == -torch.inf).all()
    assert (scores[:, :, :3] > -1e-9).all()
    assert learner.confidence(scores).tolist() == scores.amax(dim=2).tolist()


def test_every_vector_is_stored_and_counted():
    """Before, between and after evaluations: a vector of 12 float64 an item seen."""
    way = Way(cell("nn1", {}, "mlp", batch=1), DATA, [stream([3, 70, 4, 5, 119, 60, 61], 0)])
    for until, counts in ((2, [1, 0, 1, 0]), (5, [3, 0, 1, 1]), (7, [3, 0, 3, 1])):
        learner, size = way.walk(until), until * 12 * 8
        for _ in range(2):
            assert learner_bytes(learner, 0) == {"training": size, "testing": size}
            assert learner.memory_use(0) == {"items": until, "bytes": size, "per_class": counts}
            with learner.evaluation():
                pass


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
