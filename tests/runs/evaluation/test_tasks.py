"""Tests by task: each after each, what competes in them, and how fast a new task is learnt."""

import dataclasses

import numpy as np
import pytest
import torch
from tiny import CHUNKS, CPU, DOMAINS, OPTIONS, SPLIT, Way, cell, setting, split

from clpapers.metrics import learning
from clpapers.runs import loop
from clpapers.runs.learners.multi_task import MultiTask
from clpapers.runs.scenario import ScenarioError
from clpapers.streams import orders
from clpapers.streams.chunks import chunks_of_classes, overlapping_classes

RANGE = {"name": "split_range", "first": 1, "last": 3, "tasks": 3, "length": None}
ORDERED = {"name": "split_ordered", "tasks": 2, "length": None}
OVERLAPPING = {"name": "split_overlapping", "first": 1, "last": 3, "tasks": 3, "per_task": 2, "length": None}
LEARNERS = ["single", "ewc", "a_gem", "gem", "prog_nn", "multi_task"]  # all with a head a task, but for the last


def run(data, order, learner="single", seeds=(0, 1), shots=3, mine=None, **options):
    """The results of a learner, or of one that is written like it, on the tiny problem, tested task by task."""
    spec = cell(learner, OPTIONS[learner], "mlp", order=order, **options)
    spec["learner"] |= mine or {}
    if shots is not None:
        spec["evaluation"]["shots"] = shots
    return loop.train(spec, data, {seed: orders.make(order, data.train_y, seed, 192) for seed in seeds}, CPU)


@pytest.mark.parametrize("learning_rate", [0.1, 0.003])  # of the lower one domains differ in what is right
def test_the_last_tests_of_domains_are_the_final_test(learning_rate, data):
    for result in run(data, DOMAINS, learning_rate=learning_rate):
        tests, final = result["tasks"], result["test"]["none"]
        assert np.shape(tests["correct"][-1]) == (3, 4)
        assert np.sum(tests["correct"][-1], axis=0).tolist() == final["correct"]
        assert np.sum(tests["total"], axis=0).tolist() == final["total"]
        assert tests["open"] == tests["correct"]  # each domain has all classes


@pytest.mark.parametrize(
    ("options", "tested", "view"),
    [
        ({"oracle": split(2), "train": "oracle"}, "correct", "oracle"),  # a task's classes compete
        ({"learning_rate": 1e-3}, "open", "none"),  # all outputs do, of a single head
    ],
)
def test_the_last_tests_of_disjoint_tasks_are_the_final_test(options, tested, view, data):
    for result in run(data, SPLIT, **options):
        of_class, tests, final = chunks_of_classes(SPLIT, 4, result["seed"]), result["tasks"], result["test"][view]
        for j, classes in enumerate(tests["classes"]):
            assert classes == np.flatnonzero(of_class == j).tolist()
            assert tests[tested][-1][j] == [final["correct"][c] for c in classes]
            assert tests["total"][j] == [final["total"][c] for c in classes]
        assert (np.array(tests["correct"]) >= np.array(tests["open"])).all()
        assert tests["correct"] != tests["open"] or view == "oracle"


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("order", [ORDERED, DOMAINS, OVERLAPPING])
def test_in_cycles_every_task_is_tested_after_every_visit(order, epochs, data):
    """The first cycle is as without cycles; afterwards tasks are known before they come again."""
    options = {"oracle": CHUNKS, "train": "oracle", "shots": 1}
    order, tasks = order | {"epochs": epochs}, order["tasks"]
    for once, result in zip(*(run(data, order | more, **options) for more in ({}, {"cycles": 2}))):
        tests = result["tasks"]
        assert result["steps"] == 2 * once["steps"]
        assert result["oracle"]["changes"] == 2 * tasks - 1
        assert tests["classes"] == once["tasks"]["classes"]
        assert tests["total"] == once["tasks"]["total"]
        for key in ("correct", "open", "shots"):
            assert len(tests[key]) == 2 * tasks
            assert tests[key][:tasks] == once["tasks"][key]
        for k in range(1, 2 * tasks):
            assert tests["shots"][k][0] == tests["correct"][k - 1][k % tasks]
        final = result["test"]["none" if order["name"] == "permuted_pixels" else "oracle"]
        assert np.sum(tests["correct"][-1]) == sum(final["correct"])
        assert np.sum(tests["total"]) == sum(final["total"])


def test_a_task_at_once_is_tested_after_its_only_step(data):
    """A task's test with all outputs competing is that of a net trained by hand on it and those before."""
    (result,) = run(data, ORDERED, seeds=[1], shots=0, batch="task", learning_rate=1.0)
    spec = cell("single", {}, "mlp", order=ORDERED, batch="task", learning_rate=1.0)
    way = Way(spec, data, [orders.make(ORDERED, data.train_y, 1)])
    shown = way.setting.images.with_pixels(data.test_x)(torch.arange(24)[None])
    for k in range(2):
        way.step()
        said = way.learner.net(shown)[0].argmax(dim=1).numpy()
        right = np.bincount(data.test_y[said == data.test_y], minlength=4)
        assert np.ravel(result["tasks"]["open"][k]).tolist() == right.tolist()
    assert [len(curve) for curve in result["tasks"]["shots"]] == [1, 1]


