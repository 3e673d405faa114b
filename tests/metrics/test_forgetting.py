"""Forgetting events counted by hand and against their definition."""

import by_hand
import numpy as np
from hypothesis import given
from hypothesis.extra.numpy import arrays

from clpapers.metrics import forgetting

# Five evaluations (down) of five examples (across).
CORRECT = np.array([[1, 0, 0, 1, 0], [0, 0, 1, 1, 1], [1, 0, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 1]], bool)


test_by_hand = by_hand.tests(globals())


@given(arrays(bool, (2, 6, 4)), arrays(bool, (2, 6, 4)))
def test_events_match_their_definition_along_leading_axes(correct, seen):
    counts = forgetting.forgetting_events(correct, seen)
    for s, n in np.ndindex(2, 4):
        expected = sum(
            correct[s, t, n] and not correct[s, t + 1, n] and seen[s, t, n] and seen[s, t + 1, n] for t in range(5)
        )
        assert counts[s, n] == expected
