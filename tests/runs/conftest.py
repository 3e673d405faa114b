"""A tiny problem that every test of the runs stage shares, and learners that tests write."""

import hashlib

import numpy as np
import pytest
from tiny import SPLIT, problem, stream

from clpapers.runs import learners
from clpapers.streams import orders


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


@pytest.fixture(scope="session")
def chunked(data):
    """Three seeds' streams of two chunks of two classes, 60 items each."""
    return {seed: orders.make(SPLIT, data.train_y, seed) for seed in range(3)}


@pytest.fixture
def written(tmp_path):
    """A learner of a file, for a cell: one of the package's, by default SINGLE, with the methods of a text."""

    def of(methods, like="single"):
        parent = learners.written(like)
        head = "import math\nimport torch\nfrom clpapers import Learner, Observed\n"
        head += f"from {parent.__module__} import {parent.__name__} as Parent\n\n\nclass Mine(Parent):\n"
        head += "    uses = ('changes', 'competing', 'tasks')\n\n"
        file = tmp_path / f"mine_{hashlib.sha256(methods.encode()).hexdigest()[:8]}.py"
        file.write_text(head + methods)
        return {"name": file.stem, "file": str(file)}

    return of
