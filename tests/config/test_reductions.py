"""How a target departs from the paper's scale."""

import pytest
from tiny_paper import GRID, PAPER, SCALE, edit, plan

from clpapers.config.plan import Plan
from clpapers.config.reductions import reductions

pytestmark = pytest.mark.usefixtures("folder")


def test_reductions_tell_each_difference_from_the_papers_scale_once():
    edit(SCALE, "{order: {length: 30}}", "{order: {length: 30}, net: {hidden: [2]}, budget: {memory: 5}}")
    ours, theirs = plan().targets, Plan("real", ["tiny"]).targets
    assert reductions(ours["tiny/table1"], theirs["tiny/table1"]) == [
        "mnist: order.length 30 (paper: all), budget.memory 5 (paper: 10), net.hidden [2] (paper: [4])"
    ]
    assert reductions(ours["tiny/figure1"], theirs["tiny/figure1"]) == ["chunks 4 (paper: 5)"]
    assert reductions(ours["tiny/table2"], theirs["tiny/table2"]) == ["net.hidden [2] (paper: [4])"]


def test_a_cell_is_compared_with_its_own_counterpart():
    """Where a scale leaves cells out, the others are still compared with themselves, and the lack is told."""
    edit(SCALE, "targets: {figure1: {chunks: 4}}", "targets: {table1: {without: [{learner: [er], dataset: [mnist]}]}}")
    edit(
        SCALE,
        "mnist: {order: {length: 30}}",
        "cifar10: {budget: {memory: 5}, learners: {ace: {cell: {budget: {memory: 6}}}}}",
    )
    ours, theirs = plan().targets["tiny/table1"], Plan("real", ["tiny"]).targets["tiny/table1"]
    assert reductions(ours, theirs) == [
        "3 cells (paper: 4)",
        "cifar10: budget.memory 5 (paper: 10), budget.memory 6 (paper: 7)",
    ]


def test_a_level_that_the_paper_does_not_have_is_told_and_so_is_what_else_differs():
    edit(PAPER, "ace: {forward: separate}", "ace: {method: gdumb, memory_batch: 5}")
    edit(PAPER, GRID, f"{GRID[:-1]}, learner.forward: [separate, concatenated], budget.memory: [5, 6]}}")
    edit(
        SCALE,
        "{figure1: {chunks: 4}}",
        "{table1: {grid: {learner.forward: [concatenated], budget.memory: [3]}, cell: {scaling: unit}}}",
    )
    ours, theirs = plan().targets["tiny/table1"], Plan("real", ["tiny"]).targets["tiny/table1"]
    assert reductions(ours, theirs) == [
        "4 cells (paper: 12)",
        "budget.memory 3 (paper: 5, 6)",
        "scaling unit (paper: symmetric)",
        "mnist: order.length 30 (paper: all)",
    ]


def test_what_does_not_hold_of_all_data_sets_names_those_that_it_holds_of():
    """MNIST is shortened, both have less memory; CIFAR-10 has the name that the target gives it."""
    edit(SCALE, "mnist: {order: {length: 30}}", "mnist: {order: {length: 30}}, cifar10: {scaling: unit}")
    edit(SCALE, "{figure1: {chunks: 4}}", "{table1: {names: {cifar10: CIFAR-10}, cell: {evaluation: {probes: 5}}}}")
    ours, theirs = plan().targets["tiny/table1"], Plan("real", ["tiny"]).targets["tiny/table1"]
    assert reductions(ours, theirs) == [
        "evaluation.probes 5 (paper: 10)",
        "mnist: order.length 30 (paper: all)",
        "CIFAR-10: scaling unit (paper: symmetric)",
    ]


def test_the_papers_scale_itself_is_no_reduction():
    for target in Plan("real", ["tiny"]).targets.values():
        assert reductions(target, target) == []
