"""The classes that compete in a scenario, by hand."""

import numpy as np
import pytest

from clpapers.runs.scenario import scenario
from clpapers.streams.orders import NO_TRANSFORMS
from clpapers.streams.stream import Stream

TRAIN_Y = np.repeat([0, 1, 2, 3], 2)
BATCHES = [[0, 1, 0], [2, 2, 3], [1, 3, 3]]  # classes
COMPETING = {"none": None, "oracle": None, "present": [[0, 1], [2, 3], [1, 3]]}


@pytest.mark.parametrize("train", COMPETING)
def test_what_restricts_training_under_random_tasks(train):
    """Any class may be of any task, so that tasks mask nothing; the classes of the batch do."""
    items = np.array([0, 2, 1, 4, 5, 6, 3, 7, 6])
    stream = Stream(items, np.arange(9) / 9, np.full((4, 4), np.nan), np.empty(0, dtype=np.int64), NO_TRANSFORMS, 0)
    cell = {
        "order": {"name": "random", "length": None},
        "oracle": {"name": "random_tasks", "tasks": 2},
        "restriction": {"train": train},
        "budget": {"batch": 3},
    }
    assert TRAIN_Y[items].reshape(3, 3).tolist() == BATCHES
    masks = scenario(cell, stream, TRAIN_Y, TRAIN_Y, 4).masks
    assert COMPETING[train] == (None if masks is None else [np.flatnonzero(row).tolist() for row in masks])
