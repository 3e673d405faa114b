"""Tests on episodic memories, against a learner whose answers are known."""

import numpy as np
import pytest
import torch
from tiny import CHUNKS, CPU, DOMAINS, OPTIONS, SPLIT, cell, setting, split, stream

from clpapers.runs import loop
from clpapers.runs.evaluation.memory import MemoryAccuracy
from clpapers.runs.learners.a_gem import AGEM
from clpapers.streams import orders
from clpapers.streams.chunks import chunks_of_classes

METHODS = pytest.mark.parametrize("learner", ["gem", "s_gem", "a_gem"])


def trained(learner, data, order=SPLIT, oracle=CHUNKS, seeds=(0, 1), train="oracle"):
    spec = cell(learner, OPTIONS[learner], "mlp", order=order, oracle=oracle, train=train)
    spec["evaluation"]["shots"] = 1
    return loop.train(spec, data, {seed: orders.make(order, data.train_y, seed, 192) for seed in seeds}, CPU)


@METHODS
def test_after_each_task_the_memories_of_the_tasks_so_far_are_tested(learner, data):
    for result in trained(learner, data):
        memory = result["tasks"]["memory"]
        assert memory["total"] == result["learner"]["memory"]
        assert [len(row) for row in memory["correct"]] == [1, 2]
        assert all(right <= total for row in memory["correct"] for right, total in zip(row, memory["total"]))
        assert memory["correct"][0][0] > memory["total"][0] / 2  # what was just learnt, of two classes


def test_only_where_the_memory_is_of_the_tasks_that_are_tested(data):
    assert "memory" not in trained("a_gem", data, oracle=split(2))[0]["tasks"]
    assert "memory" not in trained("single", data)[0]["tasks"]
    assert "memory" in trained("a_gem", data, order=DOMAINS, train="none")[0]["tasks"]


class Certain(AGEM):
    """Sees no image, and is sure of class 3, or else of class 0."""

    def scores(self, x, tasks):
        self.asked.append(tasks)
        return torch.tensor([1.0, 0.0, 0.0, 2.0]).expand(*x.shape[:2], -1)


def test_by_hand_with_scarce_classes_and_the_masks_of_tasks(data):
    """Task 0 shows three items of class 0 and one of class 1; task 1 five of class 3. Four items a class may stay.

    Only the classes of its own task compete for an item, where training is masked by tasks. So task 0's memory is right
    three times, and task 1's always, though its slots repeat.
    """
    spec = cell("a_gem", OPTIONS["a_gem"], "mlp", oracle=CHUNKS, order={"name": "random"}, memory=3 * 4, train="oracle")
    told = setting(spec, data, {0: stream([0, 30, 1, 2, 90, 91, 92, 93, 94], 0, [4])})
    learner = Certain(told, write="uniform")
    learner.asked = []
    tests = MemoryAccuracy(learner.memory, {0: 0, 1: 1})
    tests.unanswered = np.zeros(1, dtype=int)
    tests.take(0, learner)
    tests.take(1, learner)
    memory = tests.result(0)["tasks"]["memory"]
    assert memory["total"] == learner.memory.counts[0].tolist()
    competing = [told.task_classes[0, j].tolist() for j in (0, 1)]
    right = [sum(y == (3 if may[3] else 0) for y in kept) for kept, may in zip(kept_labels(learner.memory), competing)]
    assert memory["correct"] == [right[:1], right]
    assert memory["correct"][1][1] == memory["total"][1] < learner.memory.size
    assert learner.asked[-1].tolist() == np.repeat([0, 1], learner.memory.size)[None].tolist()


def test_only_the_classes_of_its_own_task_compete_for_an_item(data):
    """Classes 0 and 3 are of different tasks: what is sure of 3 answers 0 where 3 does not compete."""
    seed = next(each for each in range(20) if np.diff(chunks_of_classes(SPLIT, 4, each)[[0, 3]]).any())
    spec = cell("a_gem", OPTIONS["a_gem"], "mlp", order=SPLIT, oracle=CHUNKS, memory=3 * 4, train="oracle")
    told = setting(spec, data, {seed: orders.make(SPLIT, data.train_y, seed)})
    learner = Certain(told, write="uniform")
    learner.asked, tests = [], MemoryAccuracy(learner.memory, {0: 0, 1: 1})
    tests.unanswered = np.zeros(1, dtype=int)
    tests.take(0, learner)
    tests.take(1, learner)
    assert tests.result(0)["tasks"]["memory"]["correct"] == [[3], [3, 3]]  # of each class three items stay


def kept_labels(memory):
    return [memory.labels[0, j, memory.valid[0, j]].tolist() for j in range(memory.counts.shape[1])]