UNCERTAIN = """
    asked = 0

    def uncertainty(self, x):
        assert not self.net.training
        self.asked += 1
        return {}
"""


@pytest.mark.parametrize("order", [DOMAINS, SPLIT])
def test_uncertainty_is_the_mean_over_a_tasks_items(order, unbalanced, written):
    """Here a pixel's value, as the learner sees it, plus how often it was asked; stacked seeds' tasks differ."""
    mine = written(UNCERTAIN.format("x[:, :, 0, 0, 0] + self.asked"))
    results, count = run(unbalanced, order, seeds=(0, 3), mine=mine), order["tasks"]
    sizes = np.array([[sum(items) for items in result["tasks"]["total"]] for result in results])
    assert (sizes[0] != sizes[1]).any() == (order is SPLIT)
    for result in results:
        stream = orders.make(order, unbalanced.train_y, result["seed"], 192)
        pixels = unbalanced.test_x.reshape(-1, 192) / 127.5 - 1
        found = np.array(result["tasks"]["mutual_information"])
        assert found.shape == (count, count)
        for j, classes in enumerate(result["tasks"]["classes"]):
            first = stream.transforms[j, 0] if len(stream.transforms) else 0
            mean = pixels[np.isin(unbalanced.test_y, classes), first].mean()
            assert found[:, j] == pytest.approx(mean + 1 + j + count * np.arange(count), rel=1e-5)


def test_an_uncertainty_that_is_no_number_is_null_and_changes_nothing_else(data, written):
    (without,), (asked,) = (
        run(data, SPLIT, seeds=[0], mine=mine) for mine in (None, written(UNCERTAIN.format("x[:, :, 0, 0, 0] / 0 * 0")))
    )
    assert asked["tasks"].pop("mutual_information") == [[None] * 2] * 2
    assert asked["tasks"] == without["tasks"]


@pytest.mark.parametrize("shots", [0, 2, 99])
def test_learning_curves_follow_the_first_steps_of_each_task(data, shots):
    (result,) = run(data, DOMAINS, seeds=[0], shots=shots)
    steps = result["steps"] // 3
    assert [len(curve) for curve in result["tasks"]["shots"]] == [min(shots + 1, steps)] * 3


def test_testing_changes_no_learning(data):
    (result,), (without,) = (run(data, DOMAINS, seeds=[0], shots=shots) for shots in (3, None))
    del result["tasks"]
    assert result == without


def test_classes_out_of_the_range_are_neither_learnt_nor_tested(data):
    for result in run(data, RANGE, oracle=CHUNKS, train="oracle"):
        assert sorted(c for classes in result["tasks"]["classes"] for c in classes) == [1, 2, 3]
        assert [total > 0 for total in result["test"]["none"]["total"]] == [False, True, True, True]
        assert all(right == total for right, total in zip(result["tasks"]["correct"][-1], result["tasks"]["total"]))


# --- classes that recur ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unbalanced(data):
    """Six, five, two and four test items of classes 0 to 3, not sorted by class."""
    kept = np.random.default_rng(1).permutation(np.flatnonzero(np.arange(24) % 6 < np.array([6, 5, 2, 4])[data.test_y]))
    return dataclasses.replace(data, test_x=data.test_x[kept], test_y=data.test_y[kept])


def heads(data, learner, **options):
    """The results of four seeds where each task has outputs of its own."""
    train = "none" if learner == "multi_task" else "oracle"
    return run(data, OVERLAPPING, learner, range(4), oracle=CHUNKS, train=train, **options)


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_recurring_class_is_tested_wholly_in_each_of_its_tasks(learner, unbalanced):
    for result in heads(unbalanced, learner):
        drawn = overlapping_classes(OVERLAPPING, 4, result["seed"])
        tests, final = result["tasks"], result["test"]["oracle"]
        items = np.array([6, 5, 2, 4])[drawn]
        assert tests["classes"] == drawn.tolist()
        assert tests["total"] == items.tolist()
        assert np.array(tests["correct"]).shape == (3, 3, 2)
        assert final["total"] == result["test"]["none"]["total"] == items.ravel().tolist()
        assert final["correct"] == np.ravel(tests["correct"][-1]).tolist()
        assert final["chance"] == 1 / 2
        assert result["test"]["none"]["chance"] == 1 / 6
        assert result["oracle"]["task_of_class"] == [0, 0, 1, 1, 2, 2]
        assert len(result["memory"]["per_class"]) == 6
        assert result["learner"].get("violations", [0])[0] == 0


