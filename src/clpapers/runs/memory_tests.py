"""The tests on episodic memories: how right each task's memory is after each task (`agem`, appendix D.2)."""

from __future__ import annotations

import numpy as np
import torch

from clpapers.runs.evaluation import classified
from clpapers.runs.learner import Learner
from clpapers.runs.memories.episodic import EpisodicMemory


class MemoryTests:
    """What became of the items that S memories hold of each task, tested after that task and each later one.

    Only a task's classes compete, as in the tests of its test items.
    """

    def __init__(self, memory: EpisodicMemory):
        self.memory = memory
        self.correct: list[np.ndarray] = []  # after each task: of the tasks so far, int64 [S, tasks so far]

    def end(self, k: int, learner: Learner) -> None:
        """Take the tests that are due after task k, inside `learner.evaluation()`."""
        memory, setting, done = self.memory, self.memory.setting, slice(k + 1)
        items, labels = (each[:, done].flatten(1) for each in (memory.items, memory.labels))
        task = torch.arange(k + 1, device=items.device).repeat_interleave(memory.size)
        masks = {"task": setting.may_hold[:, task]}
        right = classified(learner, setting.images, items, labels, task.expand_as(items), masks)["task"]
        held = memory.valid[:, done].cpu().numpy()
        self.correct.append((right.reshape(held.shape) & held).sum(axis=2))

    def result(self, s: int) -> dict:
        """Of the stack's seed number s: under `memory` the items of each task, and after each task those right."""
        correct = [right[s].tolist() for right in self.correct]
        return {"memory": {"total": self.memory.counts[s].tolist(), "correct": correct}}
