"""A method from outside beside the paper's own: its mark, its place, its differences; the others' stay as they were."""

import numpy as np
import pandas as pd
import pytest

from clpapers.metrics.intervals import paired
from clpapers.targets import own_method_ranks, results_table
from clpapers.targets.paired import pairs

FILE = "results/paper/methods/mine-0123456789.py"


@pytest.fixture
def target(table_target):
    grid = table_target["grid"] | {"learner": ["er", "ace", "mine"]}
    names, misfits = table_target["names"] | {"mine": "mine §"}, {"learner mine needs a CNN": [{"dataset": "cifar10"}]}
    own = {"mine": {"file": FILE, "misfits": misfits}}
    return table_target | {"grid": grid, "names": names, "own": own, "render": "results_table"}


@pytest.fixture
def data(learnt):
    """Between the two on EMNIST: by hand 5, 6 and 8 above ER, and so 5, 4 and 2 below ACE."""
    er = learnt[(learnt["learner"] == "er") & (learnt["dataset"] == "emnist")]
    return pd.concat([learnt, er.assign(learner="mine", value=er["value"] + [5.0, 6.0, 8.0])])


def test_its_row_is_marked_and_a_footnote_says_where_it_does_not_fit(target, data, real):
    table = results_table.render(target, data, real)
    assert list(table.body["Method", ""]) == ["ER", "ACE", "mine §"]
    assert "§ Not of the paper: mine, of a file with digest 0123456789. Not on CIFAR-10: learner mine needs a CNN." in (
        table.footnotes
    )


def test_its_place_and_differences_stand_below(target, data, real):
    (added,) = own_method_ranks.attach(results_table.render(target, data, real), target, data).appended
    lines = added.body.to_dict("records")
    assert [(line["Method"], line["Data set"], line["Place"], line["Less"]) for line in lines] == [
        ("mine §", "EMNIST", "2 of 3", "ER"),
        ("mine §", "EMNIST", "2 of 3", "ACE"),
    ]
    half = 6.205346816571397 * np.std([5.0, 6.0, 8.0], ddof=1) / np.sqrt(3)  # t of two degrees at 98.75 %: one of two
    assert lines[0]["Difference"] == f"+6.33 [{19 / 3 - half:.2f}, {19 / 3 + half:.2f}]"
    by = paired(pd.Series([-5.0, -4.0, -2.0]), pd.Series([0.0, 0.0, 0.0]))
    assert lines[1]["Difference"] == f"{by.difference:.2f} [{by.low:.2f}, {by.high:.2f}]".replace("-", "−")
    assert list(added.bold["Difference"]) == [True, by.high < 0]
    two = data[data["seed"] < 2]
    (few,) = own_method_ranks.attach(results_table.render(target, two, real), target, two).appended
    assert not few.bold.to_numpy().any()
    assert {line["Runs"] for line in lines} == {"3"}


def test_a_smaller_value_may_be_the_better_place(target, data, real):
    target, data = target | {"metrics": ["forgetting"]}, data.assign(metric="forgetting")
    (added,) = own_method_ranks.attach(results_table.render(target, data, real), target, data).appended
    assert set(added.body["Place"]) == {"2 of 3"}
    worst = data.assign(value=data["value"] + 100 * (data["learner"] == "mine"))
    (added,) = own_method_ranks.attach(results_table.render(target, worst, real), target, worst).appended
    assert set(added.body["Place"]) == {"3 of 3"}


def test_of_equal_means_both_have_the_better_place(target, data, real):
    ace = data[(data["learner"] == "ace") & (data["dataset"] == "emnist")]
    even = pd.concat([data[data["learner"] != "mine"], ace.assign(learner="mine")])
    (added,) = own_method_ranks.attach(results_table.render(target, even, real), target, even).appended
    assert set(added.body["Place"]) == {"1 of 3"}


def test_without_a_run_of_it_nothing_stands_below(target, learnt, real):
    assert own_method_ranks.attach(results_table.render(target, learnt, real), target, learnt).appended == []


def test_the_papers_pairs_are_what_they_are_without_it(target, data, learnt, table_target):
    with_it, without = pairs(target, data), pairs(table_target, learnt)
    pd.testing.assert_frame_equal(with_it.iloc[: len(without)], without)
    mine = with_it.iloc[len(without) :]
    assert list(mine["second"]) == ["mine §", "mine §"]
    assert mine["p_holm"].max() == pytest.approx(min(1, max(2 * mine["p"].min(), mine["p"].max())))
