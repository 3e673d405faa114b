"""Forgetting events counted by hand and against their definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from clpapers.metrics import forgetting

# Five evaluations (down) of five examples (across).
CORRECT = np.array([[1, 0, 0, 1, 0], [0, 0, 1, 1, 1], [1, 0, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 1]], bool)


def test_events_by_hand():
    np.testing.assert_array_equal(forgetting.forgetting_events(CORRECT), [2, 0, 0, 0, 1])


def test_never_learnt_and_unforgettable_by_hand():
    np.testing.assert_array_equal(forgetting.never_learnt(CORRECT), [False, True, False, False, False])
    assert forgetting.unforgettable_fraction(CORRECT) == pytest.approx(2 / 5)  # the third and fourth example


def test_what_was_not_yet_seen_cannot_be_forgotten():
    seen = np.ones_like(CORRECT)
    seen[:1, 0] = False  # the first answer to example 0 came before the stream showed it
    seen[:, 1] = False
    np.testing.assert_array_equal(forgetting.forgetting_events(CORRECT, seen), [1, 0, 0, 0, 1])
    assert not forgetting.never_learnt(CORRECT, seen)[1]
    assert forgetting.unforgettable_fraction(CORRECT, seen) == pytest.approx(2 / 4)


def test_nothing_seen_leaves_the_fraction_undefined():
    assert np.isnan(forgetting.unforgettable_fraction(CORRECT, np.zeros_like(CORRECT)))


@given(arrays(bool, (2, 6, 4)), arrays(bool, (2, 6, 4)))
def test_events_match_their_definition_along_leading_axes(correct, seen):
    counts = forgetting.forgetting_events(correct, seen)
    for s, n in np.ndindex(2, 4):
        expected = sum(
            correct[s, t, n] and not correct[s, t + 1, n] and seen[s, t, n] and seen[s, t + 1, n] for t in range(5)
        )
        assert counts[s, n] == expected
