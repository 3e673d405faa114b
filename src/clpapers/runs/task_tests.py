"""Every task's test: how right each is after each task, and how fast a new one is learnt (`agem`, section 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from clpapers.runs.course import Course, CourseError
from clpapers.runs.evaluation import classified, number, uncertainties
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner


class TaskTests:
    """The tests of T tasks, the chunks of the stream, and what became of them. In a stream of cycles tasks recur.

    A task's test items are those of its classes, and where chunks are pixel permutations, as it permutes them; only its
    classes compete. Tests are due after each chunk, of all tasks, and before each of the first
    `shots` + 1 steps of a chunk, of its task alone. Those after a chunk are also judged with all outputs competing
    (`open`), and of a learner with a method `uncertainty` the mean over a task's items is taken with them, in nats.

    Parameters
    ----------
    courses: of S seeds, with the tasks that `chunks` names (`course.chunk_tasks`).
    images: the test items.

    Raises CourseError for a task without a test item: there is no accuracy on it.
    """

    def __init__(self, shots: int, courses: Sequence[Course], tasks, images: Images):
        self.images, device = images, images.pixels.device
        self.count = tasks[0].tasks
        self.ends, first = courses[0].ends, np.concatenate([[0], courses[0].ends[:-1]])
        chunk = courses[0].stream.chunk[first]  # of each step
        starts = np.flatnonzero(np.diff(chunk, prepend=-1))
        stops = np.append(starts[1:], len(chunk))
        self.task = tasks[0].train[first[starts]]  # of each chunk
        self.before = {}  # step → the chunk whose task is tested before it
        for k, (start, stop) in enumerate(zip(starts, stops)):
            self.before |= dict.fromkeys(range(start, min(start + shots + 1, stop)), k)
        self.after = {int(stop) - 1: k for k, stop in enumerate(stops)}  # step → the chunk that ends with it
        self.classes = [c.class_of_output for c in courses]
        self.labels, self.items, self.valid, self.may_hold = [], [], [], []
        for j in range(self.count):
            mine = [np.flatnonzero(said.may_hold[j, c.test_labels]) for c, said in zip(courses, tasks)]
            for c, found in zip(courses, mine):
                if not len(found):
                    raise CourseError(f"evaluation.test: seed {c.seed} has no item for its task {j + 1}; raise it")
            size = max(map(len, mine))
            padded = [np.resize(found, size) for found in mine]
            items = np.stack([c.test_items[found] for c, found in zip(courses, padded)])
            domain = j if len(courses[0].transforms) else 0
            self.labels.append(np.stack([c.test_labels[found] for c, found in zip(courses, padded)]))
            self.items.append(torch.from_numpy(items + domain * len(images.pixels)).to(device))
            self.valid.append(np.arange(size) < np.array([[len(found)] for found in mine]))
            self.may_hold.append(np.stack([said.may_hold[j] for said in tasks]))
        self.shots: list[list[np.ndarray]] = [[] for _ in starts]
        self.right: list[list[dict[str, np.ndarray]]] = []  # after each chunk, of all tasks
        self.information: list[list[np.ndarray]] = []  # so too: float [S]; empty where the learner has no uncertainty

    def begin(self, t: int, learner: Learner) -> None:
        """Take the test that is due before step t, inside `learner.evaluation()`."""
        if t in self.before:
            k = self.before[t]
            self.shots[k].append(self._right(self.task[k], learner)["correct"])

    def end(self, t: int, learner: Learner) -> None:
        """Take the tests that are due after step t, inside `learner.evaluation()`."""
        if t in self.after:
            self.right.append([self._right(j, learner) for j in range(self.count)])
            if hasattr(learner, "uncertainty"):
                self.information.append([self._mean_uncertainty(j, learner) for j in range(self.count)])

    def _right(self, j: int, learner: Learner) -> dict[str, np.ndarray]:
        """Of each seed and class how many items of task j are right, int64 [S, K], in the task and among all."""
        items, labels = self.items[j], torch.from_numpy(self.labels[j]).to(self.items[j].device)
        mask = torch.from_numpy(self.may_hold[j]).to(items.device)[:, None].expand(-1, items.shape[1], -1)
        masks = {"correct": mask, "open": None}
        right = classified(learner, self.images, items, labels, torch.full_like(items, j), masks)
        return {view: self._per_class(j, found & self.valid[j]) for view, found in right.items()}

    def _mean_uncertainty(self, j: int, learner: Learner) -> np.ndarray:
        """Of each seed, over the items of task j: float [S]."""
        found = uncertainties(learner, self.images, self.items[j])
        return np.array([each[mine].mean(dtype=float) for each, mine in zip(found, self.valid[j])])

    def _per_class(self, j: int, counted: np.ndarray) -> np.ndarray:
        classes = self.may_hold[j].shape[1]
        return np.stack([np.bincount(y[c], minlength=classes) for y, c in zip(self.labels[j], counted)])

    def result(self, s: int) -> dict:
        """Of the stack's seed number s: the data set's classes in each task, their items, and how many were right.

        After each chunk k, of each task j: `correct[k][j]` and `open[k][j]`, and, of a learner that has an uncertainty,
        `mutual_information[k][j]`, null where it is no finite number.
        """
        classes = [np.flatnonzero(held[s]) for held in self.may_hold]
        total = [self._per_class(j, self.valid[j])[s] for j in range(self.count)]
        after = {
            view: [[right[view][s][mine].tolist() for right, mine in zip(row, classes)] for row in self.right]
            for view in ("correct", "open")
        }
        information = [[number(of_task[s]) for of_task in row] for row in self.information]
        return {
            "classes": [self.classes[s][mine].tolist() for mine in classes],
            "total": [every[mine].tolist() for every, mine in zip(total, classes)],
            **after,
            "shots": [[right[s][classes[j]].tolist() for right in curve] for curve, j in zip(self.shots, self.task)],
            **({"mutual_information": information} if information else {}),
        }
