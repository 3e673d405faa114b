"""Gradients early in a task: a row a repetition, ratios taken repetition by repetition."""

import numpy as np
import pytest

from clpapers.metrics.gradients import METRICS, measure

GRADIENTS = {"likelihood": [[6, 3], [8, 2]], "prior": [[0, 1], [0, 4]], "entropy": [0.25, 0.75]}


@pytest.fixture
def rows():
    run = {"seed": 5, "learner": {"gradients": GRADIENTS}}
    factors = {"dataset": "mnist", "learner": "vcl", "order": {"name": "split_ordered", "tasks": 2}}
    return measure({"metrics": METRICS}, [(factors, "abc", {"seeds": [run]})])


def test_every_repetition_of_every_batch_is_a_row(rows):
    assert set(rows["order"]) == {"split_ordered"}
    likelihood = rows[rows["metric"] == "likelihood_gradient"]
    assert list(zip(likelihood["repetition"], likelihood["time"])) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert list(likelihood["value"]) == [6, 3, 8, 2]


def test_ratios_are_of_one_repetition_and_infinite_where_the_prior_pulls_nowhere(rows):
    ratios = rows[rows["metric"] == "gradient_ratio"].set_index(["repetition", "time"])["value"]
    assert list(ratios[:, 1]) == [np.inf, np.inf]
    assert list(ratios[:, 2]) == [3, 0.5]


def test_the_entropy_is_one_number_a_repetition(rows):
    entropy = rows[rows["metric"] == "mean_predictive_entropy"]
    assert list(entropy["value"]) == [0.25, 0.75]
    assert entropy["time"].isna().all()


def test_only_what_is_asked_for_is_measured():
    run = {"seed": 5, "learner": {"gradients": GRADIENTS}}
    rows = measure({"metrics": ["gradient_ratio"]}, [({}, "abc", {"seeds": [run]})])
    assert set(rows["metric"]) == {"gradient_ratio"}
