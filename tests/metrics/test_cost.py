"""What learning costs, from result files, records and nets as small as they can be."""

import numpy as np
import pytest

from clpapers.metrics import cost, learning

CELL = {"order": {"tasks": 4}, "budget": {"batch": 10, "memory": 80}, "precision": "float32"}
RUN = {"seed": 3, "learner_bytes": {"training": 3_000_000, "testing": 500_000}}
RECORD = {"training_seconds": {"3": 12.5, "4": 9.0}, "hardware": {"device": "cpu", "processor": "Abacus"}}
NET = {"parameters": 1000, "layers": [{"output": [2, 4, 4]}, {"output": [2, 4, 4]}, {"output": [10]}]}
FACTORS = {"dataset": "mnist", "learner": "van"}


def measured(run=RUN, cell=CELL, record=RECORD):
    return cost.measure({}, [(FACTORS, "abc", {"cell": cell, "seeds": [run]}, record, NET)])


def test_by_hand():
    rows = measured()
    assert rows.set_index("metric")["value"].to_dict() == {
        "training_seconds": 12.5,
        "training_memory": 3.0,
        "testing_memory": 0.5,
        "P": 1000,
        "B": 10,
        "H": 2 * 32 + 10,
        "T": 4,
        "M": 20,
        "bytes": 4,
    }
    assert set(rows["seed"]) == {3}
    assert set(rows["learner"]) == {"van"}


def test_seconds_alone_say_on_what_they_were_taken():
    hardware = measured().set_index("metric")["hardware"]
    assert hardware.dropna().to_dict() == {"training_seconds": "CPU Abacus"}
    gpu = RECORD | {"hardware": {"device": "NVIDIA H100", "processor": "Abacus"}}
    assert measured(record=gpu)["hardware"].dropna().tolist() == ["NVIDIA H100"]


def test_a_block_is_one_timing_of_its_seeds_shares():
    """Two seeds of one block, 12.5 and 9 seconds: 10.75 a seed, at the first; their footprints stay two."""
    second = RUN | {"seed": 4}
    rows = cost.measure({}, [(FACTORS, "abc", {"cell": CELL, "seeds": [RUN, second]}, RECORD, NET)])
    (timing,) = rows[rows["metric"] == "training_seconds"].to_dict("records")
    assert (timing["seed"], timing["value"]) == (3, 10.75)
    assert list(rows.loc[rows["metric"] == "training_memory", "seed"]) == [3, 4]
    short = cost.measure(
        {}, [(FACTORS, "abc", {"cell": CELL, "seeds": [{**RUN, "out_of_memory": True}, second]}, RECORD, NET)]
    )
    assert short.loc[short["metric"] == "training_seconds", ["seed", "value"]].to_numpy().tolist() == [[4, 9.0]]


def test_double_precision_takes_eight_bytes():
    values = measured(cell=CELL | {"precision": "float64"}).set_index("metric")["value"]
    assert values["bytes"] == 8


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
    card, core = RECORD | {"hardware": {"device": "NVIDIA H100", "processor": ""}}, RECORD
    blocks = [("a", card, 3), ("b", card, 3), *(("c", core, seed) for seed in (3, 4, 3))]
    inputs = [(FACTORS, key, {"cell": CELL, "seeds": [RUN | {"seed": s}]}, at, NET) for key, at, s in blocks]
    timed = cost.measure({}, inputs).dropna(subset="hardware").groupby("metric")["cell"].agg(list)
    assert timed.to_dict() == {"training_seconds": ["a", "b"], "training_seconds elsewhere": ["c", "c", "c"]}
