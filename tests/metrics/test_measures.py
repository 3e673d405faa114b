"""The measure modules, from stage files as small as they can be to tidy frames."""

# ruff: noqa: F401, names that by_hand.yaml uses
import base64

import by_hand
import numpy as np
import pytest

from clpapers.metrics import (
    architecture,
    entropy,
    learning,
    stream_classes,
    stream_statistics,
    stream_tasks,
    timestamps,
)


def packed(*bits):
    return base64.b64encode(np.packbits(np.array(bits, bool))).decode()


RUN = {
    "seed": 3,
    "steps": 4,
    "test": {"correct": [1, 3], "total": [2, 4], "chance": 0.75},
    "probes": {"position": [0, 2], "time": [2, 4], "correct": [packed(1), packed(0, 1)]},
    "online": {"correct": [1, 0, 1, 1], "batch": 1, "loss": [4.0, 2.0, 3.0, 1.0]},
    "tasks": {
        "classes": [[0, 1], [0, 1]],
        "total": [[1, 1], [1, 1]],
        "correct": [[[1, 1], [0, 1]], [[1, 0], [1, 1]]],
        "open": [[[1, 0], [0, 0]], [[1, 0], [0, 1]]],
        "shots": [[[0, 0], [1, 0]], [[0, 1], [1, 1]]],
    },
}
FACTORS = {"dataset": "mnist", "order": {"name": "split", "tasks": 2}, "learner": "er"}
STREAM = {
    "indices": np.array([3, 0, 2, 1]),
    "timestamps": np.array([0.1, 0.2, 0.6, 0.9]),
    "class_parameters": np.array([[0.3, 0.1, 2.0, 5.0], [0.7, 0.1, 6.0, 3.0]]),
    "seed": np.int64(7),
}
LABELS = np.array([0, 0, 1, 1])


def measured(metric, run=RUN, **target):
    return learning.measure({"metrics": [metric], **target}, [(FACTORS, "abc", {"seeds": [run]})])


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("final_accuracy", 100 * 4 / 6),
        ("per_class_accuracy", 100 * (1 / 2 + 3 / 4) / 2),
        ("average_information_retention", 100 * (1 + 1 / 2) / 2),
        ("online_accuracy", 75),
        ("forgetting_events", 0.5),  # the first of two probes was lost once
        ("never_learnt", 0),
        ("unforgettable", 50),
    ],
)
def test_scalars_by_hand(metric, value):
    row, *chance = measured(metric).to_dict("records")
    assert len(chance) == metric.endswith(("accuracy", "retention"))
    assert row.pop("value") == pytest.approx(value)
    assert np.isnan(row.pop("time"))
    key = {"dataset": "mnist", "order": "split", "learner": "er", "cell": "abc", "seed": 3, "metric": metric}
    assert row == key


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("final_accuracy", 75),  # under the masks of the test
        ("per_class_accuracy", 75),
        ("average_information_retention", 50),  # two classes compete
        ("online_accuracy", 50),
    ],
)
def test_every_accuracy_comes_with_the_chance_of_a_guess(metric, value):
    measurement, chance = measured(metric).to_dict("records")
    assert chance.pop("value") == value
    assert chance.pop("metric") == f"chance_{metric}"
    assert chance.items() <= (measurement | {"time": chance["time"]}).items()


def test_every_metric_has_a_row_for_every_seed():
    metrics = [*learning.SCALARS, "information_retention"]
    inputs = [(FACTORS, "abc", {"seeds": [RUN, RUN | {"seed": 4}]})]
    rows = learning.measure({"metrics": metrics}, inputs).groupby("metric")["seed"].agg(set)
    assert set(rows.index) == {*metrics, *("chance_" + metric for metric in learning.CHANCES)}
    assert all(seeds == {3, 4} for seeds in rows)


def cells(frame, *columns):
    """The value at each combination of levels."""
    return dict(zip(frame[list(columns)].itertuples(index=False, name=None), frame["value"]))


def shares(indices, boundaries, tasks, **factors):
    stream = STREAM | {"indices": np.array(indices), "boundaries": np.array(boundaries, int)}
    return stream_tasks.measure({}, [(factors, stream, LABELS, np.array(tasks))])


def statistics(*streams):
    """The cells of Table 1, by data set and row, of streams given as (data set, the tasks' training indices)."""
    test = np.array([0, 0, 0, 1, 2, 2])
    inputs = []
    for dataset, *tasks in streams:
        arrays = {"indices": np.concatenate(tasks), "boundaries": np.cumsum([len(task) for task in tasks])[:-1]}
        inputs.append(({"dataset": dataset, "seed": 0}, arrays, np.array([0, 0, 1, 1, 2, 2]), test, (5, 6, 3)))
    return stream_statistics.measure({}, inputs).set_index(["dataset", "row"])


NET = {
    "net": "mlp",
    "input": [1, 28, 28],
    "classes": 10,
    "layers": [
        {"block": "", "layer": "Linear", "output": [16], "parameters": 12560},
        {"block": "", "layer": "Linear", "output": [10], "parameters": 170},
    ],
    "parameters": 12730,
}


test_by_hand = by_hand.tests(globals())
