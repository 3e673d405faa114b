"""What a learner looks at is hashed, and nothing else."""

import numpy as np
import pytest
from tiny_paper import EVALUATED, MIXING, ORACLES, RANDOM, SPLIT, cells, distinct

from clpapers.config import identity
from clpapers.config.plan import Plan
from clpapers.streams import oracles, orders
from clpapers.streams.stream import batches

pytestmark = pytest.mark.usefixtures("folder")


def test_an_oracle_goes_by_its_name_or_its_description():
    named = cells(SPLIT, ["ewc"], oracle=["sp2"])["ewc", "sp2"]
    described = cells(SPLIT, ["ewc"], defaults={"oracle": {"name": "split", "tasks": 2}})["ewc",]
    assert named == described
    assert named.spec["oracle"] == {"name": "split", "tasks": 2, "aligned": True}


def test_who_looks_at_no_task_is_one_cell_under_all_oracles():
    oracles = [name for name in ORACLES if name != "entropy"]
    for order in (SPLIT, RANDOM):
        found = cells(order, ["single", "er", "rand"], oracle=oracles)
        assert distinct(found) == 3
        for cell in found.values():
            assert cell.test_restriction == "none"
            assert cell.spec["oracle"] == {"name": "none"}
            assert cell.spec["restriction"] == {"train": "none"}
            assert set(cell.spec["evaluation"]["oracles"]) == {*EVALUATED, "sp2-unaligned", "sp5-unaligned"}


@pytest.mark.parametrize("learner", ["ewc", "si"])
def test_one_task_makes_a_regulariser_the_plain_net(learner):
    found = cells(SPLIT, ["single", learner], oracle=["none", "sp1", "sp2"])
    assert found[learner, "none"] == found[learner, "sp1"] == found["single", "sp1"]
    assert found["single", "sp1"].spec["learner"] == {"name": "single"}
    assert found[learner, "sp2"] not in (found[learner, "sp1"], found["single", "sp2"])
    assert found[learner, "sp2"].spec["evaluation"]["oracles"] == {}


@pytest.mark.parametrize("order", MIXING)
@pytest.mark.parametrize("learner", ["icarl", "gr"])
def test_where_every_batch_mixes_the_tasks_it_is_one_cell_under_all_of_several(learner, order):
    found = cells(order, [learner], oracle=["sp2", "sp5", "dom", "rand", "sp1"])
    one_task = found.pop((learner, "sp1"))
    assert distinct(found) == 1
    assert found[learner, "sp2"].spec["oracle"] == {"name": "mixed"}
    assert one_task.hash != found[learner, "sp2"].hash
    assert distinct(cells(SPLIT, [learner], oracle=EVALUATED)) == 4


@pytest.mark.parametrize("order", MIXING)
def test_changes_at_every_batch_make_a_regulariser_the_plain_net(order):
    found = cells(order, ["single", "ewc", "si"], oracle=["sp2", "sp5", "dom", "rand", "sp1"])
    assert distinct(found) == 1
    assert found["ewc", "sp5"].spec["learner"] == {"name": "single"}
    assert found["ewc", "sp5"].spec["oracle"] == {"name": "none"}


def test_tasks_at_random_change_with_every_batch_that_is_large_enough():
    found = cells(SPLIT, ["single", "ewc", "icarl"], {"budget": {"batch": 32}}, oracle=["sp2", "rand"])
    assert found["ewc", "rand"] == found["single", "rand"]
    assert found["icarl", "rand"].spec["oracle"] == {"name": "mixed"}
    assert found["ewc", "sp2"].spec["learner"]["name"] == "ewc"
    small = cells(SPLIT, ["single", "ewc"], {"budget": {"batch": 31}}, oracle=["rand"])
    assert distinct(small) == 2


@pytest.mark.parametrize(("tasks", "parts", "changes"), [(5, 10, True), (5, 5, False), (2, 5, False), (10, 5, False)])
def test_several_tasks_in_each_chunk_change_with_every_batch(tasks, parts, changes):
    """Not where classes are uneven, as MNIST's are, or known by files alone."""
    order = {"name": "split", "tasks": tasks, "length": None}
    oracle = {"name": "split", "tasks": parts}
    spec = {"order": order, "budget": {"batch": 32}}
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


@pytest.mark.parametrize("learner", ["gr_by_tasks", "mm", "randmm"])
def test_who_looks_at_the_tasks_themselves_is_a_cell_for_each_oracle(learner):
    for order in (RANDOM, SPLIT):
        found = cells(order, [learner], oracle=EVALUATED)
        assert distinct(found) == 4
        assert all(cell.spec["evaluation"]["oracles"] == {} for cell in found.values())


