"""The loop: seeds do not depend on their stack mates, runs repeat exactly, results mean what their docstring says."""

import dataclasses
import json
import re

import numpy as np
import pytest
import tiny
import torch
from tiny import CHUNKS, CPU, DOMAINS, OF_ONE_NET, OPTIONS, SPLIT, VARIANTS, Way, assert_same, cell, course, split, told

from clpapers.runs import loop
from clpapers.streams import orders

DESCENDS = {"single", "er", "mir", "gmed", "ace", "cbrs", "gdumb", "ewc", "si", "mas", "rwalk", "a_gem", "s_gem", "gem"}
NOTES = """
    def __init__(self, setting):
        super().__init__(setting)
        self.learnt, self.changes, self.asked = [], [], []

    def task_change(self, t):
        self.changes.append((t, len(self.learnt)))

    def observe(self, t, x, y):
        self.learnt.append((x, y.clone()))
        return super().observe(t, x, y)

    def scores(self, x, tasks):
        self.asked.append((x, tasks))
        return super().scores(x, tasks)

    def report(self, s):
        return vars(self)
"""


@pytest.fixture
def met(data, written):
    """The result of SINGLE on a stream, and the learner's notes of what it met."""

    def of(spec, stream):
        (result,) = loop.train(spec | {"learner": written(NOTES)}, data, {stream.seed: stream}, CPU)
        return result, result["learner"]

    return of


def assert_alone_as_together(spec, data, streams):
    """Each seed's result is the same alone, in a stack of three, and in another order."""
    shuffled = [2, 1]
    whole, part = (tiny.stacked(spec, data, {seed: streams[seed] for seed in seeds}) for seeds in (streams, shuffled))
    for seed, result in enumerate(whole):
        (alone,) = tiny.stacked(spec, data, {seed: streams[seed]})
        assert_same(alone, result)
        if seed in shuffled:
            assert_same(alone, part[shuffled.index(seed)])


def stacks(said):
    """The first and the last seed of each stack that was trained, by the lines of progress."""
    return list(dict.fromkeys(re.findall(r"seeds (\d+-\d+)", said)))


# --- seeds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "options", "net"),
    [(*given, "mlp") for given in VARIANTS]
    + [(*given, "cnn") for given in VARIANTS if tiny.METHODS[given[0]].stackable and given[0] not in OF_ONE_NET],
)
def test_a_seed_does_not_depend_on_its_stack_mates(learner, options, net, data, streams):
    assert_alone_as_together(cell(learner, options, net, oracle=told(learner)), data, streams)


@pytest.mark.parametrize(("learner", "options"), VARIANTS)
def test_twice_the_same_bytes_whatever_generators_and_fresh_memory_hold(learner, options, data, streams):
    """Fresh memory is NaN in one of two runs; on a GPU it never is (`process.prepare`)."""
    spec = cell(learner, options, "mlp" if learner in OF_ONE_NET else "cnn", oracle=told(learner))
    spec["precision"] = "float32"
    before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    found = []
    try:
        for filled in (True, False):
            torch.utils.deterministic.fill_uninitialized_memory = filled
            torch.rand(1), np.random.rand(1)
            (result,) = loop.train(spec, data, {0: streams[0]}, CPU)
            found.append(json.dumps(result, allow_nan=False))
            assert result["memory"]["items"] == sum(result["memory"]["per_class"])
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.utils.deterministic.fill_uninitialized_memory = before[1]
    assert found[0] == found[1]


OVERLAPPING = {"name": "split_overlapping", "first": 0, "last": 3, "tasks": 2, "per_task": 4, "length": None}
CYCLES = {"name": "split_ordered", "tasks": 2, "length": None, "cycles": 2}
REGULARISED = ["single", "ewc", "si", "icarl", "gr", "multi_model", "vcl", "vcl_coreset"]
OTHER = {  # the options of a cell, and the learners that it is tried with
    "tasks and masks": ({"order": SPLIT, "oracle": split(2), "train": "oracle", "batch": 7}, REGULARISED),
    "masks of what is present": ({"order": SPLIT, "oracle": split(2), "train": "present", "batch": 7}, REGULARISED),
    # Two tasks of all four classes, so that batches end alike, in another order in each.
    "outputs": (
        {"order": OVERLAPPING, "oracle": CHUNKS, "train": "oracle", "batch": 7},
        ["single", "ewc", "a_gem", "prog_nn", "multi_task"],
    ),
    "recurring tasks": ({"order": CYCLES, "oracle": CHUNKS, "batch": 13}, [*REGULARISED, "mas", "rwalk"]),
    "pixel permutations": (
        {"order": DOMAINS, "oracle": CHUNKS, "batch": 25},
        ["er", "gmed", "gr", "icarl", "vcl", "vcl_coreset"],
    ),
}


