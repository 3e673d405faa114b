"""A seed's scenario: its stream cut into batches, the tasks that the learner knows of, and the classes that compete."""

from __future__ import annotations

import dataclasses

import numpy as np

from clpapers.streams import oracles, restrictions
from clpapers.streams.chunks import class_of_output, output_labels, outputs_at_test
from clpapers.streams.oracles import Identifiers
from clpapers.streams.stream import Stream, batches


class ScenarioError(ValueError):
    """A cell that its data cannot serve; the text is one line."""


@dataclasses.dataclass(frozen=True, eq=False)
class Scenario:
    """One seed's scenario over n stream items in T steps, as a learner of K outputs sees it.

    class_of_output: int64 [K], the data set's class that each output stands for. All labels and classes below are
        outputs, which differ from classes only where a class has an output in each task (`split_overlapping`), or an
        output a class in each (`split_domains`; −1).
    items: int64 [n], training items; item i through pixel permutation number d is d·N + i. labels: int64 [n].
    ends: int64 [T], items seen after each step.
    tasks: the oracle's identifiers. changes: bool [T], whether the task changes with a step.
    masks: bool [T, K], the classes that compete in training; None where all do.
    test_items, test_labels: int64 [m], the evaluated test items, each once for every output of its class.
    test_domains: int64 [m], the task that each comes from, where its output does not tell; else [0].
    stream: the stream behind all of this.
    """

    seed: int
    class_of_output: np.ndarray
    items: np.ndarray
    labels: np.ndarray
    ends: np.ndarray
    tasks: Identifiers
    changes: np.ndarray
    masks: np.ndarray | None
    test_items: np.ndarray
    test_labels: np.ndarray
    test_domains: np.ndarray
    stream: Stream

    @property
    def outputs(self) -> int:
        """K."""
        return len(self.class_of_output)

    @property
    def transforms(self) -> np.ndarray:
        """The pixel permutations, int64 [D, pixels]; empty where there are none."""
        return self.stream.transforms

    def together_with(self, other: Scenario) -> bool:
        """Whether two seeds can share a stack: the same batches and task changes, as many test items."""
        same = np.array_equal(self.ends, other.ends) and np.array_equal(self.changes, other.changes)
        return same and len(self.test_items) == len(other.test_items)

    def repeats(self) -> int:
        """The number of passes over the test split: one for each pixel permutation."""
        return max(len(self.transforms), 1)


def scenario(
    cell: dict, stream: Stream, train_y: np.ndarray, test_y: np.ndarray, classes: int, least: int = 1
) -> Scenario:
    """The scenario of a cell along a stream over training items of classes `train_y` [N], of the data set's `classes`.

    `test_y` [M] are the classes of the evaluated test items, `least` the fewest items that a batch may have.

    Raises ScenarioError for a chunk of fewer.
    """
    order, chunk, domains = cell["order"], stream.chunk, len(stream.transforms)
    class_of = class_of_output(order, classes, stream.seed)
    labels = output_labels(order, train_y[stream.indices], chunk, classes, stream.seed)
    test_items, test_labels, test_domains = outputs_at_test(order, test_y, classes, stream.seed)
    ends = batches(stream.boundaries, len(labels), cell["budget"]["batch"], order.get("epochs", 1), least)
    if np.diff(ends, prepend=0).min() < least:
        raise ScenarioError(
            f"net {cell['net']['name']}: batch norm has no variance of a chunk of one item; take fewer tasks, or "
            "another net"
        )
    tasks = oracles.identify(cell["oracle"], order, stream, labels, test_labels, len(class_of), stream.seed)
    rule = cell["restriction"]["train"]
    partitions = {"none": None, "oracle": tasks.of_class}
    partition = partitions.get(rule, np.arange(len(class_of)))  # for `present` and `seen` each class is a task
    masks = None if partition is None else restrictions.union_masks(partition, labels, ends, len(class_of))
    if masks is not None and rule == "seen":
        masks = np.logical_or.accumulate(masks)
    return Scenario(
        stream.seed,
        class_of,
        stream.indices + (chunk % domains * len(train_y) if domains else 0),
        labels,
        ends,
        tasks,
        oracles.task_changes(tasks.train, ends, always=cell["oracle"]["name"] == "mixed"),
        masks,
        test_items,
        test_labels,
        test_domains,
        stream,
    )


def chunk_tasks(cell: dict, c: Scenario) -> Identifiers:
    """The stream's chunks as tasks, whatever the oracle tells the learner."""
    return oracles.identify({"name": "chunks"}, cell["order"], c.stream, c.labels, c.test_labels, c.outputs, c.seed)


def restrictions_at_test(cell: dict, scenario: Scenario) -> dict[str, np.ndarray | None]:
    """The restrictions under which a run is evaluated: name → bool [m, K], the classes that compete for each test item.

    `none` lets all compete (None). The others admit the classes that share a task with any class of the item's test
    batch. The task is one of the run's own oracle (`oracle`), a chunk of the data (`data`), or a group of an
    independent partition (`independent`). A run without an oracle is evaluated under each of `evaluation.oracles`, by
    name: `sp10/oracle`, `sp10/independent`, ….
    """
    found: dict[str, np.ndarray | None] = {"none": None}
    given = {"": cell["oracle"]} | {f"{name}/": oracle for name, oracle in cell["evaluation"]["oracles"].items()}
    order, batch = cell["order"], cell["evaluation"].get("batch", cell["budget"]["batch"])
    outputs = scenario.outputs
    for prefix, oracle in given.items():
        domains = oracle["name"] == "chunks" and oracles.task_of_class(oracle, order, outputs, scenario.seed) is None
        if oracle["name"] in ("none", "mixed") or domains:
            continue
        for view in restrictions.VIEWS:
            mask = restrictions.view_masks(view, oracle, order, scenario.test_labels, outputs, batch, scenario.seed)
            if mask is not None or view != "data":
                found[f"{prefix}{view}"] = mask
    return found
