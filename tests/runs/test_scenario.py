"""The classes that compete in a scenario, by hand."""

import numpy as np
import pytest
from tiny import stream

from clpapers.runs.scenario import ScenarioError, scenario

TRAIN_Y = np.repeat([0, 1, 2, 3], 2)
BATCHES = [[0, 1, 0], [2, 2, 3], [1, 3, 3]]  # classes
COMPETING = {
    "none": None,
    "oracle": None,
    "present": [[0, 1], [2, 3], [1, 3]],
    "seen": [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3]],
}


@pytest.mark.parametrize("train", COMPETING)
def test_what_restricts_training_under_random_tasks(train):
    """Any class may be of any task, so that tasks mask nothing; the classes of the batch do."""
    items = np.array([0, 2, 1, 4, 5, 6, 3, 7, 6])
    cell = {
        "order": {"name": "random", "length": None},
        "oracle": {"name": "random_tasks", "tasks": 2},
        "restriction": {"train": train},
        "budget": {"batch": 3},
    }
    assert TRAIN_Y[items].reshape(3, 3).tolist() == BATCHES
    masks = scenario(cell, stream(items), TRAIN_Y, TRAIN_Y, 4).masks
    assert COMPETING[train] == (None if masks is None else [np.flatnonzero(row).tolist() for row in masks])


@pytest.mark.parametrize(
    ("items", "boundaries", "ends"), [(9, [], [4, 9]), (9, [5], [5, 9]), (8, [], [4, 8]), (2, [], [2])]
)
def test_an_odd_item_joins_the_batch_before_it_where_batch_norm_needs_two(items, boundaries, ends):
    order = np.arange(items) % 8
    cell = {
        "order": {"name": "random", "length": None},
        "oracle": {"name": "none"},
        "restriction": {"train": "none"},
        "budget": {"batch": 4},
        "net": {"name": "resnet18_reduced"},
    }
    assert scenario(cell, stream(order, 0, boundaries), TRAIN_Y, TRAIN_Y, 4, 2).ends.tolist() == ends
    with pytest.raises(ScenarioError, match="net resnet18_reduced: batch norm has no variance of a chunk of one item"):
        scenario(cell, stream(order, 0, [1]), TRAIN_Y, TRAIN_Y, 4, 2)