@pytest.mark.parametrize(("kind", "learner"), [(kind, learner) for kind in OTHER for learner in OTHER[kind][1]])
def test_nor_where_each_seed_has_its_own(kind, learner, data):
    given = OTHER[kind][0]
    options = OPTIONS[learner] | ({"new_share": "by_tasks"} if learner == "gr" and "masks" in kind else {})
    spec = cell(learner, options, "mlp", **given)
    spec["evaluation"] |= {"shots": 2} if kind == "outputs" else {}
    streams = {seed: orders.make(given["order"], data.train_y, seed, 192) for seed in range(3)}
    assert_alone_as_together(spec, data, streams)


@pytest.mark.parametrize(("learner", "options"), [each for each in VARIANTS if each[0] in DESCENDS])
def test_a_seed_that_diverges_leaves_its_stack_mates_alone(learner, options, data):
    """From the same step on, after a change of task, seed 1's first weights are no numbers."""
    spec, streams = course(learner, options, "mlp", data, 3)
    sound, broken = (Way(spec, data, list(streams.values())) for _ in range(2))
    for way in (sound, broken):
        way.walk(until=int(way.changes.argmax()) + 1)
    with torch.no_grad():
        next(iter(broken.learner.parameters))[1] = torch.nan
    for way in (sound, broken):
        way.walk()
    for mine, other in zip(broken.learner.parameters, sound.learner.parameters):
        assert torch.equal(mine[[0, 2]], other[[0, 2]])
    assert not any(p[1].isfinite().all() for p in broken.learner.parameters)
    assert broken.learner.report(2) == sound.learner.report(2)


@pytest.mark.parametrize("learner", ["er", "single", "ewc", "random_multi_model"])
def test_seeds_whose_courses_differ_are_trained_apart(learner, data, streams, capsys):
    """Chunks of 20, 13 and 20 items, or of 11 and 42; the results come in the order in which seeds are asked for."""
    edges = {4: [20, 33], 7: [11], 2: [20, 33]}
    given = {seed: tiny.stream(streams[seed % 3].indices, seed, edges[seed]) for seed in edges}
    spec = cell(learner, OPTIONS[learner], "mlp", oracle=CHUNKS)
    results = loop.train(spec, data, given, CPU)
    assert stacks(capsys.readouterr().err) == ["4-2", "7-7"]
    assert [result["seed"] for result in results] == [4, 7, 2]
    assert [result["steps"] for result in results] == [4 + 3 + 4, 3 + 9, 4 + 3 + 4]
    for result in results:
        (alone,) = loop.train(spec, data, {result["seed"]: given[result["seed"]]}, CPU)
        assert_same(alone, result)


def test_seeds_whose_tasks_change_at_other_steps_are_trained_apart(data, streams):
    """The batches are the same; the oracle's tasks drift with each seed's own classes."""
    spec = cell("ewc", OPTIONS["ewc"], "mlp", oracle=split(4))
    changes = [c.changes.tolist() for c in tiny.scenarios(spec, data, streams)]
    assert changes[0] != changes[1]
    for result, expected in zip(loop.train(spec, data, streams, CPU), changes, strict=True):
        assert result["oracle"]["changes"] == sum(expected)
        (alone,) = loop.train(spec, data, {result["seed"]: streams[result["seed"]]}, CPU)
        assert_same(alone, result)


@pytest.mark.parametrize("learner", ["er", "random"])
def test_without_stacking_seeds_are_trained_apart_and_end_the_same(learner, data, streams, capsys):
    """But for a learner without a net, which is a stack in any case."""
    spec, found = cell(learner, OPTIONS[learner], "mlp"), []
    for stacking, expected in ((False, ["0-0", "1-1", "2-2"] if learner == "er" else ["0-2"]), (True, ["0-2"])):
        found.append(loop.train(spec, data, streams, CPU, stacking=stacking))
        assert stacks(capsys.readouterr().err) == expected
    for one, other in zip(*found, strict=True):
        assert_same(one, other)


def test_batches_cross_no_boundary(data, streams, met):
    """Chunks of 20, 13 and 20 items are learnt in batches of 5; the task changes between them."""
    result, notes = met(cell("single", {}, "mlp", oracle=CHUNKS), tiny.stream(streams[0].indices, 0, [20, 33]))
    learnt, sizes = [y[0] for _, y in notes["learnt"]], [5, 5, 5, 5, 5, 5, 3, 5, 5, 5, 5]
    assert [len(batch) for batch in learnt] == sizes
    assert torch.cat(learnt).tolist() == data.train_y[streams[0].indices].tolist()
    assert notes["changes"] == [(4, 4), (7, 7)]  # each before its batch is learnt
    assert result["oracle"]["changes"] == 2
    assert result["steps"] == len(result["online"]["correct"]) == len(result["online"]["loss"]) == 11
    assert all(right <= size for right, size in zip(result["online"]["correct"], sizes))
    assert result["probes"]["time"] == [20, 38, 53]


