"""The chosen point beside that of the paper."""

import numpy as np
import pandas as pd
import pytest

from clpapers.targets.selection_table import render

TARGET = {
    "title": "G",
    "caption": "c",
    "grid": {"dataset": ["mnist"], "learner": ["ewc", "van"]},
    "names": {"learning_rate": "Rate", "strength": "λ", "score": "A", "van": "VAN", "learner": "Method"},
}


def point(learner, rate, strength, score, selected, published):
    row = {"dataset": "mnist", "learner": learner, "cell": "x", "metric": "average_accuracy"}
    row |= {"learning_rate": rate, "strength": strength, "score": score, "failure": None}
    return row | {"selected": selected, "published": published}


@pytest.fixture
def grids():
    return pd.DataFrame(
        [
            point("van", 0.1, np.nan, 50.04, False, True),
            point("van", 0.03, np.nan, 60.0, True, False),
            point("ewc", 0.1, 10, 70.0, True, True),
            point("ewc", 0.1, 100, np.nan, False, False),
        ]
    )


def test_a_line_a_learner_with_both_choices_and_what_they_reach(grids, real):
    table = render(TARGET, grids, real)
    assert table.body.to_numpy().tolist() == [
        ["mnist", "ewc", "2", "0.1", "0.1", "10", "10", "70.0", "70.0"],
        ["mnist", "VAN", "2", "0.03", "0.1", "–", "–", "60.0", "50.0"],
    ]
    assert list(table.body.columns[3:5]) == [("Rate", "here"), ("Rate", "paper")]
    assert table.bold.to_numpy().tolist() == [[False] * 3 + [True] * 6, [False] * 9]
    assert table.data is grids  # the whole grid is the CSV


def test_a_grid_without_the_papers_choice_has_dashes_there(grids, reduced):
    table = render(TARGET, grids.assign(published=False), reduced)
    assert list(table.body["A", "paper"]) == ["–", "–"]
    assert not table.bold.to_numpy().any()


@pytest.mark.parametrize(("failure", "sign"), [("diverged", "∞"), ("out_of_memory", "OoM")])
def test_a_choice_that_failed_says_so(grids, real, failure, sign):
    failed = grids[grids["learner"] == "van"].assign(score=np.nan, failure=failure)
    assert list(render(TARGET, failed, real).body["A", "here"]) == [sign]
