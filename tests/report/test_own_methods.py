"""The page of a method from outside: its places and differences by hand, and what more runs would decide."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from clpapers.metrics.intervals import paired, welch
from clpapers.report.own_methods import AHEAD, BEHIND, UNDECIDED, Difference, gather

ER, MINE = [30.0, 31.0, 33.0], [35.0, 37.0, 39.0]  # of seeds 0, 1, 2
ACE = {3: 40.0, 4: 44.0}  # by seed: none that the others have


@pytest.fixture
def places(tmp_path):
    """The places of a method from outside in a table of it and two baselines, on one data set."""
    values = {"er": dict(enumerate(ER)), "mine": dict(enumerate(MINE)), "ace": ACE}
    lines = [
        {"learner": label, "dataset": "mnist", "seed": seed, "metric": "final_accuracy", "value": value}
        for label, by_seed in values.items()
        for seed, value in by_seed.items()
    ]
    data = pd.DataFrame(lines)
    data.to_csv(tmp_path / "metrics.csv", index=False)
    names = {"er": "ER", "ace": "ACE", "mine": "mine §", "mnist": "MNIST", "final_accuracy": "Acc."}
    grid = {"dataset": ["mnist"], "learner": ["er", "ace", "mine"]}
    spec = {"names": names, "grid": grid, "metrics": ["final_accuracy"], "own": {"mine": {}}}
    spec |= {"render": "results_table"}
    cells = [({"learner": "mine", "dataset": "mnist"}, SimpleNamespace(hash="0"))]
    target = SimpleNamespace(spec=spec, metrics=tmp_path / "metrics.csv", cells=cells, seeds=range(3))
    mine = SimpleNamespace(user_methods={"mine": SimpleNamespace(file="mine.py")})
    plan = SimpleNamespace(facts=mine, methods=["mine.py"], choice=None, results=lambda cell, seeds: {})
    (method,) = gather(plan, [SimpleNamespace(name="stf", targets=[SimpleNamespace(target=target)])])
    return method.rows[0].places


def test_it_is_paired_where_streams_are_the_same_and_by_means_elsewhere(places):
    (place,) = places
    assert (place.column, place.named, place.rank, place.of, place.runs) == ("MNIST", "Acc.", 2, 3, 3)
    same, other = place.differences
    by_hand = paired(pd.Series(MINE), pd.Series(ER))
    assert (same.baseline, same.n, same.paired, same.standing) == ("ER", 3, True, AHEAD)
    assert same.value == pytest.approx((5 + 6 + 6) / 3) == by_hand.difference
    assert same.sd == pytest.approx(pd.Series([5, 6, 6]).std())
    ours, theirs = pd.Series(MINE), pd.Series(ACE.values())
    estimate = welch(ours.mean(), ours.sem(), 3, theirs.mean(), theirs.sem(), 2)
    assert (other.baseline, other.n, other.paired, other.standing) == ("ACE", 2, False, UNDECIDED)
    assert other.value == 37 - 42
    assert (other.low, other.high) == pytest.approx(estimate.interval())


@pytest.mark.parametrize(
    ("low", "high", "n", "better", "standing"),
    [
        (1.0, 3.0, 3, 1, AHEAD),
        (1.0, 3.0, 3, -1, BEHIND),
        (-3.0, -1.0, 3, 1, BEHIND),
        (-3.0, -1.0, 3, -1, AHEAD),
        (-1.0, 3.0, 20, 1, UNDECIDED),
        (1.0, 3.0, 2, 1, UNDECIDED),  # two streams decide nothing
        (math.nan, math.nan, 1, 1, UNDECIDED),
    ],
)
def test_ahead_and_behind_follow_the_interval_and_what_is_better(low, high, n, better, standing):
    value = 2.0 if math.isnan(low) else (low + high) / 2
    assert Difference("ER", value, low, high, n, True, 1.0, better).standing == standing


def test_what_more_streams_would_decide_by_hand():
    """With mean 1 and spread 1 four streams give 3.18 / 2, above 1, and twenty 2.09 / 4.47, below it.

    Over ten tests ten streams give 3.69 / 3.16, above it, and twenty 3.17 / 4.47, below it.
    """
    one = Difference("ER", 1.0, -1.5, 3.5, 3, True, 1.0, 1)
    assert [one.decided_by(runs, 1) for runs in (3, 4, 20)] == [False, False, True]
    assert [one.decided_by(runs, 10) for runs in (10, 20)] == [False, True]
    alone = Difference("ER", 1.0, math.nan, math.nan, 1, True, math.nan, 1)
    assert not alone.decided_by(20, 1)