# --- one step a task -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_task_at_once_is_a_step_of_all_its_items(epochs, data, met):
    """Tasks of 60 items; in several epochs, a step an epoch, and no change of the task between them."""
    order = SPLIT | ({"epochs": epochs} if epochs > 1 else {})
    made = orders.make(order, data.train_y, 1)
    result, notes = met(cell("single", {}, "mlp", order=order, oracle=CHUNKS, train="oracle", batch="task"), made)
    assert torch.stack([y for _, y in notes["learnt"]]).flatten().tolist() == data.train_y[made.indices].tolist()
    assert result["steps"] == len(notes["learnt"]) == 2 * epochs
    assert result["oracle"]["changes"] == 1
    assert len(result["online"]["correct"]) == len(result["online"]["loss"]) == 2 * epochs
    assert result["probes"]["time"][-1] == 120 * epochs
    assert result["test"]["oracle"]["chance"] == 1 / 2  # a whole task's test items share their restriction


def test_a_task_at_once_is_plain_descent_on_it(data):
    """Two steps of SGD on the mean over all items of a task, against torch's own."""
    spec = cell("single", {}, "mlp", order=SPLIT, batch="task")
    way = Way(spec, data, [orders.make(SPLIT, data.train_y, seed) for seed in (0, 1)])
    for s, c in enumerate(way.scenarios):
        net = way.ordinary(s=s)
        optimizer = way.optimizer(net)
        shown = tiny.pictures(spec, data)
        for now in (slice(0, 60), slice(60, 120)):
            optimizer.zero_grad()
            items = torch.from_numpy(c.items[now])
            torch.nn.functional.cross_entropy(net(shown(items)), torch.from_numpy(c.labels[now])).backward()
            optimizer.step()
        if s == 0:
            way.walk()
        tiny.assert_same_net(way.learner.net, net, s)


# --- pixel permutations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["er", "gmed", "ewc", "icarl", "gr"])
def test_the_identity_permutes_nothing(learner, data, streams):
    """The same run as without permutations, but tested three times."""
    spec = cell(learner, OPTIONS[learner], "mlp", order=DOMAINS, oracle=CHUNKS)
    plain = {seed: tiny.stream(streams[seed].indices, seed, [20, 33]) for seed in (0, 1)}
    identity = {seed: dataclasses.replace(s, transforms=np.tile(np.arange(192), (3, 1))) for seed, s in plain.items()}
    for one, thrice in zip(loop.train(spec, data, plain, CPU), loop.train(spec, data, identity, CPU), strict=True):
        once, test = one.pop("test")["none"], thrice.pop("test")["none"]
        assert one == thrice
        assert test["total"] == [18, 18, 18, 18]
        assert test["correct"] == [3 * right for right in once["correct"]]
        assert test["chance"] == once["chance"]


PERMUTED = np.stack([np.random.default_rng(d).permutation(192) for d in range(3)])


def shown(images, transforms):
    """Images as a learner sees them, each through its permutation, with values from 0 to 1."""
    pixels = images.reshape(-1, 192)[np.arange(len(images))[:, None], transforms]
    return pixels.reshape(-1, 8, 8, 3).transpose(0, 3, 1, 2) / 255


def test_stream_probes_and_test_split_are_seen_through_their_permutations(data, streams, met):
    """Each item through that of its chunk, the probes as the items came, and the test split once through each."""
    spec = cell("single", {}, "mlp", order=DOMAINS, oracle=CHUNKS) | {"scaling": "unit"}
    spec["evaluation"] = spec["evaluation"] | {"points": 1, "probes": None}
    _, notes = met(spec, tiny.stream(streams[0].indices, 0, [20, 33], PERMUTED))
    came = shown(data.train_x[streams[0].indices], PERMUTED[np.repeat([0, 1, 2], [20, 13, 20])])
    (probes, _), (test, tasks) = notes["asked"]
    np.testing.assert_allclose(torch.cat([x[0] for x, _ in notes["learnt"]]), came)
    np.testing.assert_allclose(probes[0], came)
    assert tasks.tolist() == [[0] * 24 + [1] * 24 + [2] * 24]
    np.testing.assert_allclose(test[0], shown(np.tile(data.test_x, (3, 1, 1, 1)), PERMUTED.repeat(24, axis=0)))
