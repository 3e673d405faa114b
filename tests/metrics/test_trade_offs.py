"""What was learnt and what it cost, of the same runs."""

import pandas as pd
import pytest

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


@pytest.mark.parametrize("metric", ["forgetting", "training_seconds", "training_memory"])
def test_what_is_left_out_of_a_learner_is_not_measured(metric):
    rows = trade_offs.measure({"metrics": METRICS, "undefined": {metric: ["van"]}}, inputs(RUN))
    assert set(rows["metric"]) == {*METRICS, "chance_average_accuracy"} - {metric}
    others = trade_offs.measure({"metrics": METRICS, "undefined": {metric: ["a_gem"]}}, inputs(RUN))
    assert metric in set(others["metric"])


def test_a_run_that_did_not_fit_says_so_once():
    rows = trade_offs.measure({"metrics": METRICS}, inputs(RUN, {"seed": 4, "out_of_memory": True}))
    assert list(rows.loc[rows["seed"] == 4, "metric"]) == ["out_of_memory"]
    assert set(rows.loc[rows["seed"] == 3, "metric"]) == {*METRICS, "chance_average_accuracy"}


def test_minutes_are_the_seconds_by_sixty_on_the_same_hardware():
    seconds, minutes = (
        trade_offs.measure({"metrics": [metric]}, inputs(RUN)) for metric in ("training_seconds", "training_minutes")
    )
    assert list(minutes["metric"]) == ["training_minutes"]
    assert minutes["value"].item() * 60 == seconds["value"].item() == 12.5
    assert minutes["hardware"].item() == seconds["hardware"].item() == "CPU Abacus"


def test_times_of_the_hardware_that_timed_fewer_cells_are_set_apart():
    def timed(cell, device, seed, processor="Abacus"):
        record = {"training_seconds": {str(seed): 60.0}, "hardware": {"device": device, "processor": processor}}
        run = {"cell": CELL, "seeds": [RUN | {"seed": seed}]}
        return {"dataset": "mnist", "learner": "van"}, cell, run, record, NET

    runs = [timed("a", "cpu", 0), timed("b", "cpu", 0, "Calculus"), timed("a", "GPU", 1), timed("a", "GPU", 2)]
    rows = trade_offs.measure({"metrics": ["training_minutes", "average_accuracy"]}, runs)
    times = rows.dropna(subset="hardware")
    assert times[["cell", "seed", "metric"]].to_numpy().tolist() == [
        ["a", 0, "training_minutes"],
        ["b", 0, "training_minutes"],
        ["a", 1, "training_minutes elsewhere"],
        ["a", 2, "training_minutes elsewhere"],
    ]
    assert (times["value"] == 1).all()
    assert (rows["metric"] == "average_accuracy").sum() == 4
    only = trade_offs.measure({"metrics": ["training_minutes"]}, runs[2:])
    assert list(only["metric"]) == ["training_minutes"] * 2
