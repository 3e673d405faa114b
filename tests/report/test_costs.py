"""Predicted costs: what a cell's terms are, and that they grow as the run does. Nothing here takes the time."""

import copy
import sys

import numpy as np
import pytest

from clpapers.config import Plan, all_papers
from clpapers.report import costs, work
from clpapers.report.work import Sizes

SIZES = Sizes(train=1000, test=100, classes=10, shape=(4, 4, 1))


def cell(learner, **changes):
    """A cell on a stream of random order, batches of 10, an MLP and one evaluation."""
    return {
        "dataset": "toy",
        "order": {"name": "random", "length": None},
        "oracle": {"name": "none"},
        "restriction": {"train": "none"},
        "learner": learner,
        "net": {"name": "cnn", "width": 2},
        "budget": {"optimizer": "sgd", "learning_rate": 0.1, "batch": 10, "replay_batch": 10, "memory": 50},
        "scaling": "unit",
        "evaluation": {"points": 1, "probes": 20, "test": None, "oracles": {}},
        "precision": "float32",
    } | changes


SPLIT = {"order": {"name": "split", "tasks": 5, "length": None}, "oracle": {"name": "chunks"}}


def unit(kind, key, items):
    """A pass takes a second and a tenth of one for each item; a net has 100 parameters."""
    return 100.0 if kind == "parameters" else 0.0 if kind in ("sgd", "adam") else 1 + items / 10


def amounts(spec, seeds=1, sizes=SIZES):
    return work.amounts(spec, sizes, seeds, unit)


def test_single_by_hand():
    """100 steps of 10 items, 2 s each; 20 probes, 3 s; the test's 100 items, 11 s."""
    assert amounts(cell({"name": "single"})) == {"runs": 1, "steps": 100, "passes": 100 * 2 + 3 + 11}


def test_replay_by_hand():
    """As single, and from the second step on 10 items more a step, in a pass of their own or in the stream's."""
    separate = amounts(cell({"name": "er", "forward": "separate"}))
    assert separate["passes"] == pytest.approx(214 + 99 * 2)
    joined = amounts(cell({"name": "er", "forward": "concatenated"}))
    assert joined["passes"] == pytest.approx(14 + 2 + 99 * 3)


def test_gem_by_hand():
    """Five tasks of 20 steps; at each step of task k, k passes of its memories of 10 items."""
    found = amounts(cell({"name": "gem", "margin": 0, "ridge": 0, "write": "ring"}, **SPLIT))
    constraints = 20 * (0 + 1 + 2 + 3 + 4)
    assert found["constraints"] == constraints
    assert found["passes"] == pytest.approx(214 + constraints * 2)
    assert found["parameters"] == 100 * constraints


@pytest.mark.parametrize(("batch", "pools"), [(8, [4, 4, 4, 4, 4]), (40, [4])])
def test_icarl_by_hand(batch, pools):
    """Five chunks of two classes, four items of each: all of a chunk, or of all ten classes, are there at a choice."""
    sizes = Sizes(train=40, test=10, classes=10, shape=(4, 4, 1))
    spec = cell({"name": "icarl", "exemplars": "batch", "space": "features"}, order=SPLIT["order"])
    spec["budget"]["batch"] = batch
    found = amounts(spec, sizes=sizes)
    classes = 10 / len(pools)
    assert found["chosen"] == classes * sum(pools)
    assert found["herded"] == classes * sum(n**2 for n in pools) * 16


def test_icarl_herds_the_new_with_the_exemplars():
    """Five chunks of two classes, twice; of each are kept 10, 5, 3, 2 and 2 at most, which the second epoch meets."""
    sizes = Sizes(train=40, test=10, classes=10, shape=(4, 4, 1))
    order = SPLIT["order"] | {"epochs": 2}
    spec = cell({"name": "icarl", "exemplars": "batch", "space": "logits"}, order=order)
    spec["budget"] |= {"batch": 8, "memory": 20}
    found = amounts(spec, sizes=sizes)
    assert found["chosen"] == 2 * (4 + 8 + 4 + 5 + 3 + 3 + 2 + 2 + 2 + 2)
    assert found["herded"] == 2 * (5 * 4**2 + 8**2 + 8**2 + 7**2 + 6**2 + 6**2) * 10


def test_tests_of_tasks_are_counted():
    """Two shots a task: three tests of its 20 items, 3 s each; after each task all five."""
    found = amounts(cell({"name": "single"}, evaluation=cell({})["evaluation"] | {"shots": 2}, **SPLIT))
    assert found["passes"] == pytest.approx(214 + 5 * 3 * 3 + 5 * 5 * 3)


