"""Accuracies by hand, and the probes' packed answers there and back."""

import base64

import by_hand
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clpapers.metrics import accuracy


def pack(correct, position, time):
    """The inverse of `accuracy.unpack`, as runs write it."""
    past = accuracy.seen(position, time)
    return [base64.b64encode(np.packbits(row[mask])).decode() for row, mask in zip(correct, past)]


test_by_hand = by_hand.tests(globals())


@given(st.data())
def test_unpack_inverts_packing(data):
    n = data.draw(st.integers(1, 60))
    position = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1)))
    time = sorted({*data.draw(st.sets(st.integers(1, n), max_size=4)), n})
    bits = st.lists(st.booleans(), min_size=len(position), max_size=len(position))
    correct = np.array([data.draw(bits) for _ in time]) & accuracy.seen(position, time)
    np.testing.assert_array_equal(accuracy.unpack(pack(correct, position, time), position, time), correct)
