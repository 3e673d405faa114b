"""The measure modules, from stage files as small as they can be to tidy frames."""

import base64

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


def test_curves_by_hand():
    retention = measured("information_retention")
    assert list(zip(retention["time"], retention["value"])) == [(0.5, 100), (1, 50)]


def test_a_learner_that_does_not_answer_online_has_no_online_accuracy():
    silent = RUN | {"online": {"correct": None, "batch": 1, "loss": None}}
    assert np.isnan(measured("online_accuracy", silent)["value"].iloc[0])


def test_every_metric_has_a_row_for_every_seed():
    metrics = [*learning.SCALARS, "information_retention"]
    inputs = [(FACTORS, "abc", {"seeds": [RUN, RUN | {"seed": 4}]})]
    rows = learning.measure({"metrics": metrics}, inputs).groupby("metric")["seed"].agg(set)
    assert set(rows.index) == {*metrics, *("chance_" + metric for metric in learning.CHANCES)}
    assert all(seeds == {3, 4} for seeds in rows)


def test_class_frequency_of_a_stream():
    target = {"statistic": "class_frequency", "chunks": 2}
    frame = stream_classes.measure(target, [({"dataset": "toy", "order": "stf"}, STREAM, LABELS)])
    cells = {(row.time, row[4]): row.value for row in frame.itertuples(index=False)}
    assert list(frame.columns) == ["dataset", "order", "seed", "metric", "class", "time", "value"]
    assert cells == {(0.25, 0): 0.5, (0.25, 1): 0.5, (0.75, 0): 0.5, (0.75, 1): 0.5}
    assert set(frame["seed"]) == {7}


def test_prevalence_of_a_stream():
    target = {"statistic": "prevalence", "chunks": 4}
    frame = stream_classes.measure(target, [({"dataset": "toy"}, STREAM, LABELS)])
    assert list(frame["value"]) == [1, 1, 1, 1]


def test_shares_of_classes_and_tasks_between_a_streams_boundaries():
    stream = STREAM | {"indices": np.array([3, 0, 2, 1, 1]), "boundaries": np.array([3])}
    tasks = np.array([1, 0, 1, 0, 2])  # the two last items are of one class and called different tasks
    frame = stream_tasks.measure({}, [({"dataset": "toy", "order": {"name": "dominant"}}, stream, LABELS, tasks)])
    cells = {(row.chunk, row[5], row.task): row.value for row in frame.itertuples(index=False)}
    assert list(frame.columns) == ["dataset", "order", "seed", "metric", "chunk", "class", "task", "value"]
    assert cells == {(0, 1, 1): 2 / 3, (0, 0, 0): 1 / 3, (1, 0, 0): 1 / 2, (1, 0, 2): 1 / 2}
    assert set(frame["metric"]) == {"share"}


def test_a_stream_without_boundaries_is_one_chunk():
    stream = STREAM | {"boundaries": np.array([], int)}
    frame = stream_tasks.measure({}, [({}, stream, LABELS, np.zeros(4, int))])
    assert list(zip(frame["chunk"], frame["class"], frame["value"])) == [(0, 0, 0.5), (0, 1, 0.5)]


def statistics(*streams):
    """The cells of Table 1, by data set and row, of streams given as (data set, the tasks' training indices)."""
    test = np.array([0, 0, 0, 1, 2, 2])
    inputs = []
    for dataset, *tasks in streams:
        arrays = {"indices": np.concatenate(tasks), "boundaries": np.cumsum([len(task) for task in tasks])[:-1]}
        inputs.append(({"dataset": dataset, "seed": 0}, arrays, np.array([0, 0, 1, 1, 2, 2]), test, (5, 6, 3)))
    return stream_statistics.measure({}, inputs).set_index(["dataset", "row"])


def test_statistics_of_tasks_are_those_of_all_streams_of_a_data_set():
    cells = statistics(("a", [0, 2], [4, 5]), ("b", [0]), ("a", [3, 1, 4]))
    assert list(cells.loc["a"].index) == ["tasks", "input", "classes", "train_images", "test_images"]
    assert tuple(cells.loc[("a", "tasks"), ["mean", "half_width", "n", "detail"]]) == (3, 0, 3, "2 + 1")
    assert tuple(cells.loc[("a", "input"), ["n", "detail"]]) == (3, "3×5×6")
    assert np.isnan(cells.loc[("a", "input"), "mean"])
    counts = {"classes": (2, 1, 3), "train_images": (2, 2, 3), "test_images": (4, 2, 6)}
    for row, of_task in counts.items():
        cell = cells.loc[("a", row)]
        assert (cell["mean"], cell["n"], cell["detail"]) == (
            pytest.approx(np.mean(of_task)),
            3,
            f"{min(of_task)}–{max(of_task)}",
        )
    assert tuple(cells.loc[("b", "tasks"), ["mean", "detail"]]) == (1, "")
    assert tuple(cells.loc[("b", "test_images"), ["mean", "detail"]]) == (3, "")


def test_items_shown_again_count_again_and_classes_once():
    cells = statistics(("a", [0, 1, 2], [2, 1, 0]))
    assert tuple(cells.loc["a"].loc[["classes", "train_images", "test_images"], "mean"]) == (2, 3, 4)


def test_timestamps_list_the_items_in_stream_order():
    frame = timestamps.measure({}, [({"order": {"name": "stf"}}, STREAM, LABELS)])
    assert list(frame["class"]) == [1, 0, 1, 0]
    assert list(frame["timestamp"]) == [0.1, 0.2, 0.6, 0.9]
    assert list(frame["alpha"]) == [6, 2, 6, 2]
    assert list(frame["beta"]) == [3, 5, 3, 5]


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


def test_architecture_rows():
    frame = architecture.measure({}, [("mlp", NET)])
    assert list(frame["input"]) == ["1×28×28"] * 2
    assert list(frame["output"]) == ["16", "10"]
    assert set(frame["total"]) == {12730}


def test_entropy_in_percent():
    (row,) = entropy.measure({"metrics": ["captured"]}, [np.array([0.98, 1.0])]).to_dict("records")
    assert (row["row"], row["metric"], row["n"]) == ("simulation", "captured", 2)
    assert row["mean"] == pytest.approx(99)
    assert row["sd"] == pytest.approx(np.sqrt(2))
    assert row["se"] == pytest.approx(1)
    assert row["half_width"] == pytest.approx(12.7062, abs=1e-4)


def test_a_run_that_reports_no_violations_has_no_curve_of_them():
    times, values = learning.CURVES["violations_by_task"]({"learner": {}, "diverged": None})
    assert len(times) == len(values) == 0
