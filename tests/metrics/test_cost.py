"""The costs of learning, from result files, records and nets as small as they can be."""

import by_hand
import numpy as np
import pytest

from clpapers.metrics import cost, learning

CELL = {"order": {"tasks": 4}, "budget": {"batch": 10, "memory": 80}, "precision": "float32"}
RUN = {"seed": 3, "learner_bytes": {"training": 3_000_000, "testing": 500_000}}
RECORD = {"training_seconds": {"3": 12.5, "4": 9.0}, "hardware": {"device": "cpu", "processor": "Abacus"}}
NET = {"parameters": 1000, "layers": [{"output": [2, 4, 4]}, {"output": [2, 4, 4]}, {"output": [10]}]}
FACTORS = {"dataset": "mnist", "learner": "van"}


CARD = {"device": "NVIDIA H100", "processor": "Abacus"}


def measured(*runs, cell=CELL, record=RECORD):
    return cost.measure({}, [(FACTORS, "abc", {"cell": cell, "seeds": runs or [RUN]}, record, NET)])


test_by_hand = by_hand.tests(globals())


@pytest.mark.parametrize("metrics", [["average_accuracy", "learning_curve"], ["final_accuracy"]])
def test_a_run_that_did_not_fit_says_only_that(metrics):
    short = {"seed": 5, "out_of_memory": True}
    (row,) = measured(short).to_dict("records")
    assert (row["metric"], row["value"], row["seed"]) == ("out_of_memory", 1, 5)
    (row,) = learning.measure({"metrics": metrics}, [(FACTORS, "abc", {"seeds": [short]})]).to_dict("records")
    assert (row["metric"], row["value"], row["seed"]) == ("out_of_memory", 1, 5)
    assert np.isnan(row["time"])


def test_the_kind_of_machine_that_timed_most_cells_is_kept():
    """A card timed two cells, a block each; processors timed one, in three blocks."""
    card, core = RECORD | {"hardware": CARD}, RECORD
    blocks = [("a", card, 3), ("b", card, 3), *(("c", core, seed) for seed in (3, 4, 3))]
    inputs = [(FACTORS, key, {"cell": CELL, "seeds": [RUN | {"seed": s}]}, at, NET) for key, at, s in blocks]
    timed = cost.measure({}, inputs).dropna(subset="hardware").groupby("metric")["cell"].agg(list)
    assert timed.to_dict() == {"training_seconds": ["a", "b"], "training_seconds elsewhere": ["c", "c", "c"]}
