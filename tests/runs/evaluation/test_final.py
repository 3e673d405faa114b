"""The final test: which items, and what each restriction takes away."""

import dataclasses

import numpy as np
import pytest
from tiny import CPU, MIXED, OPTIONS, SPLIT, cell, split

from clpapers.runs import loop
from clpapers.runs.evaluation import final


def test_test_subset_is_shared():
    assert final.test_items(10, None).tolist() == list(range(10))
    chosen = final.test_items(1000, 50)
    assert len(set(chosen)) == 50
    assert (np.diff(chosen) > 0).all()
    assert (chosen == final.test_items(1000, 50)).all()


ORACLES = {
    "sp2": split(2),
    "sp4": split(4),
    "td": split(2, aligned=False),
    "rand": {"name": "random_tasks", "tasks": 3},
}


def viewed(data, streams, batch, learner="single", **options):
    """The views of seed 0's test, of a run that looks at no oracle, on two chunks of two classes; hardly trained."""
    spec = cell(learner, OPTIONS[learner], "mlp", order=SPLIT, learning_rate=1e-4, **{"oracles": ORACLES} | options)
    spec["evaluation"]["batch"] = batch
    return loop.train(spec, data, {0: streams[0]}, CPU)[0]["test"]


@pytest.mark.parametrize("batch", [1, 5, 12])
def test_a_restriction_never_takes_the_right_class_away(batch, data, chunked):
    """On the same scores, what is right among all classes is right among fewer of them."""
    views = viewed(data, chunked, batch)
    assert views.keys() == {
        "none",
        *(f"{name}/{view}" for name in ORACLES for view in ("oracle", "data", "independent")),
    }
    for view in views.values():
        assert view["total"] == [6, 6, 6, 6]
        assert all(more >= right for more, right in zip(view["correct"], views["none"]["correct"]))
        assert view["chance"] >= 1 / 4
    assert sum(views["sp2/data"]["correct"]) > sum(views["none"]["correct"])
    for name in ("oracle", "independent"):  # tasks that may hold any class restrict nothing
        assert views[f"rand/{name}"] == views["none"]


def test_chance_by_hand(data, chunked):
    """Six test items of each of four classes, those of a chunk's two classes served together."""
    one, all_of_a_chunk = viewed(data, chunked, 1), viewed(data, chunked, 12)
    for views in (one, all_of_a_chunk):
        assert views["none"]["chance"] == 1 / 4
        assert views["sp2/data"]["chance"] == views["sp4/data"]["chance"] == views["td/data"]["chance"] == 1 / 2
        assert views["sp2/oracle"] == views["sp2/data"]  # aligned, and as many tasks as chunks
    assert one["td/oracle"]["chance"] == one["td/independent"]["chance"] == 1 / 2  # two tasks of two classes
    for view in ("sp4/oracle", "sp4/independent"):
        assert one[view]["chance"] == 1  # one class alone competes, and is right
        assert one[view]["correct"] == [6, 6, 6, 6]
        assert all_of_a_chunk[view]["chance"] == 1 / 2  # both of the batch do


def test_a_run_that_looks_at_an_oracle_is_viewed_under_it(data, chunked):
    ours = viewed(data, chunked, 6, oracle=split(2), oracles={})
    named = viewed(data, chunked, 6)
    assert ours == {"none": named["none"]} | {view: named[f"sp2/{view}"] for view in ("oracle", "data", "independent")}
    assert viewed(data, chunked, 6, oracle=MIXED, oracles={}).keys() == {"none"}


def test_a_guess_reaches_chance(data, chunked):
    """Within four standard deviations on 2400 items, under every restriction."""
    many = dataclasses.replace(data, test_x=data.test_x.repeat(100, axis=0), test_y=data.test_y.repeat(100))
    for view, seen in viewed(many, chunked, 3, "random").items():
        share = sum(seen["correct"]) / 2400
        assert abs(share - seen["chance"]) <= 4 * np.sqrt(0.25 / 2400), view
