"""A tiny problem that every test of the runs stage shares."""

import numpy as np
import pytest
from tiny import stream

from clpapers.runs.loop import Data


@pytest.fixture(scope="session")
def data():
    """Four classes of noisy 8×8 colour prototypes; 120 training and 24 test images, sorted by label."""
    rng = np.random.default_rng(0)
    prototypes = rng.integers(40, 215, (4, 8, 8, 3))

    def split(n):
        y = np.repeat(np.arange(4), n // 4)
        return (prototypes[y] + rng.normal(0, 30, (n, 8, 8, 3))).clip(0, 255).astype(np.uint8), y

    return Data(*split(120), *split(24), classes=4)


@pytest.fixture(scope="session")
def streams(data):
    """Three seeds' streams of 53 items (not a multiple of the batch), drifting from class to class."""

    def drifting(seed):
        rng = np.random.default_rng(seed)
        return np.argsort(data.train_y + rng.normal(0, 0.7, len(data.train_y)))[:53]

    return {seed: stream(drifting(seed), seed) for seed in range(3)}
