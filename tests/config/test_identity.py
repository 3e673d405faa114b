"""What a learner looks at is hashed, and nothing else."""

import functools
import itertools
import json
import operator
from pathlib import Path

import numpy as np
import pytest
import yaml
from tiny_paper import MIXING, RANDOM, SPLIT, cells, distinct

from clpapers.config import identity
from clpapers.config.plan import Plan
from clpapers.streams import oracles, orders
from clpapers.streams.stream import batches

pytestmark = pytest.mark.usefixtures("folder")
ORDERS = {"split": SPLIT, "random": RANDOM, "offline": MIXING[1], "dominant": MIXING[2]}
VIEWS = ["single_head", "es", "es_ed", "ea", "td", "td_es", "td_es_ed"]


def test_an_oracle_goes_by_its_name_or_its_description():
    named = cells(SPLIT, ["ewc"], oracle=["sp2"])["ewc", "sp2"]
    described = cells(SPLIT, ["ewc"], defaults={"oracle": {"name": "split", "tasks": 2}})["ewc",]
    assert named == described
    assert named.spec["oracle"] == {"name": "split", "tasks": 2, "aligned": True}


CASES = [
    (json.loads(json.dumps(case).replace("LEARNER", learner)), order)
    for case in yaml.safe_load(Path(__file__).with_name("identity.yaml").read_text())
    for learner, order in itertools.product(case.get("each", [""]), case["orders"])
]


@pytest.mark.parametrize(("case", "order"), CASES)
def test_cells_are_one_where_their_learners_see_the_same(case, order):
    factors = {name: case[name] for name in ("oracle", "restriction") if name in case}
    found = cells(ORDERS[order], case["learners"], case.get("defaults", {}), **factors)
    assert distinct(found) == case.get("distinct", distinct(found))
    named = {" ".join(levels): cell for levels, cell in found.items()}
    holds = [(cell, key, value) for cell in found.values() for key, value in case.get("all", {}).items()]
    holds += [
        (named[name], key, value) for name, values in case.get("cells", {}).items() for key, value in values.items()
    ]
    for cell, key, value in holds:
        assert functools.reduce(operator.getitem, key.split("."), cell.spec) == value
    for same in case.get("same", []):
        assert all(named[name].hash == named[same[0]].hash for name in same)
    for one, other in case.get("apart", []):
        assert named[one].hash != named[other].hash
    assert all(cell.test_restriction == seen for cell, seen in zip(found.values(), case.get("seen", [])))
    if "evaluated" in case:
        assert {(cell.test_restriction, *sorted(cell.spec["evaluation"]["oracles"])) for cell in found.values()} == {
            ("none", *case["evaluated"])
        }


@pytest.mark.parametrize(("tasks", "parts", "changes"), [(5, 10, True), (5, 5, False), (2, 5, False), (10, 5, False)])
def test_several_tasks_in_each_chunk_change_with_every_batch(tasks, parts, changes):
    """Not where classes are uneven, as MNIST's are, or known by files alone."""
    spec = {"order": {"name": "split", "tasks": tasks, "length": None}, "budget": {"batch": 32}}
    oracle = {"name": "split", "tasks": parts}
    assert identity.always_changing(spec, oracle | {"aligned": True}, even=True) == changes
    assert not identity.always_changing(spec, oracle | {"aligned": True}, even=False)
    assert not identity.always_changing(spec, oracle | {"aligned": False}, even=True)


@pytest.mark.parametrize("tasks", [2, 4])
@pytest.mark.parametrize("oracle", [{"name": "random_tasks", "tasks": 2}, {"name": "split", "tasks": 8}])
def test_what_is_said_to_change_always_does(tasks, oracle):
    """On streams as they are made, with a last batch of a few items in each chunk."""
    order, labels = {"name": "split", "tasks": tasks, "length": None}, np.repeat(np.arange(8), 8 * 32 + tasks // 2)
    assert identity.always_changing({"order": order, "budget": {"batch": 32}}, oracle, even=True)
    for seed in range(20):
        stream = orders.make(order, labels, seed)
        ends = batches(stream.boundaries, len(stream.indices), 32, 1)
        here = labels[stream.indices]
        told = oracles.identify(oracle, order, stream, here, here, 8, seed)
        assert oracles.task_changes(told.train, ends)[1:].all()


@pytest.mark.parametrize(("learner", "runs"), [("single", 1), ("ewc", 3)])
def test_present_classes_restrict_training_whatever_the_oracle(learner, runs):
    """What looks at no task change is then one run under all oracles; without a restriction, another."""
    present = {"restriction": {"train": "present"}}
    found = cells(SPLIT, [learner], present, oracle=["sp2", "sp5", "rand"], restriction=["es", "ea"])
    assert distinct(found) == runs
    assert {cell.spec["restriction"]["train"] for cell in found.values()} == {"present"}
    assert found[learner, "rand", "ea"].test_restriction == "none"
    found = cells(SPLIT, [learner], present, oracle=["rand"], restriction=["single_head", "es"])
    assert found[learner, "rand", "single_head"].spec["restriction"] == {"train": "none"}
    assert distinct(found) == 2


@pytest.mark.parametrize("learner", ["single", "ewc", "mm"])
def test_training_without_a_mask_is_the_unrestricted_run_seen_in_many_ways(learner):
    """With the identifiers that the restriction asks for."""
    found, masked = (
        cells(SPLIT, [learner], {"restriction": {"train": train}}, oracle=["sp2"], restriction=VIEWS[:4])
        for train in ("none", "present")
    )
    plain, es, es_ed, _ = found.values()
    assert distinct(found) == 1
    assert plain.spec["restriction"]["train"] == "none"
    assert masked[learner, "sp2", "single_head"].hash == es.hash
    assert masked[learner, "sp2", "es"].hash != es.hash
    assert es_ed.test_restriction == masked[learner, "sp2", "es"].test_restriction.replace("oracle", "independent")


def test_views_of_one_run_are_different_targets():
    """They share the run and not the measured numbers."""
    digests = set()
    for name in ("es", "es_ed", "ea"):
        cells(SPLIT, ["ewc"], oracle=["sp2"], restriction=[name])
        digests.add(Plan("real", ["tiny"]).targets["tiny/table1"].measured_digest)
    assert len(digests) == 3
