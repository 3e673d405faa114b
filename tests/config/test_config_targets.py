"""A paper's file becomes targets."""

from pathlib import Path

import pytest
from tiny_paper import PAPER, SCALE, TEXT, edit, plan

from clpapers.config.refusals import ConfigError

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


OF_TASKS = ["forgetting", "worst_forgetting", "forgetting_by_task", "memory_worst_forgetting", "roc", "seen_unseen_auc"]


@pytest.mark.parametrize("metric", [*OF_TASKS, "average_accuracy", "lca10", "zero_shot_by_task"])
def test_a_metric_of_tasks_is_refused_where_it_is_undefined(metric):
    """Before anything trains: without tests of tasks, and of one task where it takes two."""

    def refused(order, evaluation):
        for old, new in (("{points: 3", f"{{{evaluation}points: 3"), ("[final_accuracy]", f"[{metric}]")):
            edit(PAPER, old, new)
        edit(PAPER, "{name: stf, mu_sigma: 0.05, length: null}", order)
        try:
            plan()
            return None
        except ConfigError as error:
            return str(error).partition(": targets.table1: ")[2]
        finally:
            Path(PAPER).write_text(TEXT[PAPER])

    two, one = (f"{{name: split, tasks: {n}, length: null}}" for n in (2, 1))
    assert refused(two, "shots: 0, ") is None
    assert refused(two, "") == f"metric {metric} needs a number for evaluation.shots, such as 0"
    for order, name in ((one, "split"), ("{name: random, length: null}", "random")):
        said = refused(order, "shots: 0, ")
        assert (said is None) == (metric not in OF_TASKS)
        assert said is None or said.startswith(f"metric {metric} is defined on 2 tasks or more, and order {name} has 1")
    assert refused(two, "shots: 0, ") is None
