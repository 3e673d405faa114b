"""Gradients early in a task: a row a repetition, ratios taken repetition by repetition."""

import by_hand

from clpapers.metrics.gradients import METRICS, measure

GRADIENTS = {"likelihood": [[6, 3], [8, 2]], "prior": [[0, 1], [0, 4]], "entropy": [0.25, 0.75]}
RUN = {"seed": 5, "learner": {"gradients": GRADIENTS}}
FACTORS = {"dataset": "mnist", "learner": "vcl", "order": {"name": "split_ordered", "tasks": 2}}


def rows(metric, *columns):
    found = measure({"metrics": METRICS}, [(FACTORS, "abc", {"seeds": [RUN]})])
    assert set(found["order"]) == {"split_ordered"}
    return found.loc[found["metric"] == metric, list(columns)].to_numpy().tolist()


test_by_hand = by_hand.tests(globals())


def test_only_what_is_asked_for_is_measured():
    found = measure({"metrics": ["gradient_ratio"]}, [(FACTORS, "abc", {"seeds": [RUN]})])
    assert set(found["metric"]) == {"gradient_ratio"}
