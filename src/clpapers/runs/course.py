"""What one seed goes through: its stream cut into batches, the tasks it is told of, and the classes that compete."""

from __future__ import annotations

import dataclasses

import numpy as np

from clpapers.streams import oracles, restrictions
from clpapers.streams.oracles import Identifiers
from clpapers.streams.stream import Stream, batches


@dataclasses.dataclass(frozen=True, eq=False)
class Course:
    """One seed's course over n stream items in T steps.

    items: int64 [n], training items; where the stream has pixel permutations, item i of chunk d is d·N + i.
    labels: int64 [n]. ends: int64 [T], items seen after each step. tasks: the oracle's identifiers.
    changes: bool [T], whether the task changes with a step. masks: bool [T, K], the classes that compete in training;
    None where all do. transforms: int64 [D, pixels], the pixel permutations; empty where there are none. stream: where
    all of this comes from.
    """

    seed: int
    items: np.ndarray
    labels: np.ndarray
    ends: np.ndarray
    tasks: Identifiers
    changes: np.ndarray
    masks: np.ndarray | None
    stream: Stream

    @property
    def transforms(self) -> np.ndarray:
        return self.stream.transforms

    def together_with(self, other: Course) -> bool:
        """Whether two seeds can be one tensor program: the same batches, the same task changes."""
        return np.array_equal(self.ends, other.ends) and np.array_equal(self.changes, other.changes)

    def repeats(self) -> int:
        """How often the test split is evaluated: once through each pixel permutation."""
        return max(len(self.transforms), 1)


def course(cell: dict, stream: Stream, train_y: np.ndarray, test_y: np.ndarray, classes: int) -> Course:
    """The course of a cell along a stream over training items with labels `train_y` [N].

    `test_y` [m] are the labels of the test items that are evaluated, in their order.
    """
    labels = train_y[stream.indices]
    ends = batches(stream.boundaries, len(labels), cell["budget"]["batch"])
    tasks = oracles.identify(cell["oracle"], cell["order"], stream, train_y, test_y, classes, stream.seed)
    chunk = np.searchsorted(stream.boundaries, np.arange(len(labels)), side="right") if len(stream.transforms) else 0
    masked = cell["restriction"]["train"] == "oracle" and tasks.of_class is not None
    return Course(
        stream.seed,
        stream.indices + chunk * len(train_y),
        labels,
        ends,
        tasks,
        oracles.task_changes(tasks.train, ends, always=cell["oracle"]["name"] == "mixed"),
        restrictions.union_masks(tasks.of_class, labels, ends, classes) if masked else None,
        stream,
    )


def chunk_tasks(cell: dict, course: Course, train_y: np.ndarray, test_y: np.ndarray, classes: int) -> Identifiers:
    """The tasks that a course goes through, its stream's chunks, whatever its learner is told of them."""
    stream = course.stream
    return oracles.identify({"name": "chunks"}, cell["order"], stream, train_y, test_y, classes, course.seed)


def views(cell: dict, course: Course, test_y: np.ndarray, classes: int) -> dict[str, np.ndarray | None]:
    """The restrictions under which a run is evaluated: name → bool [m, K], the classes that compete for each test item.

    `none` lets all compete (None). The others let those compete that share a task with any class of the item's test
    batch, a task being one of the run's own oracle (`oracle`), a chunk of the data (`data`), or a group of an
    independent partition (`independent`). A run that looks at no oracle is evaluated under each of
    `evaluation.oracles`, by name: `sp10/oracle`, `sp10/independent`, ….
    """
    found: dict[str, np.ndarray | None] = {"none": None}
    told = {"": cell["oracle"]} | {f"{name}/": oracle for name, oracle in cell["evaluation"]["oracles"].items()}
    order, batch = cell["order"], cell["evaluation"].get("batch", cell["budget"]["batch"])
    for prefix, oracle in told.items():
        domains = oracle["name"] == "chunks" and oracles.task_of_class(oracle, order, classes, course.seed) is None
        if oracle["name"] in ("none", "mixed") or domains:
            continue
        for view in restrictions.VIEWS:
            mask = restrictions.view_masks(view, oracle, order, test_y, classes, batch, course.seed)
            if mask is not None or view != "data":
                found[f"{prefix}{view}"] = mask
    return found
