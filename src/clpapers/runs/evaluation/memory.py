"""The tests on episodic memories: accuracy on each task's memory after each task (`agem`, appendix D.2)."""

from collections.abc import Mapping

import numpy as np
import torch

from clpapers.runs.evaluation.answers import answered, mark
from clpapers.runs.evaluation.protocol import Evaluator
from clpapers.runs.learner import Learner
from clpapers.runs.memories.episodic import EpisodicMemory


class MemoryAccuracy(Evaluator):
    """Accuracy on the items that S memories hold of each task, after that task and each later one.

    Only the task's classes compete, as for its test items. steps: each task's last step → the task.
    """

    def __init__(self, memory: EpisodicMemory, steps: Mapping[int, int]):
        super().__init__(steps)
        self.memory = memory

    def test(self, t: int, learner: Learner) -> np.ndarray:
        """Items right of each task so far: int64 [S, tasks so far]."""
        memory, setting, done = self.memory, self.memory.setting, self.steps[t] + 1
        items, labels = (each[:, :done].flatten(1) for each in (memory.items, memory.labels))
        task = torch.arange(done, device=items.device).repeat_interleave(memory.size)
        masks = {"task": setting.task_classes[:, task]}
        answers = answered(learner, setting.images, items, task.expand_as(items), masks)["task"]
        valid = memory.valid[:, :done].cpu().numpy()
        found = mark(answers, labels.cpu().numpy(), self.unanswered, valid.reshape(answers.shape))
        return found.reshape(valid.shape).sum(axis=2)

    def result(self, s: int) -> dict:
        """In `tasks`, under `memory`: the items of each task, and the number right after each task."""
        correct = [right[s].tolist() for right in self.taken]
        return {"tasks": {"memory": {"total": self.memory.counts[s].tolist(), "correct": correct}}}
