"""Class frequencies of small streams."""

# ruff: noqa: F401, names that by_hand.yaml uses
import by_hand
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clpapers.metrics.class_frequency import chunk_times, class_frequency, prevalence

test_by_hand = by_hand.tests(globals())


@given(st.lists(st.integers(0, 4), min_size=1, max_size=50), st.integers(1, 50))
def test_chunks_are_near_equal_and_frequencies_add_up(labels, chunks):
    chunks = min(chunks, len(labels))
    frequency = class_frequency(labels, 5, chunks)
    np.testing.assert_allclose(frequency.sum(axis=1), 1)
    sizes = np.bincount(np.arange(len(labels)) * chunks // len(labels))
    assert np.ptp(sizes) <= 1
    np.testing.assert_allclose(sizes @ frequency, np.bincount(labels, minlength=5))
