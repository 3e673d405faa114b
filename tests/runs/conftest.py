"""A tiny problem that every test of the runs stage shares."""

import numpy as np
import pytest
from tiny import problem, stream


@pytest.fixture(scope="session")
def data():
    return problem()


@pytest.fixture(scope="session")
def streams(data):
    """Three seeds' streams of 53 items (not a multiple of the batch), drifting from class to class."""

    def drifting(seed):
        rng = np.random.default_rng(seed)
        return np.argsort(data.train_y + rng.normal(0, 0.7, len(data.train_y)))[:53]

    return {seed: stream(drifting(seed), seed) for seed in range(3)}
