"""Accuracies by hand, and the probes' packed answers there and back."""

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clpapers.metrics import accuracy


def pack(correct, position, time):
    """The inverse of `accuracy.unpack`, as runs write it."""
    past = accuracy.seen(position, time)
    return [base64.b64encode(np.packbits(row[mask])).decode() for row, mask in zip(correct, past)]


def test_final_accuracy_weighs_items_and_per_class_accuracy_weighs_classes():
    correct, total = [9, 0, 0], [10, 1, 0]
    assert accuracy.final_accuracy(correct, total) == pytest.approx(9 / 11)
    assert accuracy.per_class_accuracy(correct, total) == pytest.approx((0.9 + 0) / 2)


def test_accuracies_keep_leading_axes():
    correct, total = np.array([[1, 2], [0, 4]]), np.array([2, 4])
    np.testing.assert_allclose(accuracy.final_accuracy(correct, total), [3 / 6, 4 / 6])
    np.testing.assert_allclose(accuracy.per_class_accuracy(correct, total), [1 / 2, 1 / 2])


def test_online_accuracy_counts_items_not_batches():
    assert accuracy.online_accuracy([3, 1], items=5) == pytest.approx(0.8)  # the last batch may be smaller


def test_information_retention_of_four_items_by_hand():
    position, time = [0, 1, 2, 3], [2, 4]
    correct = [[1, 0, 1, 1], [0, 1, 1, 0]]  # items 2 and 3 are still ahead at the first evaluation
    np.testing.assert_allclose(accuracy.information_retention(correct, position, time), [1 / 2, 2 / 4])
    assert accuracy.average_information_retention(correct, position, time) == pytest.approx(0.5)


def test_information_retention_without_a_past_is_undefined_and_not_averaged():
    correct, position, time = [[0], [1]], [5], [5, 6]
    assert np.isnan(accuracy.information_retention(correct, position, time)[0])
    assert accuracy.average_information_retention(correct, position, time) == 1


@given(st.data())
def test_unpack_inverts_packing(data):
    n = data.draw(st.integers(1, 60))
    position = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1)))
    time = sorted({*data.draw(st.sets(st.integers(1, n), max_size=4)), n})
    bits = st.lists(st.booleans(), min_size=len(position), max_size=len(position))
    correct = np.array([data.draw(bits) for _ in time]) & accuracy.seen(position, time)
    np.testing.assert_array_equal(accuracy.unpack(pack(correct, position, time), position, time), correct)