@pytest.mark.parametrize("learner", ["single", "ewc", "si", "icarl", "gr", "mm"])
def test_restrictions_of_the_test_alone_share_their_training(learner):
    names = ["single_head", "es", "es_ed", "ea", "td", "td_es", "td_es_ed"]
    found = {name: cell for (_, _, name), cell in cells(SPLIT, [learner], oracle=["sp2"], restriction=names).items()}
    views = {name: cell.test_restriction for name, cell in found.items()}
    assert views == {
        "single_head": "none",
        "es": "oracle",
        "es_ed": "independent",
        "ea": "none",
        "td": "oracle",
        "td_es": "data",
        "td_es_ed": "independent",
    }
    for group in (["es", "es_ed", "ea"], ["td", "td_es", "td_es_ed"]):
        assert {found[name].hash for name in group} == {found[group[0]].hash}
        assert found[group[0]].spec["restriction"] == {"train": "oracle"}
    assert len({found[name].hash for name in ("single_head", "es", "td")}) == 3
    assert [found[name].spec["oracle"]["aligned"] for name in ("es", "td") if learner != "single"] in (
        [],
        [True, False],
    )


def test_who_cannot_be_restricted_is_one_run_seen_in_many_ways():
    """Of the oracle in the view's name: aligned with the data's own classes, or not."""
    names = ["single_head", "es", "es_ed", "ea", "td", "td_es", "td_es_ed"]
    for learner in ("er", "rand"):
        found = cells(SPLIT, [learner], oracle=["sp2", "dom"], restriction=names)
        assert distinct(found) == 1
        assert {name: cell.test_restriction for (_, oracle, name), cell in found.items() if oracle == "sp2"} == {
            "single_head": "none",
            "es": "sp2/oracle",
            "es_ed": "sp2/independent",
            "ea": "none",
            "td": "sp2-unaligned/oracle",
            "td_es": "sp2-unaligned/data",
            "td_es_ed": "sp2-unaligned/independent",
        }
        assert (
            found[learner, "dom", "es"].test_restriction == found[learner, "dom", "td"].test_restriction == "dom/oracle"
        )


@pytest.mark.parametrize("learner", ["single", "ewc", "icarl", "mm"])
def test_random_tasks_let_all_classes_compete(learner):
    found = cells(SPLIT, [learner], oracle=["rand"], restriction=["single_head", "es", "td"])
    assert distinct(found) == 1
    assert found[learner, "rand", "es"].spec["restriction"] == {"train": "none"}


@pytest.mark.parametrize(("learner", "runs"), [("single", 1), ("ewc", 3)])
def test_present_classes_restrict_training_whatever_the_oracle(learner, runs):
    """What looks at no task change is then one run under all oracles; without a restriction, another."""
    defaults = {"restriction": {"train": "present"}}
    found = cells(SPLIT, [learner], defaults, oracle=["sp2", "sp5", "rand"], restriction=["es", "ea"])
    assert distinct(found) == runs
    assert {cell.spec["restriction"]["train"] for cell in found.values()} == {"present"}
    assert found[learner, "rand", "ea"].test_restriction == "none"
    found = cells(SPLIT, [learner], defaults, oracle=["rand"], restriction=["single_head", "es"])
    assert found[learner, "rand", "single_head"].spec["restriction"] == {"train": "none"}
    assert distinct(found) == 2


@pytest.mark.parametrize("learner", ["single", "ewc", "mm"])
def test_training_without_a_mask_is_the_unrestricted_run_seen_in_many_ways(learner):
    """With the identifiers that the restriction asks for."""
    defaults = {"restriction": {"train": "none"}}
    found = cells(SPLIT, [learner], defaults, oracle=["sp2"], restriction=["single_head", "es", "es_ed", "ea"])
    assert distinct(found) == 1
    assert {cell.spec["restriction"]["train"] for cell in found.values()} == {"none"}
    masked = cells(
        SPLIT, [learner], {"restriction": {"train": "present"}}, oracle=["sp2"], restriction=["es", "single_head"]
    )
    assert masked[learner, "sp2", "single_head"].hash == found[learner, "sp2", "es"].hash
    assert masked[learner, "sp2", "es"].hash != found[learner, "sp2", "es"].hash
    assert found[learner, "sp2", "es_ed"].test_restriction == masked[learner, "sp2", "es"].test_restriction.replace(
        "oracle", "independent"
    )


def test_views_of_one_run_are_different_targets():
    """They share the run and not the measured numbers."""
    digests = set()
    for name in ("es", "es_ed", "ea"):
        cells(SPLIT, ["ewc"], oracle=["sp2"], restriction=[name])
        target = Plan("real", ["tiny"]).targets["tiny/table1"]
        digests.add(target.measured_digest)
    assert len(digests) == 3
