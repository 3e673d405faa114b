"""What a search over a grid takes, by hand."""

import numpy as np
import pytest

from clpapers.metrics.selection import choose, measure

GRID = [{"budget.learning_rate": rate} for rate in (0.3, 0.1, 0.03)]
SEARCH = {"metric": "average_accuracy", "per_class": False, "points": ["a", "b", "c"]}
PAPER = {"budget.learning_rate": 0.03}


def run(*right, diverged=None, totals=(10, 10)):
    """A run of one task of two classes."""
    tasks = {"classes": [[0, 1]], "total": [list(totals)], "correct": [[list(right)]]}
    return {"tasks": tasks, "diverged": diverged}


def chosen(*runs, **search):
    return choose(SEARCH | search, PAPER, GRID, dict(zip("abc", runs)))


def test_the_best_mean_over_the_seeds_is_taken():
    found = chosen([run(5, 5), run(9, 5)], [run(8, 6), run(8, 8)], [run(10, 4)])
    assert [point["score"] for point in found["scores"]] == pytest.approx([60, 75, 70])
    assert found["selected"] == {"budget.learning_rate": 0.1}
    assert found["published"] == PAPER


def test_of_equals_the_first_is_taken():
    assert chosen([run(5, 5)], [run(6, 6)], [run(7, 5)])["selected"] == GRID[1]


def test_a_point_of_which_a_seed_diverged_has_no_score_and_is_not_taken():
    found = chosen([run(10, 10), run(10, 10, diverged=7)], [run(1, 0)], [run(0, 0)])
    assert [point["score"] for point in found["scores"]] == [None, 5, 0]
    assert found["selected"] == GRID[1]


def test_a_point_that_ran_out_of_memory_has_no_score_either():
    found = chosen([{"out_of_memory": True}], [run(1, 0)], [run(0, 0, diverged=2)])
    assert [point["failure"] for point in found["scores"]] == ["out_of_memory", None, "diverged"]
    assert found["selected"] == GRID[1]


def test_where_all_diverge_the_first_is_taken():
    assert chosen(*[[run(1, 1, diverged=0)]] * 3)["selected"] == GRID[0]


def test_a_tasks_accuracy_may_be_the_mean_over_its_classes():
    runs = [run(18, 0, totals=(20, 2))], [run(10, 2, totals=(20, 2))], [run(0, 0, totals=(20, 2))]
    assert chosen(*runs)["selected"] == GRID[0]
    assert chosen(*runs, per_class=True)["selected"] == GRID[1]


def test_every_point_is_a_row():
    found = chosen([run(1, 0, diverged=3)], [run(5, 5)], [run(6, 0)])
    frame = measure({}, [({"dataset": "mnist", "learner": "van"}, found)])
    assert list(frame["learning_rate"]) == [0.3, 0.1, 0.03]
    assert list(frame["score"]) == pytest.approx([np.nan, 50, 30], nan_ok=True)
    assert list(frame["selected"]) == [False, True, False]
    assert list(frame["published"]) == [False, False, True]
    assert set(frame["metric"]) == {"average_accuracy"}
    assert set(frame["learner"]) == {"van"}
