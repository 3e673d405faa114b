"""How a cell's values lie over each other."""

import pytest
from tiny_paper import PAPER, edit, plan

from clpapers.config.layers import merge

pytestmark = pytest.mark.usefixtures("folder")


STF = {"order": {"name": "stf", "mu_sigma": 0.05, "length": 30}}


@pytest.mark.parametrize(
    ("over", "merged"),
    [
        ({"order": {"length": 5}}, {"name": "stf", "mu_sigma": 0.05, "length": 5}),
        ({"order": {"name": "split", "tasks": 2}}, {"name": "split", "tasks": 2, "length": 30}),
        ({"order": {"name": "random"}}, {"name": "random", "length": 30}),
        ({"order": {"name": "stf", "length": None}}, {"name": "stf", "mu_sigma": 0.05, "length": None}),
        ({}, {"name": "stf", "mu_sigma": 0.05, "length": 30}),
    ],
)
def test_a_new_name_keeps_only_the_options_it_takes(over, merged):
    before = repr(STF)
    assert merge(STF, over) == {"order": merged}
    assert repr(STF) == before


def test_lists_and_scalars_are_replaced_and_mappings_merged():
    assert merge({"a": [1, 2], "b": {"x": 1, "y": 2}, "c": 3}, {"a": [4], "b": {"y": 5}, "d": 6}) == {
        "a": [4],
        "b": {"x": 1, "y": 5},
        "c": 3,
        "d": 6,
    }


def test_the_grid_lies_over_the_target_over_the_data_set_over_the_defaults():
    edit(PAPER, "mnist: {net", "mnist: {budget: {memory: 20}, net")
    edit(PAPER, "    grid: {", "    cell: {budget: {batch: 4}}\n    grid: {budget.replay_batch: [1], ")
    (spec,) = [
        c.spec for f, c in plan().targets["tiny/table1"].cells if (f["dataset"], f["learner"]) == ("mnist", "er")
    ]
    assert spec["budget"] == {"optimizer": "sgd", "learning_rate": 0.1, "batch": 4, "replay_batch": 1, "memory": 20}


def test_a_learner_may_bring_its_own_piece_of_the_cell():
    memory = {
        (factors["dataset"], factors["learner"]): cell.spec["budget"]["memory"]
        for factors, cell in plan().targets["tiny/table1"].cells
    }
    assert memory == {("mnist", "er"): 10, ("mnist", "ace"): 10, ("cifar10", "er"): 10, ("cifar10", "ace"): 7}
