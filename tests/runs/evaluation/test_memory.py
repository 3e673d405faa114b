"""Tests on episodic memories, against a learner whose answers are known."""

import numpy as np
import pytest
from tiny import CHUNKS, CPU, DOMAINS, OPTIONS, SPLIT, cell, split, stream

from clpapers.runs import loop
from clpapers.streams import orders
from clpapers.streams.chunks import chunks_of_classes


def trained(learner, data, streams=None, order=SPLIT, oracle=CHUNKS, train="oracle", certain=None, **budget):
    """The parts of results on tasks and on the learner."""
    spec = cell(learner, OPTIONS[learner], "mlp", order=order, oracle=oracle, train=train, **budget)
    spec["learner"] |= certain or {}
    spec["evaluation"]["shots"] = 1
    streams = streams or {seed: orders.make(order, data.train_y, seed, 192) for seed in (0, 1)}
    return [result["tasks"] | {"learner": result["learner"]} for result in loop.train(spec, data, streams, CPU)]


@pytest.mark.parametrize("learner", ["gem", "s_gem", "a_gem"])
def test_after_each_task_the_memories_of_the_tasks_so_far_are_tested(learner, data):
    for result in trained(learner, data):
        memory = result["memory"]
        assert memory["total"] == result["learner"]["memory"]
        assert [len(row) for row in memory["correct"]] == [1, 2]
        assert all(right <= total for row in memory["correct"] for right, total in zip(row, memory["total"]))
        assert memory["correct"][0][0] > memory["total"][0] / 2  # what was just learnt, of two classes


def test_only_where_the_memory_is_of_the_tasks_that_are_tested(data):
    assert "memory" not in trained("a_gem", data, oracle=split(2))[0]
    assert "memory" not in trained("single", data)[0]
    assert "memory" in trained("a_gem", data, order=DOMAINS, train="none")[0]


@pytest.fixture
def certain(written):
    """A-GEM that sees no image, and is sure of class 3, or else of class 0."""
    return written(
        "    def scores(self, x, tasks):\n        return torch.tensor([1.0, 0.0, 0.0, 2.0]).expand(*x.shape[:2], -1)\n",
        "a_gem",
    )


def test_by_hand_with_scarce_classes_and_the_masks_of_tasks(data, certain):
    """Only the classes of its own task compete for an item, so one is right for class 3, or else for class 0.

    Seven items of one class of the first task come and one of the other, three and one of the second. Three items a
    class may stay, and the slots of scarce classes repeat some.
    """
    seed = next(each for each in range(20) if np.diff(chunks_of_classes(SPLIT, 4, each)[[0, 3]]).any())
    of_class = chunks_of_classes(SPLIT, 4, seed)
    (first, second) = (sorted(np.flatnonzero(of_class == task), key=lambda c: c not in (0, 3)) for task in (0, 1))
    items = [30 * c + i for c, count in zip([*first, *second], [7, 1, 3, 1]) for i in range(count)]
    (result,) = trained("a_gem", data, {seed: stream(items, seed, [8])}, certain=certain, memory=3 * 4)
    assert result["memory"] == {"total": [4, 4], "correct": [[3], [3, 3]]}