def test_accuracy_by_class_of_unbalanced_tasks_by_hand(unbalanced):
    """Each occurrence of a class counts alike, whatever its items."""
    for result in heads(unbalanced, "single", learning_rate=1e-3):
        rights, totals = np.array(result["tasks"]["correct"][-1]), np.array(result["tasks"]["total"])
        inputs = [({"dataset": "tiny", "learner": "single"}, "abc", {"seeds": [result]})]
        by_class, by_item = (
            learning.measure({"metrics": ["average_accuracy"], "per_class": sets}, inputs)["value"].iloc[0]
            for sets in (["tiny"], [])
        )
        assert by_class == pytest.approx(100 * sum(right / total for right, total in zip(rights.flat, totals.flat)) / 6)
        assert by_item == pytest.approx(100 * np.mean([sum(r) / sum(t) for r, t in zip(rights, totals)]))


def test_labels_are_the_outputs_of_the_items_own_tasks(data):
    spec = cell("single", {}, "mlp", order=OVERLAPPING, oracle=CHUNKS, train="oracle")
    for seed in range(4):
        stream = orders.make(OVERLAPPING, data.train_y, seed)
        gone = Way(spec, data, [stream]).scenarios[0]
        np.testing.assert_array_equal(gone.class_of_output[gone.labels], data.train_y[stream.indices])
        np.testing.assert_array_equal(gone.labels // 2, stream.chunk)
        np.testing.assert_array_equal(gone.class_of_output[gone.test_labels], data.test_y[gone.test_items])
        assert len({*zip(gone.test_items, gone.test_labels)}) == len(gone.test_items) == 6 * 6
        assert all(
            sorted(np.flatnonzero(row)) == [2 * (y // 2), 2 * (y // 2) + 1]
            for row, y in zip(gone.masks, gone.labels[gone.ends - 1])
        )


def test_a_task_without_a_test_item_is_refused(data):
    gone = chunks_of_classes(SPLIT, 4, 3)[data.test_y] == 0
    without = dataclasses.replace(data, test_x=data.test_x[gone], test_y=data.test_y[gone])
    with pytest.raises(ScenarioError, match=r"^evaluation.test: seed 3 has no item for its task 2; raise it$"):
        run(without, SPLIT, seeds=[3])


POISONED = """
    def observe(self, t, x, y):
        if t == 5 and len(x) > 1:
            x = x.clone()
            x[1, 0] = torch.nan
        return super().observe(t, x, y)
"""


def test_a_seed_that_diverges_is_dated_and_its_stack_mates_are_not_touched(data, written):
    """Seed 1 meets an image that is not a number at step 5."""
    (alone,) = run(data, DOMAINS, seeds=[0])
    well, ill = run(data, DOMAINS, seeds=[0, 1], mine=written(POISONED))
    assert (well["diverged"], ill["diverged"]) == (None, 5)
    assert ill["online"]["loss"][4] is not None
    assert set(ill["online"]["loss"][5:]) == {None}
    assert well["tasks"] == alone["tasks"]
    np.testing.assert_allclose(well["online"]["loss"], alone["online"]["loss"], rtol=1e-5)


def test_multi_task_learns_each_item_once_with_all_tasks_mixed(data):
    streams = {seed: orders.make(DOMAINS, data.train_y, seed, 192) for seed in (0, 1)}
    learner = MultiTask(setting(cell("multi_task", {}, "mlp", order=DOMAINS), data, streams))
    labels = torch.from_numpy(data.train_y)
    for given, items, y in zip(learner.setting.items, learner.items, learner.labels):
        assert sorted(items.tolist()) == sorted(given.tolist())
        assert torch.equal(labels[items % len(labels)], y)
        for part in items.chunk(6):
            assert len((part // len(labels)).unique()) == 3
    for result in run(data, DOMAINS, "multi_task"):
        assert result["online"]["correct"] is None
        assert np.sum(result["tasks"]["correct"][-1]) > 0.5 * np.sum(result["tasks"]["total"])


ANEW = """
    past_tasks_frozen = False
    scores_alike = False

    def snapshot(self, task):
        return None
"""


@pytest.mark.parametrize(
    ("learner", "order"),
    [
        ("single", OVERLAPPING),  # which answers items of several tasks once
        ("a_gem", OVERLAPPING),
        ("prog_nn", SPLIT),  # whose past tasks are not tested again, and the snapshots of a task together
        ("prog_nn", DOMAINS),
        ("prog_nn", OVERLAPPING),
    ],
)
def test_answers_that_are_saved_are_those_that_are_found_task_by_task(learner, order, data, written):
    options = {"oracle": CHUNKS, "train": "none" if order is DOMAINS else "oracle"}
    for one, other in zip(
        *(run(data, order, learner, mine=mine, **options) for mine in (None, written(ANEW, learner)))
    ):
        assert one["tasks"] == other["tasks"]
        assert one["test"] == other["test"]
