"""Tests by task: accuracy on each task after each, and how fast a new task is learnt (`agem`, section 3)."""

from collections.abc import Sequence

import numpy as np
import torch

from clpapers.runs.evaluation.answers import answered, answered_by, mark, number, uncertainties
from clpapers.runs.evaluation.protocol import Evaluator
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner
from clpapers.runs.scenario import Scenario, ScenarioError, chunk_tasks


def padded(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays of the seeds as rows, each repeated up to the longest."""
    return np.stack([np.resize(array, max(map(len, arrays))) for array in arrays])


class TaskItems:
    """The test items of T tasks, the chunks of the stream, for S seeds. In a stream of cycles tasks recur.

    A task is tested on the test items of its classes, through its pixel permutation where it has one.

    images: the test items.
    chunk: int64 [steps], the chunk of each step. task: int64 [chunks], the task of each chunk.
    task_classes: bool [S, T, K], the classes of each task.
    items, labels, valid: by task. items: int64 [S, m], on the images' device; labels: int64 [S, m]; valid: bool [S, m],
        False where a row is padded.
    unanswered: int64 [S], counted up by the items without an answer (`answers.mark`).

    Raises ScenarioError for a task without a test item.
    """

    def __init__(self, cell: dict, scenarios: Sequence[Scenario], images: Images, unanswered: np.ndarray):
        self.unanswered = unanswered
        tasks = [chunk_tasks(cell, c) for c in scenarios]
        self.images, self.count = images, tasks[0].tasks
        last = scenarios[0].ends - 1  # of each step
        self.chunk = scenarios[0].stream.chunk[last]
        self.task = tasks[0].train[last[np.diff(self.chunk, append=-1) != 0]]
        self.class_of_output = [c.class_of_output for c in scenarios]
        self.task_classes = np.stack([each.task_classes for each in tasks])
        self.items, self.labels, self.valid, each = [], [], [], []
        for j in range(self.count):
            own = [
                np.flatnonzero(c.test_domains == j if c.test_domains.size else has_class[j, c.test_labels])
                for c, has_class in zip(scenarios, self.task_classes)
            ]
            for c, found in zip(scenarios, own):
                if not len(found):
                    raise ScenarioError(f"evaluation.test: seed {c.seed} has no item for its task {j + 1}; raise it")
            domain = j if len(scenarios[0].transforms) else 0
            each.append([c.test_items[found] + domain * len(images.pixels) for c, found in zip(scenarios, own)])
            self.items.append(self._placed(each[j]))
            self.labels.append(padded([c.test_labels[found] for c, found in zip(scenarios, own)]))
            self.valid.append(np.arange(self.labels[j].shape[1]) < np.array([[len(found)] for found in own]))
        once = [np.unique(np.concatenate(of_seed)) for of_seed in zip(*each)]
        shared = sum(map(len, once)) < sum(len(found) for task in each for found in task)
        self.once = self._placed(once) if shared else None  # each item of all tasks, where some are of several
        self.places = [padded([np.searchsorted(*pair) for pair in zip(once, task)]) for task in each]  # there

    def _placed(self, items: Sequence[np.ndarray]) -> torch.Tensor:
        return torch.from_numpy(padded(items)).to(self.images.pixels.device)

    def right(self, j: int, learner: Learner) -> dict[str, np.ndarray]:
        """The number of items of task j that are right, for each seed and class: int64 [S, K].

        `correct` where only the task's classes compete, `open` where all do.
        """
        items = self.items[j]
        masks = {"correct": self._competing(j, items), "open": None}
        found = answered(learner, self.images, items, torch.full_like(items, j), masks)
        return {view: self._right(j, answers) for view, answers in found.items()}

    def all_right(self, tasks: Sequence[int], learner: Learner) -> list[dict[str, np.ndarray]]:
        """`right` of some tasks. An item of several is passed once where its scores are the same in all."""
        if self.once is None or not learner.scores_alike:
            return [self.right(j, learner) for j in tasks]
        masks = {f"{j}": self._competing(j, self.once) for j in tasks} | {"open": None}
        found = answered(learner, self.images, self.once, torch.zeros_like(self.once), masks)
        views = [{"correct": found[f"{j}"], "open": found["open"]} for j in tasks]
        return [
            {view: self._right(j, np.take_along_axis(answers, self.places[j], axis=1)) for view, answers in of.items()}
            for j, of in zip(tasks, views)
        ]

    def right_of(self, j: int, learner: Learner, snapshots: Sequence[object]) -> list[np.ndarray]:
        """`correct` of `right` for each of some snapshots (`Learner.snapshot`)."""
        items = self.items[j]
        found = answered_by(snapshots, learner, self.images, items, self._competing(j, items))
        return [self._right(j, answers) for answers in found]

    def _competing(self, j: int, items: torch.Tensor) -> torch.Tensor:
        """The classes of task j, for each of some items: bool [S, m, K]."""
        return torch.from_numpy(self.task_classes[:, j]).to(items.device)[:, None].expand(-1, items.shape[1], -1)

    def _right(self, j: int, answers: np.ndarray) -> np.ndarray:
        return self.per_class(j, mark(answers, self.labels[j], self.unanswered, self.valid[j]))

    def per_class(self, j: int, mask: np.ndarray) -> np.ndarray:
        """The number of items of each class among the items in `mask` [S, m] of task j: int64 [S, K]."""
        outputs = self.task_classes.shape[2]
        return np.stack([np.bincount(y[c], minlength=outputs) for y, c in zip(self.labels[j], mask)])

    def classes(self, s: int) -> list[np.ndarray]:
        """The outputs of each task, of seed number s."""
        return [np.flatnonzero(has_class) for has_class in self.task_classes[s]]


class TaskAccuracy(Evaluator):
    """The tests of all tasks after each chunk, with the task's classes competing and with all outputs."""

    def __init__(self, tasks: TaskItems):
        ends = np.flatnonzero(np.diff(tasks.chunk, append=-1))
        super().__init__({int(t): k for k, t in enumerate(ends)})  # a chunk's last step → the chunk
        self.tasks = tasks

    def test(self, t: int, learner: Learner) -> list:
        """`TaskItems.right` of each task; of tasks whose answers stay, as the test before found it."""
        stay = self.steps[t] if learner.past_tasks_frozen else 0
        due = range(stay, self.tasks.count)
        return [*(self.taken[-1][:stay] if stay else ()), *self.tasks.all_right(due, learner)]

    def result(self, s: int) -> dict:
        """In `tasks`: the data set's classes of each task, their items, and the numbers right.

        `correct[k][j]` and `open[k][j]` are the numbers of task j after chunk k.
        """
        tasks, classes = self.tasks, self.tasks.classes(s)
        found = {
            "classes": [tasks.class_of_output[s][own].tolist() for own in classes],
            "total": [tasks.per_class(j, tasks.valid[j])[s][own].tolist() for j, own in enumerate(classes)],
        }
        for view in ("correct", "open"):
            found[view] = [[right[view][s][own].tolist() for right, own in zip(row, classes)] for row in self.taken]
        return {"tasks": found}


class LearningCurves(Evaluator):
    """The tests of a chunk's own task before each of its first `shots` + 1 steps.

    Where a learner gives snapshots, all of a chunk's are tested at the last of them.
    """

    before = True

    def __init__(self, shots: int, tasks: TaskItems):
        starts = np.searchsorted(tasks.chunk, tasks.chunk)  # of the chunk of each step
        early = np.flatnonzero(np.arange(len(starts)) - starts <= shots)
        super().__init__({int(t): int(tasks.chunk[t]) for t in early})  # step → its chunk
        self.tasks = tasks
        self.last = {chunk: t for t, chunk in self.steps.items()}  # chunk → the last of its steps

    def take(self, t: int, learner: Learner) -> None:
        chunk = self.steps[t]
        snapshot = learner.snapshot(self.tasks.task[chunk])
        if snapshot is None:
            super().take(t, learner)
            return
        self.waiting.append((chunk, snapshot))
        if t == self.last[chunk]:
            self.settle(learner)

    def settle(self, learner: Learner) -> None:
        (chunk, *_), snapshots = zip(*self.waiting)  # all of one chunk
        self.taken += self.tasks.right_of(self.tasks.task[chunk], learner, snapshots)
        self.waiting = []

    def test(self, t: int, learner: Learner) -> np.ndarray:
        """The number right of each class: int64 [S, K]."""
        return self.tasks.right(self.tasks.task[self.steps[t]], learner)["correct"]

    def result(self, s: int) -> dict:
        """In `tasks`, under `shots`: for each chunk, test by test, the items right of its task, by class."""
        classes = self.tasks.classes(s)
        curves: list[list] = [[] for _ in self.tasks.task]
        for k, right in zip(self.steps.values(), self.taken):
            curves[k].append(right[s][classes[self.tasks.task[k]]].tolist())
        return {"tasks": {"shots": curves}}


class TaskUncertainty(TaskAccuracy):
    """The `uncertainty` in nats, of a learner with that method, on each task's test items after each chunk."""

    def test(self, t: int, learner: Learner) -> list[np.ndarray]:
        """For each task the mean over its items, float [S]."""
        tasks = self.tasks
        found = (uncertainties(learner, tasks.images, items) for items in tasks.items)
        return [np.array([each[own].mean(dtype=float) for each, own in zip(*pair)]) for pair in zip(found, tasks.valid)]

    def result(self, s: int) -> dict:
        """In `tasks`: `mutual_information[k][j]`, of task j after chunk k, null where it is not finite."""
        return {"tasks": {"mutual_information": [[number(of_task[s]) for of_task in row] for row in self.taken]}}
