"""What a build says before it begins."""

from pathlib import Path

from clpapers.builds.preparation import rowless
from clpapers.config.plan import Plan

ROOT = Path(__file__).parents[2]


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