@pytest.mark.parametrize("name", ["er", "icarl", "single"])
def test_linear_in_seeds(name):
    options = {"er": {"forward": "separate"}, "icarl": {"exemplars": "batch", "space": "logits"}}.get(name, {})
    spec = cell({"name": name} | options, **SPLIT)
    one, three = amounts(spec, 1), amounts(spec, 3)
    assert three.pop("runs") == one.pop("runs") == 1  # what begins once
    assert three == pytest.approx({term: 3 * amount for term, amount in one.items()})


def test_a_stack_steps_once():
    """Small batches of an MLP: the seeds' program is one, so its steps are those of one seed."""
    spec = cell({"name": "single"}, net={"name": "mlp", "hidden": [8]})
    assert amounts(spec, 5)["steps"] == amounts(spec, 1)["steps"]
    assert amounts(spec | {"budget": spec["budget"] | {"batch": 64}}, 5)["steps"] == 5 * 16


def test_epochs_are_as_if_laid_out():
    """Affine in epochs: what is extrapolated from two is what three give."""
    spec = cell({"name": "ewc", "fisher": {"interval": 5, "decay": 0.9}}, **copy.deepcopy(SPLIT))
    spec["order"]["epochs"] = 3
    laid_out = work.LEARNERS["ewc"](work.Run(spec, SIZES, 1, unit))
    assert amounts(spec) == pytest.approx({"runs": 1} | laid_out, rel=0.02)  # probes seen are rounded


def shortened(plan):
    """A cell of each learner of a plan."""
    first = {}
    for each in plan.cells.values():
        first.setdefault(each.spec["learner"]["name"], each)
    return first


def test_every_learner_grows_with_its_stream():
    """No learner's amounts fall where a stream is twice as long; of something there is more."""
    plan = Plan("smoke", all_papers())
    for name, each in shortened(plan).items():
        size = costs.sizes(plan, each.spec["dataset"])
        spec = each.spec | {"order": each.spec["order"] | {"length": None}}
        if "items" in spec["order"]:
            continue
        twice = Sizes(2 * size.train, size.test, size.classes, size.shape, size.attributes)
        short, long = (work.amounts(spec, s, 1, unit) for s in (size, twice))
        assert any(long[term] > short[term] for term in short), name
        assert all(long[term] >= 0.95 * short[term] for term in short), name  # probes seen at a moment are rounded


def measured(plan):
    """Costs of a plan's every learner and net: a second a pass, nothing else."""
    learners, nets, terms = {}, {}, {}

    def note(kind, key, items):
        nets.setdefault(key, {})[kind] = 1.0
        return 1.0

    for each in plan.cells.values():
        name = each.spec["learner"]["name"]
        found = work.amounts(each.spec, costs.sizes(plan, each.spec["dataset"]), len(plan.blocks(each)[0]), note)
        learners.setdefault(name, {}).update(dict.fromkeys(found, 0.0), passes=1.0)
        terms |= work.result_bytes(each.spec, costs.sizes(plan, each.spec["dataset"]))
    job = {"seconds": 1.0, "per_byte": 0.0, "per_item": 0.0}
    jobs = dict.fromkeys(("train", "datasets", "streams", "metrics", "targets"), job)
    return {
        "cpu": {"learners": learners, "nets": nets, "bytes": {"job": 5.0} | dict.fromkeys(terms, 1.0), "jobs": jobs}
    }


@pytest.fixture(scope="module")
def plan():
    return Plan("smoke", ["streaming"])


def test_predicted_is_start_and_terms(plan):
    each = next(c for c in plan.cells.values() if c.spec["learner"]["name"] == "single")
    known = measured(plan)
    terms = work.amounts(each.spec, costs.sizes(plan, each.spec["dataset"]), 1, lambda *asked: 1.0)
    seconds, length = costs.predicted(plan, each, 1, known)
    assert seconds == pytest.approx(1 + terms["passes"])
    assert costs.predicted(plan, each, 2, known) == pytest.approx((1 + 2 * terms["passes"], 5 + 2 * (length - 5)))


def test_unmeasured_is_refused(plan):
    each = next(iter(plan.cells.values()))
    known = measured(plan)
    with pytest.raises(costs.Unmeasured, match="cuda"):
        costs.predicted(plan, each, 1, known, "cuda")
    del known["cpu"]["learners"][each.spec["learner"]["name"]]
    with pytest.raises(costs.Unmeasured, match=each.spec["learner"]["name"]):
        costs.predicted(plan, each, 1, known)


