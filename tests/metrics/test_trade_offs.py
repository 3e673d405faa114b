"""Accuracy and costs of the same runs."""

import by_hand
import pandas as pd

from clpapers.metrics import cost, learning, trade_offs

RUN = {
    "seed": 3,
    "steps": 2,
    "learner_bytes": {"training": 3_000_000, "testing": 500_000},
    "tasks": {
        "classes": [[0, 1], [0, 1]],
        "total": [[1, 1], [1, 1]],
        "correct": [[[1, 1], [0, 1]], [[1, 0], [1, 1]]],
        "shots": [[[0, 0]], [[0, 1]]],
    },
}
CELL = {"order": {"tasks": 2}, "budget": {"batch": 10, "memory": 80}, "precision": "float32"}
NET = {"parameters": 10, "layers": [{"output": [10]}]}
METRICS = ["forgetting", "average_accuracy", "training_memory", "training_seconds"]


def inputs(*runs):
    record = {"training_seconds": {str(run["seed"]): 12.5 for run in runs}}
    record |= {"hardware": {"device": "cpu", "processor": "Abacus"}}
    return [({"dataset": "mnist", "learner": "van"}, "abc", {"cell": CELL, "seeds": list(runs)}, record, NET)]


def test_metrics_are_those_of_both_measures_and_no_others():
    rows = trade_offs.measure({"metrics": METRICS}, inputs(RUN))
    assert set(rows["metric"]) == {*METRICS, "chance_average_accuracy"}
    learnt = learning.measure({"metrics": METRICS[:2]}, [each[:3] for each in inputs(RUN)])
    costs = cost.measure({}, inputs(RUN))
    for alone in (learnt, costs[costs["metric"].isin(METRICS)]):
        key = ["learner", "seed", "metric", "value"]
        together = rows[rows["metric"].isin(alone["metric"])]
        pd.testing.assert_frame_equal(
            together[key].sort_values(key, ignore_index=True), alone[key].sort_values(key, ignore_index=True)
        )


def timed(cell, device, seed, processor="Abacus"):
    record = {"training_seconds": {str(seed): 60.0}, "hardware": {"device": device, "processor": processor}}
    run = {"cell": CELL, "seeds": [RUN | {"seed": seed}]}
    return {"dataset": "mnist", "learner": "van"}, cell, run, record, NET


def rows(*runs, metrics=METRICS, **target):
    return trade_offs.measure({"metrics": metrics, **target}, inputs(*runs or [RUN]))


TIMED = [timed("a", "cpu", 0), timed("b", "cpu", 0, "Calculus"), timed("a", "GPU", 1), timed("a", "GPU", 2)]
test_by_hand = by_hand.tests(globals())
