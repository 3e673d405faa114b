"""Restrictions: masks by hand, and the random baselines of `rules` simulated without training."""

import numpy as np
import pytest

from clpapers.streams import oracles, orders, restrictions
from clpapers.streams.chunks import chunks_of_classes
from clpapers.streams.restrictions import RESTRICTIONS, union_masks

# Classes 0 to 4 in three tasks.
OF_CLASS = np.array([0, 0, 1, 2, 2])
SPLIT = {"name": "split", "tasks": 10}
DOM = {"name": "dominant_tasks", "shares": [0.2, 0.3, 0.5]}
CIFAR100_TEST = np.repeat(np.arange(100), 100)
MNIST_TEST = np.repeat(np.arange(10), 100)
BATCH = 128


def sp(tasks, aligned=True):
    return {"name": "split", "tasks": tasks, "aligned": aligned}


@pytest.mark.parametrize(
    ("of_class", "labels", "ends", "expected"),
    [
        (
            OF_CLASS,
            [0, 0, 1, 2, 2, 4, 3, 3],
            [2, 4, 6, 7, 8],
            [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 1, 1]],
        ),
        (np.array([0, -1, 1]), [0, 2, 2], [1, 3], [[1, 0, 0], [0, 0, 1]]),  # a class of no task
        (None, [0, 1, 2], [2, 3], [[1, 1, 1, 1], [1, 1, 1, 1]]),  # no partition
    ],
)
def test_union_masks_by_hand(of_class, labels, ends, expected):
    masks = union_masks(of_class, np.array(labels), np.array(ends), len(expected[0]))
    assert masks.dtype == bool
    assert masks.astype(int).tolist() == expected


@pytest.mark.parametrize(
    ("labels", "of_chunk", "batch", "ends"),
    [
        (np.repeat(np.arange(5), [7, 3, 6, 2, 9]), OF_CLASS, 4, [4, 8, 10, 14, 16, 20, 24, 27]),  # chunks of 10, 6, 11
        (np.repeat(np.arange(5), [7, 3, 6, 2, 9]), OF_CLASS, "task", [10, 16, 27]),
        (np.repeat(np.arange(5), [7, 3, 6, 2, 9]), None, "task", [27]),
        (np.array([0, 3, 3, 3, 1]), np.array([0, 0, 1, 2, 3]), 2, [2, 4, 5]),  # of the chunks 0 and 2 alone
        (MNIST_TEST, None, BATCH, [128, 256, 384, 512, 640, 768, 896, 1000]),
    ],
)
def test_test_batches_follow_the_chunks_and_do_not_cross_them(labels, of_chunk, batch, ends):
    (served, found), (other, _) = (restrictions.test_batches(labels, of_chunk, batch, seed) for seed in (0, 1))
    assert found.tolist() == ends
    assert sorted(served.tolist()) == list(range(labels.size))
    assert served.tolist() != other.tolist()
    if of_chunk is not None:
        assert (np.diff(of_chunk[labels[served]]) >= 0).all()
    assert (np.diff(labels[served[:10]]) < 0).any() or labels.size == 5  # shuffled inside a chunk


@pytest.mark.parametrize("oracle", [sp(10), sp(7), sp(20, aligned=False), DOM])
def test_evaluation_partitions(oracle):
    none, own, data, independent = (
        restrictions.evaluation_partition(view, oracle, SPLIT, 100, 3) for view in ("none", *restrictions.VIEWS)
    )
    assert none is None
    np.testing.assert_array_equal(own, oracles.task_of_class(oracle, SPLIT, 100, 3))
    np.testing.assert_array_equal(data, chunks_of_classes(SPLIT, 100, 3))
    parts = np.array_split(np.arange(100), own.max() + 1)
    assert np.bincount(independent).tolist() == [len(part) for part in parts]
    assert (independent != own).any()
    assert (independent != data).any()


@pytest.mark.parametrize("view", ["oracle", "independent"])
@pytest.mark.parametrize("name", ["none", "random_tasks", "entropy", "mixed"])
def test_oracles_without_tasks_of_classes_and_data_that_share_classes_restrict_nothing(name, view):
    assert restrictions.view_masks(view, {"name": name, "tasks": 5}, SPLIT, CIFAR100_TEST, 100, BATCH, 0) is None
    assert restrictions.view_masks("data", sp(5), {"name": "random"}, MNIST_TEST, 10, BATCH, 0) is None
    assert restrictions.view_masks("oracle", sp(5), {"name": "random"}, MNIST_TEST, 10, BATCH, 0).all()  # mixed batches


