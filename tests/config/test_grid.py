"""Grids, and selections of hyper-parameters, become cells."""

import pytest
from tiny_paper import GRID, PAPER, SPLIT, cells, edit, of_table, plan

from clpapers.cli.runs import fill
from clpapers.config.model import SELECTED
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError

pytestmark = pytest.mark.usefixtures("folder")


def test_cells_are_left_out_of_a_grid_by_any_combination_of_levels():
    learners, oracles = ["single", "ewc", "mm"], ["sp2", "sp5", "dom"]
    everything = cells(SPLIT, learners, oracle=oracles)
    without = [{"learner": ["single", "ewc"], "oracle": ["sp5"]}, {"oracle": ["dom"], "learner": ["mm"]}]
    fewer = cells(SPLIT, learners, oracle=oracles, without=without)
    assert everything.keys() - fewer.keys() == {("single", "sp5"), ("ewc", "sp5"), ("mm", "dom")}
    assert all(everything[levels] == cell for levels, cell in fewer.items())


def test_a_left_out_cell_may_be_one_that_could_not_be():
    """It is not even looked at."""
    given = {"oracle": ["sp2", "entropy"]}
    with pytest.raises(ConfigError):
        cells(SPLIT, ["ewc", "mm"], **given)
    left = cells(SPLIT, ["ewc", "mm"], without=[{"learner": ["ewc"], "oracle": ["entropy"]}], **given)
    assert left.keys() == {("ewc", "sp2"), ("mm", "sp2"), ("mm", "entropy")}


def test_a_grid_varies_options_of_the_learners_that_have_them():
    forward = ["separate", "concatenated"]
    edit(PAPER, "ace: {forward: separate}", "ace: {method: gdumb, memory_batch: 5}")
    edit(PAPER, GRID, f"{GRID[:-1]}, learner.forward: {forward}, budget.memory: [5, 6]}}")
    found = plan().targets["tiny/table1"].cells
    factors = [tuple(each.values())[1:] for each, _ in found if each["dataset"] == "mnist"]
    assert factors == [*(("er", way, m) for way in forward for m in (5, 6)), ("ace", 5), ("ace", 6)]
    for each, cell in found:
        other = {"name": "gdumb", "memory_batch": 5}
        wanted = {"name": "er", "forward": each["learner.forward"]} if each["learner"] == "er" else other
        assert cell.spec["learner"] == wanted
        assert cell.spec["budget"]["memory"] == each["budget.memory"]
    edit(PAPER, "memory: [5, 6]}", "memory: [5, 6]}\n    without: [{learner.forward: [separate]}]")
    kept = [each.get("learner.forward") for each, _ in plan().targets["tiny/table1"].cells]
    assert kept == ["concatenated", "concatenated", None, None] * 2


def test_a_selection_trains_every_point_of_the_grid_on_tasks_and_seeds_of_its_own(selecting):
    made = plan()
    search = made.selections["tiny/mnist-er"]
    found = [(cell.spec["budget"]["learning_rate"], cell.spec["learner"]["forward"]) for _, cell in search.points]
    assert found == [(0.1, "separate"), (0.1, "concatenated"), (0.2, "separate"), (0.2, "concatenated")]
    assert {cell.spec["order"]["length"] for _, cell in search.points} == {20}
    assert search.published == {"budget.learning_rate": 0.1, "learner.forward": "separate"}
    for _, cell in search.points:
        assert [path.stem for path in made.results(cell)] == ["seed100"]
    assert str(search.file) == "results/tiny/selection/tiny/mnist-er.json"


def test_a_cell_to_fill_names_what_it_waits_for_and_nothing_else_changes(selecting):
    er, ace = of_table().values()
    assert er.spec["budget"]["learning_rate"] == er.spec["learner"]["forward"] == SELECTED
    assert er.spec["selection"]["name"] == "tiny/mnist-er"
    filled = fill(er.spec, {"budget.learning_rate": 0.2, "learner.forward": "concatenated"})
    assert (filled["budget"]["learning_rate"], filled["learner"]["forward"]) == (0.2, "concatenated")
    assert er.spec["budget"]["learning_rate"] == SELECTED
    edit(PAPER, "use: cross_validated", "use: published")
    usual, same = of_table().values()
    assert same.hash == ace.hash  # has no grid
    values = {"budget.learning_rate": 0.1, "learner.forward": "separate"}
    assert fill(er.spec, values) | {"selection": None} == usual.spec | {"selection": None}
    assert not plan().selections


@pytest.mark.parametrize(
    ("old", "new"),
    [("[0.1, 0.2]", "[0.1, 0.3]"), ("seeds: 100-100", "seeds: 100-101"), ("{length: 20}", "{length: 25}")],
)
def test_what_a_selection_is_made_of_is_part_of_the_hash_of_what_it_fills(selecting, old, new):
    er, ace = of_table().values()
    edit(PAPER, old, new)
    assert [cell.hash == was.hash for cell, was in zip(of_table().values(), (er, ace))] == [False, True]


def test_iterations_are_batches_of_items_of_each_task():
    """However the batch is written: 7 steps of 10 and of 5 items are 70 and 35, and 70 items are the same cell."""
    ten, five, items = (
        cells(SPLIT | order, ["single"], {"budget": {"batch": batch}}, oracle=["sp5"])[("single", "sp5")]
        for order, batch in (({"iterations": 7}, 10), ({"iterations": 7}, 5), ({"items": 70}, 10))
    )
    assert (ten.spec["order"]["items"], five.spec["order"]["items"]) == (70, 35)
    assert items.hash == ten.hash


def test_an_option_with_its_default_is_left_out_so_that_a_cell_keeps_its_hash():
    (usual,) = cells(SPLIT, ["ewc"], oracle=["sp5"]).values()
    edit(PAPER, "half: true", "half: true\n    centres: running")
    ((_, same),) = Plan("real", ["tiny"]).targets["tiny/table1"].cells
    edit(PAPER, "centres: running", "centres: separate")
    ((_, other),) = Plan("real", ["tiny"]).targets["tiny/table1"].cells
    assert usual.hash == same.hash != other.hash
    assert other.spec["learner"]["centres"] == "separate"


def test_a_table_of_selections_needs_a_grid_of_data_sets_and_learners_only(selecting):
    table = "kind: table, measure: selection, render: selection_table, grid: {dataset: [mnist], learner: [er]}"
    edit(PAPER, "use: cross_validated", "use: published")
    edit(PAPER, "  table1:\n", f"  table3:\n    {{title: G, caption: c, section: g, {table}}}\n  table1:\n")
    target = plan().targets["tiny/table3"]
    assert [search.name for _, search in target.selections] == ["tiny/mnist-er"]
    assert not target.cells
