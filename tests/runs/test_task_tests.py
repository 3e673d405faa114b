import numpy as np
import pytest
import torch
from tiny import CHUNKS, CPU, DOMAINS, SPLIT, cell, setting, split

from clpapers.runs import loop
from clpapers.runs.learners.gdumb import GDumb
from clpapers.runs.learners.multi_task import MultiTask
from clpapers.runs.learners.single import Single
from clpapers.streams import orders
from clpapers.streams.chunks import chunks_of_classes

RANGE = {"name": "split_range", "first": 1, "last": 3, "tasks": 3, "length": None}


def run(data, order, learner="single", seeds=(0, 1), shots=3, **options):
    """The results of a learner on the tiny problem, tested task by task."""
    spec = cell(learner, {}, "mlp", order=order, **options)
    spec["evaluation"]["shots"] = shots
    return loop.train(spec, data, {seed: orders.make(order, data.train_y, seed, 192) for seed in seeds}, CPU)


def test_the_last_tests_of_domains_are_the_final_test(data):
    for result in run(data, DOMAINS):
        last = np.array(result["tasks"]["correct"][-1])
        assert last.shape == (3, 4)
        np.testing.assert_array_equal(last.sum(axis=0), result["test"]["none"]["correct"])
        np.testing.assert_array_equal(np.sum(result["tasks"]["total"], axis=0), result["test"]["none"]["total"])


def test_the_last_tests_of_disjoint_tasks_are_the_final_test_in_which_a_task_competes(data):
    for result in run(data, SPLIT, oracle=split(2), train="oracle"):
        of_class = chunks_of_classes(SPLIT, 4, result["seed"])
        for j, classes in enumerate(result["tasks"]["classes"]):
            assert classes == np.flatnonzero(of_class == j).tolist()
            final = result["test"]["oracle"]
            assert result["tasks"]["correct"][-1][j] == [final["correct"][c] for c in classes]
            assert result["tasks"]["total"][j] == [final["total"][c] for c in classes]


def test_what_is_known_of_a_task_before_it_is_learnt_was_known_after_the_one_before(data):
    for result in run(data, DOMAINS):
        tests = result["tasks"]
        for k in (1, 2):
            assert tests["shots"][k][0] == tests["correct"][k - 1][k]


@pytest.mark.parametrize("shots", [0, 2, 99])
def test_learning_curves_follow_the_first_steps_of_each_task(data, shots):
    (result,) = run(data, DOMAINS, seeds=[0], shots=shots)
    steps = result["steps"] // 3
    assert [len(curve) for curve in result["tasks"]["shots"]] == [min(shots + 1, steps)] * 3


def test_testing_changes_no_learning(data):
    spec = cell("single", {}, "mlp", order=DOMAINS)
    streams = {0: orders.make(DOMAINS, data.train_y, 0, 192)}
    (without,) = loop.train(spec, data, streams, CPU)
    (result,) = run(data, DOMAINS, seeds=[0])
    assert "tasks" not in without
    assert result["online"] == without["online"]
    assert result["test"] == without["test"]


def test_classes_out_of_the_range_are_neither_learnt_nor_tested(data):
    for result in run(data, RANGE, oracle=CHUNKS, train="oracle"):
        assert sorted(c for classes in result["tasks"]["classes"] for c in classes) == [1, 2, 3]
        assert [total > 0 for total in result["test"]["none"]["total"]] == [False, True, True, True]
        assert all(right == total for right, total in zip(result["tasks"]["correct"][-1], result["tasks"]["total"]))


def test_a_seed_that_diverges_is_dated_and_its_stack_mates_are_not_touched(data, monkeypatch):
    """Seed 1 meets an image that is not a number at step 5."""
    (alone,) = run(data, DOMAINS, seeds=[0])
    observe = Single.observe

    def poisoned(self, t, x, y):
        if t == 5:
            x = x.clone()
            x[1, 0] = torch.nan
        return observe(self, t, x, y)

    monkeypatch.setattr(Single, "observe", poisoned)
    well, ill = run(data, DOMAINS, seeds=[0, 1])
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


@pytest.mark.parametrize(("learner", "options"), [(MultiTask, {}), (GDumb, {"memory_batch": 8})])
@pytest.mark.parametrize("block", [2, 100])
def test_the_divergence_of_a_learner_that_does_not_look_is_dated_too(
    data, streams, monkeypatch, learner, options, block
):
    """Its first loss that is no finite number; what it said online stays unknown."""
    name = "multi_task" if learner is MultiTask else "gdumb"
    losses, observe = [], learner.observe
    monkeypatch.setattr(loop, "ONLINE_BLOCK", block)
    monkeypatch.setattr(learner, "observe", lambda *given: (losses.append(observe(*given)), losses[-1])[1])
    results = loop.train(cell(name, options, "mlp", learning_rate=1e30), data, streams, CPU)
    assert all(0 < result["diverged"] < result["steps"] for result in results)
    for s, result in enumerate(results):
        finite = [bool(loss[s].isfinite()) for loss in losses]
        assert result["diverged"] == finite.index(False)
        assert result["online"] == {"correct": None, "loss": None}
    for well in loop.train(cell(name, options, "mlp"), data, streams, CPU):
        assert well["diverged"] is None


def test_what_trains_nothing_never_diverges(data, streams):
    for result in loop.train(cell("random", {}, "mlp"), data, streams, CPU):
        assert result["diverged"] is None
