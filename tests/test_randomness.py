"""Generators by seed and purpose."""

import numpy as np
import pytest

from clpapers.randomness import generator


def test_same_seed_and_purpose_draw_the_same():
    np.testing.assert_array_equal(generator(3, "init").random(5), generator(3, "init").random(5))


def test_seeds_and_purposes_draw_differently():
    first = {generator(seed, purpose).random() for seed in range(20) for purpose in ("init", "memory", "replay")}
    assert len(first) == 60


def test_purposes_of_a_seed_are_uncorrelated():
    a, b = generator(0, "init").random(10_000), generator(0, "memory").random(10_000)
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(10_000)


def test_negative_seed_is_refused():
    with pytest.raises(ValueError, match="non-negative"):
        generator(-1, "init")
