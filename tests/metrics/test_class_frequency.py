"""Class frequencies of small streams."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clpapers.metrics.class_frequency import chunk_times, class_frequency, prevalence


def test_two_chunks_by_hand():
    frequency = class_frequency([0, 0, 1, 2, 2, 2], classes=4, chunks=2)
    np.testing.assert_allclose(frequency, [[2 / 3, 1 / 3, 0, 0], [0, 0, 1, 0]])
    np.testing.assert_allclose(prevalence(frequency), [2 / 3, 1])
    np.testing.assert_allclose(chunk_times(2), [0.25, 0.75])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=50), st.integers(1, 50))
def test_chunks_are_near_equal_and_frequencies_add_up(labels, chunks):
    chunks = min(chunks, len(labels))
    frequency = class_frequency(labels, 5, chunks)
    np.testing.assert_allclose(frequency.sum(axis=1), 1)
    sizes = np.bincount(np.arange(len(labels)) * chunks // len(labels))
    assert np.ptp(sizes) <= 1
    np.testing.assert_allclose(sizes @ frequency, np.bincount(labels, minlength=5))
