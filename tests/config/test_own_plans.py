"""Methods from outside of every shape, in all papers: each is planned, job by job, as a build plans it."""

import re
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clpapers.builds.preparation import rowless
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.graph import user_methods

ROOT = Path(__file__).parents[2]
TEXT = """\
from clpapers import Learner

DECLARATION = {declaration}


class Mine(Learner): ...
"""
USES = [(), ("changes",), ("tasks",), ("competing",), ("changes", "tasks", "competing")]
PARTS = {
    "memory_of_classes": st.booleans(),
    "stackable": st.booleans(),
    "tasks_once": st.booleans(),
    "answers_by_task": st.booleans(),
    "own_nets": st.booleans(),
    "uses_batch": st.booleans(),
    "needs": st.sampled_from([{}, {"net.name": ["mlp"]}, {"oracle.name": ["split", "chunks"]}, {"budget.batch": [10]}]),
    "grid": st.sampled_from([{}, {"budget.learning_rate": [0.1, 0.03], "learner.strength": [1.0, 2.0]}]),
}


def written(folder, uses=(), **parts):
    file = folder / "mine.py"
    options = {"strength": {"type": "number", "default": 1.0}}
    file.write_text(TEXT.format(declaration=repr({"options": options, "uses": list(uses)} | parts)))
    user_methods.methods.copied.cache_clear()
    return file


@given(uses=st.sampled_from(USES), parts=st.fixed_dictionaries({}, optional=PARTS))
@example(uses=(), parts={})
@example(uses=USES[-1], parts={})
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_it_declares_every_paper_is_planned_with_it_and_without_needs_has_a_row_of_it(tmp_path, uses, parts):
    file = written(tmp_path, uses, **parts)
    told = user_methods.placement(Plan("smoke", all_papers(), methods=[str(file)]), "mine")
    rows = int(re.match(r"a row in (\d+) of the \d+ tables", told[0])[1])
    assert rows or parts.get("needs") or parts.get("memory_of_classes"), (told, parts)
    assert parts or set(all_papers()) <= set(re.findall(r"\w+", told[0]))


def test_where_the_batch_is_a_task_no_change_is_taken_for_granted(tmp_path):
    """How many items of which classes a batch has, its stream tells, and the run is one under its own oracle."""
    file = written(tmp_path, ["changes"])
    cells = [cell.spec for cell in Plan("smoke", ["desiderata"], methods=[str(file)]).cells.values()]
    mine = [spec for spec in cells if spec["learner"]["name"] == "mine" and spec["budget"]["batch"] == "task"]
    assert {spec["oracle"]["name"] for spec in mine} == {"chunks"}


def test_targets_of_one_method_are_named_where_a_method_from_outside_is_given():
    plan = Plan("smoke", ["rules", "stf"], methods=[str(ROOT / "examples/finetune.py")])
    (line,) = rowless(plan, plan.targets.values())
    named = line.partition(":")[0].split(", ")
    for name, target in plan.targets.items():
        learners = {factors["learner"] for factors, _ in target.cells}
        assert (name in named) == (len(learners) == 1), name
        assert name not in named or "own" not in target.spec
    assert len(named) < len(plan.targets)
    assert rowless(Plan("smoke", ["rules", "stf"]), plan.targets.values()) == []
