"""The classes that compete in a scenario, by hand."""

import numpy as np
import pytest

from clpapers.runs.scenario import ScenarioError, scenario
from clpapers.streams.orders import NO_TRANSFORMS
from clpapers.streams.stream import Stream

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


@pytest.mark.parametrize(
    ("items", "boundaries", "ends"), [(9, [], [4, 9]), (9, [5], [5, 9]), (8, [], [4, 8]), (2, [], [2])]
)
def test_an_odd_item_joins_the_batch_before_it_where_batch_norm_needs_two(items, boundaries, ends):
    order = np.arange(items) % 8
    edges = np.array(boundaries, dtype=np.int64)
    stream = Stream(order, np.arange(items) / items, np.full((4, 4), np.nan), edges, NO_TRANSFORMS, 0)
    cell = {
        "order": {"name": "random", "length": None},
        "oracle": {"name": "none"},
        "restriction": {"train": "none"},
        "budget": {"batch": 4},
        "net": {"name": "resnet18_reduced"},
    }
    assert scenario(cell, stream, TRAIN_Y, TRAIN_Y, 4, 2).ends.tolist() == ends
    alone = Stream(order, stream.timestamps, stream.class_parameters, np.array([1]), NO_TRANSFORMS, 0)
    with pytest.raises(ScenarioError, match="net resnet18_reduced: batch norm has no variance of a chunk of one item"):
        scenario(cell, alone, TRAIN_Y, TRAIN_Y, 4, 2)
