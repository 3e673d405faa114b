"""Ω_all and what goes with it, from results as small as they can be; and instances along a stream."""

import numpy as np
import pytest

from clpapers.metrics import stream_instances, streaming

RANDOM, CLASSES, BURSTS = {"name": "random"}, {"name": "split", "tasks": 3}, {"name": "instances", "burst": None}
# Three classes of 4, 2 and 2 test items; class 1 comes first, then class 0, then class 2.
EVENTS = {
    "time": [10, 20, 30],
    "correct": [[0, 2, 1], [3, 1, 0], [2, 1, 1]],
    "total": [4, 2, 2],
    "seen": [[False, True, False], [True, True, False], [True, True, True]],
    "unknown_auroc": [0.75, 0.5, None],
    "learner_bytes": [{"training": (t + 1) * 10**6, "testing": 1} for t in range(3)],
}
BETTER = EVENTS | {"correct": [[4, 2, 2], [4, 2, 0], [1, 1, 0]]}


def run(learner, events=EVENTS, order=CLASSES, seed=0):
    factors = {"dataset": "icubworld", "order": order, "learner": learner}
    return factors, "abc", {"cell": {"order": order}, "seeds": [{"seed": seed, "events": events}]}


def measured(*inputs, metrics=("omega_all",)):
    return streaming.measure({"metrics": list(metrics), "ideal": "offline"}, iter(inputs))


def values(frame, metric, **levels):
    for column, level in levels.items():
        frame = frame[frame[column] == level]
    return frame.loc[frame["metric"] == metric, "value"].tolist()


# --- pure functions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "offline", "omega"),
    [
        ([0.5, 0.5], [0.5, 0.5], 1),
        ([0.25, 0.75], [0.5, 1], 0.625),  # a mean of ratios, not a ratio of means
        ([0.9, 0.8], [0.6, 0.4], 1.75),  # better than the ideal
        ([0, 0], [0.6, 0.4], 0),
        ([0.3], [0.4], 0.75),
    ],
)
def test_omega_by_hand(learner, offline, omega):
    assert streaming.omega_all(learner, offline) == pytest.approx(omega)


def test_accuracy_on_seen_classes_and_on_all_by_hand():
    np.testing.assert_allclose(streaming.accuracies(EVENTS, only_seen=True), [2 / 2, 4 / 6, 4 / 8])
    np.testing.assert_allclose(streaming.accuracies(EVENTS, only_seen=False), [3 / 8, 4 / 8, 4 / 8])


def test_unknowns_are_averaged_over_the_events_that_have_some():
    assert streaming.unknown_auroc(EVENTS) == 0.625
    assert np.isnan(streaming.unknown_auroc({"unknown_auroc": [None, None]}))


# --- runs ---------------------------------------------------------------------------------------------------------


def test_the_accuracy_is_on_seen_classes_only_where_they_come_one_by_one():
    by_class = measured(run("nn1"), run("offline", BETTER))
    assert values(by_class, "omega_all", learner="nn1") == [pytest.approx((1 / 1 + 4 / 6 + 4 / 2) / 3)]
    for order in (RANDOM, BURSTS):
        on_all = measured(run("nn1", order=order), run("offline", BETTER, order))
        assert values(on_all, "omega_all", learner="nn1") == [pytest.approx((3 / 8 + 4 / 6 + 4 / 2) / 3)]


def test_the_ideal_itself_has_one():
    assert values(measured(run("offline", BETTER)), "omega_all") == [1]


def test_a_run_is_paired_with_the_ideals_on_its_order_and_seed():
    halved = EVENTS | {"correct": np.array(BETTER["correct"]) / 2}
    inputs = [
        run(learner, better if learner == "offline" else halved, order, seed)
        for seed, better in ((0, BETTER), (1, halved))
        for order in (RANDOM, BURSTS)
        for learner in ("nn1", "offline")  # the ideal need not come first
    ]
    frame = measured(*inputs)
    assert len(frame) == 8
    for order in ("random", "instances"):
        for seed, omega in ((0, 0.5), (1, 1)):
            assert values(frame, "omega_all", learner="nn1", order=order, seed=seed) == [pytest.approx(omega)]


def test_an_option_of_a_learner_has_the_same_ideal():
    factors, cell, result = run("nn1")
    frame = measured((factors | {"learner.batch": 7}, cell, result), run("offline", BETTER))
    assert values(frame, "omega_all", learner="nn1") == [pytest.approx((1 / 1 + 4 / 6 + 4 / 2) / 3)]


@pytest.mark.parametrize(
    "ideal", [run("offline", BETTER, seed=1), run("offline", BETTER, RANDOM), run("bartmap", BETTER)]
)
def test_a_run_without_an_ideal_s_has_no_omega(ideal):
    frame = measured(run("nn1"), ideal, metrics=["omega_all", "accuracy_by_time"])
    assert values(frame, "omega_all", learner="nn1") == []
    assert values(frame, "accuracy_by_time", learner="nn1")


def test_curves_run_over_items_and_come_with_the_chance_of_a_guess():
    frame = measured(run("nn1"), metrics=["accuracy_by_time", "memory_by_time", "unknown_auroc"])
    curve = frame[frame["metric"] == "accuracy_by_time"]
    assert curve["time"].tolist() == [10, 20, 30]
    np.testing.assert_allclose(curve["value"], [100, 100 * 4 / 6, 50])
    assert values(frame, "memory_by_time") == [1, 2, 3]  # MB that it holds while it learns
    assert values(frame, "unknown_auroc") == [0.625]
    assert values(frame, "chance_accuracy_by_time") == [pytest.approx(100 / 3)]
    assert values(frame, "chance_unknown_auroc") == [0.5]
    assert set(frame["metric"]) == {*[*streaming.METRICS][1:], *(f"chance_{metric}" for metric in streaming.CHANCES)}
    assert set(frame["cell"]) == {"abc"}


def test_a_run_that_did_not_fit_says_nothing_else():
    factors, cell, result = run("nn1")
    lost = factors, cell, result | {"seeds": [{"seed": 0, "out_of_memory": True}]}
    (row,) = measured(lost).to_dict("records")
    assert (row["metric"], row["value"], row["order"]) == ("out_of_memory", 1, "split")


# --- streams ------------------------------------------------------------------------------------------------------


def test_instances_along_a_stream_by_hand():
    labels, instances = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 2, 2])
    stream = {"indices": np.array([2, 3, 5, 4, 1, 0, 4]), "boundaries": np.array([2, 3]), "seed": np.int64(7)}
    frame = stream_instances.measure({}, [({"dataset": "d", "order": BURSTS}, stream, labels, instances)])
    assert list(frame.columns) == ["dataset", "order", "seed", "metric", "chunk", "class", "instance", "value"]
    rows = frame[["chunk", "class", "instance", "value"]].to_numpy().tolist()
    # A boundary parts the two bursts of instance 2.
    assert rows == [[0, 0, 1, 2], [1, 1, 2, 1], [2, 1, 2, 1], [2, 0, 0, 2], [2, 1, 2, 1]]
    assert frame["value"].sum() == 7
    assert set(frame["order"]) == {"instances"}
