"""A paper's file becomes targets."""

import pytest
from tiny_paper import PAPER, SCALE, edit, plan

pytestmark = pytest.mark.usefixtures("folder")


def test_a_toy_stream_may_be_told_its_tasks():
    edit(PAPER, "measure: stream_classes, render: class_frequency,", "measure: stream_tasks, render: schematic,")
    edit(PAPER, "tasks: 2}, seed: 0}", "tasks: 2}, oracle: {name: split, tasks: 2}, seed: 0}")
    assert plan().targets["tiny/figure1"].spec["streams"][0]["oracle"]["tasks"] == 2


def test_seeds_are_the_targets_or_the_papers_or_the_scales():
    def seeds():
        return plan().targets["tiny/table1"].seeds

    assert seeds() == range(0, 4)
    edit(PAPER, "paper: tiny\n", "paper: tiny\nseeds: 0-9\n")
    assert seeds() == range(0, 10)
    edit(SCALE, "  tiny:\n", "  tiny:\n    seeds: 0-5\n")
    assert seeds() == range(0, 6)
    edit(PAPER, "    caption: Both.\n", "    caption: Both.\n    seeds: 1-2\n")
    assert seeds() == range(1, 3)


def measure_of_tasks(metric, order, evaluation="shots: 0, "):
    """Let Table 1 measure a metric of tasks on another order."""
    for old, new in (("{points: 3", f"{{{evaluation}points: 3"), ("[final_accuracy]", f"[{metric}]")):
        edit(PAPER, old, new)
    edit(PAPER, "{name: stf, mu_sigma: 0.05, length: null}", f"{{{order}, length: null}}")


@pytest.mark.parametrize(
    ("metric", "order"),
    [
        ("forgetting", "name: split, tasks: 2"),
        *(("lca10", order) for order in ("name: split, tasks: 1", "name: random")),
        *(("average_accuracy", order) for order in ("name: split, tasks: 1", "name: random")),
        ("zero_shot_by_task", "name: random"),
    ],
)
def test_a_metric_of_tasks_is_planned_where_it_is_defined(metric, order):
    measure_of_tasks(metric, order)
    assert plan().targets["tiny/table1"].cells