@pytest.mark.parametrize("view", restrictions.VIEWS)
def test_view_masks_are_in_the_test_splits_order(view):
    labels = np.random.default_rng(0).permutation(CIFAR100_TEST)
    masks = restrictions.view_masks(view, sp(20, aligned=False), SPLIT, labels, 100, BATCH, 5)
    assert masks.shape == (10_000, 100)
    assert masks[np.arange(10_000), labels].all()  # the right class always competes
    chunk = chunks_of_classes(SPLIT, 100, 5)[labels]
    kinds = [len(np.unique(masks[chunk == i], axis=0)) for i in range(10)]
    assert max(kinds) <= 8  # of a chunk's 1000 items, 8 batches; one item's mask is its batch's


# Tables 1, 4 and 8: percent and printed bracket of Random and RandMM, here guesses among what the masks leave; RandMM's
# also among what the task that the oracle names may hold.
PRINTED = [
    ("es", sp(10), (10.00, 0.07), (10.00, 0.07)),
    ("es_ed", sp(10), (1.52, 0.04), (10.00, 0.07)),
    ("ea", sp(10), (0.97, 0.01), (10.00, 0.07)),
    ("td", sp(10), (1.52, 0.04), (9.95, 0.11)),
    ("td_es", sp(10), (10.00, 0.07), (66.09, 1.11)),
    ("td_es_ed", sp(10), (1.49, 0.04), (15.25, 0.36)),
    ("es", sp(5), (4.97, 0.04), (4.97, 0.04)),
    ("es", sp(20), (10.00, 0.07), (19.98, 0.11)),
    ("es", DOM, (1.00, 0.02), (3.07, 0.04)),
    ("es", {"name": "random_tasks", "tasks": 10}, (0.97, 0.01), (0.97, 0.01)),
]


def expected_accuracy(masks):
    """Of a uniform guess among the classes that compete for each item, `masks` bool [m, K]."""
    return float(np.mean(1 / masks.sum(axis=1)))


def guesses(view, oracle, order, labels, classes, seed):
    """The chances of Random and RandMM, in percent."""
    stream = orders.make(order, np.arange(classes), seed)  # one item a class; only the test counts here
    said = oracles.identify(oracle, order, stream, stream.indices, labels, classes, seed)
    masks = restrictions.view_masks(view, oracle, order, labels, classes, BATCH, seed)
    masks = np.ones((labels.size, classes), dtype=bool) if masks is None else masks
    held = masks & said.task_classes[said.test]
    assert held[np.arange(labels.size), labels].all()
    return 100 * expected_accuracy(masks), 100 * expected_accuracy(held)


@pytest.mark.parametrize(("restriction", "oracle", "random", "multi"), PRINTED)
def test_random_baselines_of_split_cifar100_are_the_printed_ones(restriction, oracle, random, multi):
    aligned, train, view = RESTRICTIONS[restriction]
    assert train == "oracle"
    oracle = oracle | {"aligned": aligned}
    found = [guesses(view, oracle, SPLIT, CIFAR100_TEST, 100, seed) for seed in range(15)]
    for mean, (printed, bracket) in zip(np.mean(found, axis=0), (random, multi)):
        assert abs(mean - printed) <= 3 * bracket + 1e-9


def test_a_single_head_is_restricted_by_nothing():
    assert RESTRICTIONS["single_head"] == (True, "none", "none")
    assert guesses("none", sp(10), SPLIT, CIFAR100_TEST, 100, 0) == pytest.approx((1, 10))


@pytest.mark.parametrize(
    ("oracle", "classes", "expected"),
    [
        *[(sp(tasks), 10, 10 * tasks) for tasks in (1, 2, 5)],
        *[(sp(tasks), 100, tasks) for tasks in (5, 10, 20)],
        (DOM, 10, 30),
        (DOM, 100, 3),
        ({"name": "random_tasks", "tasks": 15}, 10, 10),
    ],
)
@pytest.mark.parametrize(
    "order", [{"name": "random"}, {"name": "split", "tasks": 5}, {"name": "dominant", "share": 0.1}]
)
def test_random_multi_models_unrestricted_chance(oracle, classes, expected, order):
    assert guesses("none", oracle, order, np.repeat(np.arange(classes), 10), classes, 0)[1] == pytest.approx(expected)
