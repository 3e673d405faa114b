"""A paper's file becomes targets."""

from pathlib import Path

import pytest
from tiny_paper import GRID, PAPER, SCALE, TEXT, edit, plan

from clpapers.config.refusals import ConfigError

pytestmark = pytest.mark.usefixtures("folder")


def test_a_toy_stream_may_be_told_its_tasks():
    edit(PAPER, "measure: stream_classes, render: class_frequency,", "measure: stream_tasks, render: schematic,")
    edit(PAPER, "tasks: 2}, seed: 0}", "tasks: 2}, oracle: {name: split, tasks: 2}, seed: 0}")
    assert plan().targets["tiny/figure1"].spec["streams"][0]["oracle"]["tasks"] == 2
    edit(PAPER, "oracle: {name: split, tasks: 2}", "oracle: {name: split, tasks: 3}")
    with pytest.raises(ConfigError, match=r"oracle\.tasks: 3 is more than the 2 classes"):
        plan()


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


DECLARED = "A: {met: false, because: fonts differ}"


def test_what_is_declared_of_a_data_set_or_a_target_reaches_the_target_and_no_cell():
    before = plan().targets["tiny/table1"]
    edit(PAPER, "{net: {name: mlp, hidden: [4]}}", f"{{net: {{name: mlp, hidden: [4]}}, desiderata: {{{DECLARED}}}}}")
    edit(PAPER, GRID, GRID + "\n    desiderata: {C: {met: true, because: no one asks}}")
    after = plan().targets["tiny/table1"]
    fonts, asked = {"met": False, "because": "fonts differ"}, {"met": True, "because": "no one asks"}
    assert after.spec["desiderata"] == {"mnist": {"A": fonts, "C": asked}, "cifar10": {"C": asked}}
    assert [cell for _, cell in after.cells] == [cell for _, cell in before.cells]
    assert after.measured_digest == before.measured_digest
    assert after.digest != before.digest
    assert "desiderata" not in plan().targets["tiny/figure1"].spec


def test_a_targets_declaration_stands_above_its_data_sets():
    edit(PAPER, "{net: {name: mlp, hidden: [4]}}", f"{{net: {{name: mlp, hidden: [4]}}, desiderata: {{{DECLARED}}}}}")
    edit(PAPER, GRID, GRID + "\n    desiderata: {A: {met: true, because: one font}}")
    declared = plan().targets["tiny/table1"].spec["desiderata"]
    assert [each["A"] for each in declared.values()] == [{"met": True, "because": "one font"}] * 2


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (GRID, GRID + "\n    desiderata: {F: {met: true, because: x}}", "targets.table1.desiderata: unknown key 'F'; "
         "allowed: A, B, C, D, E"),
        (GRID, GRID + "\n    desiderata: {B: {met: true}}", "targets.table1.desiderata.B: 'because' is missing"),
        (GRID, GRID + "\n    desiderata: {B: {met: maybe, because: x}}", "targets.table1.desiderata.B.met: 'maybe' is "
         "not of type boolean"),
        ("hidden: [4]}}", "hidden: [4]}, desiderata: {B: {met: true, because: x}}}", "datasets.mnist.desiderata: "
         "unknown key 'B'; allowed: A"),
        ("nets: [mnist]}", f"nets: [mnist], desiderata: {{{DECLARED}}}}}", "targets.table2.desiderata: the target "
         "has no runs to declare them for; leave it out"),
    ],
)  # fmt: skip
def test_a_bad_declaration_is_refused_in_one_line(old, new, line):
    edit(PAPER, old, new)
    with pytest.raises(ConfigError) as refusal:
        plan()
    assert str(refusal.value) == f"{PAPER}: {line}"