def test_table_says_what_was_not_measured(plan):
    known = measured(plan)
    head, _, *rows = costs.table(plan, known).splitlines()
    assert "GPU" not in head
    assert all(row.split("|")[5].strip()[0].isdigit() for row in rows)
    del known["cpu"]["learners"]["nn1"]
    *_, line = (row for row in costs.table(plan, known).splitlines() if "/table1 " in row)
    assert costs.NOT_MEASURED in line.split("|")[5]
    assert "predicted, one GPU" in costs.table(plan, known | {"cuda": known["cpu"]}).splitlines()[0]


def test_shared_runs_count_once(plan):
    """The whole is no more than the sum of the targets of `all`, and no less than the dearest of them."""
    known = measured(plan)
    wanted = [target for target in plan.targets.values() if not target.spec.get("extra")]
    each = [sum(costs.jobs(plan, target, known).values()) for target in wanted]
    number, unit = costs.table(plan, known).splitlines()[-1].split("|")[5].split()
    whole = float(number) * {"s": 1, "min": 60, "h": 3600}[unit]
    assert 0.95 * max(each) <= whole < 0.95 * sum(each)  # of two digits


def test_sizes_are_of_stand_ins_where_only_those_are_used():
    """Features have as many items as the images that they are of, whatever their classes, up to their own number."""
    smoke, paper = (Plan(scale, ["streaming"]) for scale in ("smoke", "paper"))
    images, features = (costs.sizes(smoke, name) for name in ("cifar100", "cifar100_resnet50"))
    assert (images.train, images.test, images.classes) == (200, 100, 100)
    assert (features.train, features.test, features.classes) == (200, 100, 20)
    assert costs.sizes(paper, "cifar100_resnet50").train == 6000


def test_interpolation():
    """Between the batches that were measured, and beyond the last along its slope, but half its rate at least."""
    seconds = costs.unit({"net": {"learn": {1: 2.0, 11: 4.0}, "sgd": 0.5}})
    assert [seconds("learn", "net", b) for b in (1, 6, 11)] == [2.0, 3.0, 4.0]
    assert seconds("learn", "net", 111) == pytest.approx(4 + 100 * 0.2)
    assert seconds("sgd", "net", 7) == 0.5
    with pytest.raises(costs.Unmeasured, match="answer of net"):
        seconds("answer", "net", 1)


def test_keys_come_apart():
    """Outputs count where a net has no convolutions, and heads never."""
    net = {"name": "resnet18", "width": 4, "head": "joint_embedding", "init": "xavier", "weights": "imagenet"}
    key = work.net_key(net, (3, 8, 8), 7, 5)
    assert key == work.net_key(net | {"head": "linear"}, (3, 8, 8), 9, 5)
    assert work.key_parts(key) == ({"name": "resnet18", "width": 4}, (3, 8, 8), None, 5)
    mlp = {"name": "mlp", "hidden": [3]}
    assert work.key_parts(work.net_key(mlp, (1, 2, 2), 10)) == (mlp, (1, 2, 2), 10, 1)


def test_courses_are_those_of_runs():
    """Steps, task changes and tests as the loop has them."""
    spec = cell({"name": "single"}, **SPLIT)
    run = work.Run(spec, SIZES, 1, unit)
    assert run.steps == 100
    assert len(run.changes) == 4
    assert np.bincount(run.task).tolist() == [20] * 5
    assert run.tests == [(99, 20, -1), (99, 100, -1)]


def test_committed_costs_cover_all_learners():
    """The file under version control has every learner of every paper, with its terms, and every net."""
    known = costs.read()
    plan, met = Plan("laptop", all_papers()), set()
    for each in plan.cells.values():
        kind = each.spec["learner"]["name"], each.spec["learner"].get("exemplars"), str(each.spec["net"])
        if kind not in met:
            met.add(kind)
            costs.predicted(plan, each, len(plan.blocks(each)[0]), known)
    assert {name for name, *_ in met} == set(work.LEARNERS)
    assert all({"machine", "date", "torch", "commit", "command"} <= set(said) for said in known["cpu"]["measured"])


def test_what_work_repeats_of_modules_that_import_torch():
    """They have the same batches of tests, and the same learners train seed by seed."""
    from clpapers.runs import learners, loop
    from clpapers.runs.evaluation import answers

    assert (
        *(answers.BATCH, answers.VALUES),
        loop.SMALL_BATCH,
    ) == (work.TEST_BATCH, work.TEST_VALUES, work.SMALL_BATCH)
    assert {name for name in work.LEARNERS if not learners.find(name).stackable} == set(work.UNSTACKED)


def test_no_torch():
    assert "torch" not in vars(costs)
    assert "torch" not in vars(work)
    assert "clpapers.report.work" in sys.modules


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "0.2 s"), (45, "45 s"), (300, "5 min"), (5399, "90 min"), (12240, "3.4 h"), (432000, "120 h")],
)
def test_durations(seconds, text):
    assert costs.duration(seconds) == text
