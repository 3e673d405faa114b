"""Ω_all and what goes with it, from results as small as they can be; and instances along a stream."""

# ruff: noqa: F401, names that by_hand.yaml uses
import by_hand
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


def run(learner, events=EVENTS, order=CLASSES, seed=0, **factors):
    """A result of a learner; without events, of one that did not fit."""
    told = {"events": events} if events else {"out_of_memory": True}
    levels = {"dataset": "icubworld", "order": order, "learner": learner} | factors
    return levels, "abc", {"cell": {"order": order}, "seeds": [{"seed": seed} | told]}


def measured(*inputs, metrics=("omega_all",)):
    return streaming.measure({"metrics": list(metrics), "ideal": "offline"}, iter(inputs))


def values(frame, metric, **levels):
    for column, level in levels.items():
        frame = frame[frame[column] == level]
    return frame.loc[frame["metric"] == metric, "value"].tolist()


def omegas(*inputs, **levels):
    return values(measured(*inputs), "omega_all", **levels)


test_by_hand = by_hand.tests(globals())


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


@pytest.mark.parametrize(
    "ideal", [run("offline", BETTER, seed=1), run("offline", BETTER, RANDOM), run("bartmap", BETTER)]
)
def test_a_run_without_an_ideal_s_has_no_omega(ideal):
    frame = measured(run("nn1"), ideal, metrics=["omega_all", "accuracy_by_time"])
    assert values(frame, "omega_all", learner="nn1") == []
    assert values(frame, "accuracy_by_time", learner="nn1")
