"""Oracles, which tell a learner the task of every item (`rules`, section 3.2), and when a task changes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clpapers.randomness import generator
from clpapers.streams.chunks import chunks_of_classes, class_order, groups
from clpapers.streams.stream import Stream


@dataclass(frozen=True, eq=False)
class Identifiers:
    """The tasks of n stream positions and m test items. Classes are a learner's outputs (`class_of_output`).

    tasks: their number; 1 where the oracle names none (`none`, `mixed`) or leaves them to the learner (`entropy`).
    of_class: int64 [K], class → task; None where the task does not follow from the class.
    train: int64 [n] and test: int64 [m], the task of each stream position and test item; 0 where unknown.
    task_classes: bool [tasks, K], the classes that each task may hold.
    """

    tasks: int
    of_class: np.ndarray | None
    train: np.ndarray
    test: np.ndarray
    task_classes: np.ndarray


def identify(
    oracle: dict,
    order: dict,
    stream: Stream,
    labels: np.ndarray,
    test_labels: np.ndarray,
    classes: int,
    seed: int,
) -> Identifiers:
    """The tasks that an `oracle` names for a `stream` made by an `order`, and for a test split.

    `split`, `dominant_tasks` and, on streams of disjoint classes, `chunks` name the task of an item's class
    (`task_of_class`). `random_tasks` draws one of its `tasks` for every position and test item. On other streams
    `chunks` names the chunk of a position, from 0 in each of an order's `cycles`, and 0 for all test items. `none`,
    `entropy` and `mixed` name no task.

    labels: [n], of the stream's positions. test_labels: [m], of the test items.

    Raises ValueError for more tasks than classes, and for a task without a class.
    """
    n, m = stream.indices.size, test_labels.size
    of_class = task_of_class(oracle, order, classes, seed)
    if of_class is not None:
        tasks = int(of_class.max()) + 1
        task_classes = np.arange(tasks)[:, None] == of_class
        return Identifiers(tasks, of_class, of_class[labels], of_class[test_labels], task_classes)
    tasks, train, test = 1, np.zeros(n, dtype=np.int64), np.zeros(m, dtype=np.int64)
    if oracle["name"] == "random_tasks":
        tasks = oracle["tasks"]
        train = generator(seed, "oracle stream tasks").integers(tasks, size=n)
        test = generator(seed, "oracle test tasks").integers(tasks, size=m)
    elif oracle["name"] == "chunks":
        tasks = (stream.boundaries.size + 1) // order.get("cycles", 1)
        train = stream.chunk % tasks
    return Identifiers(tasks, None, train, test, np.ones((tasks, classes), dtype=bool))


def task_of_class(oracle: dict, order: dict, classes: int, seed: int) -> np.ndarray | None:
    """The task of each class, int64 [classes]; None where it does not follow from the class.

    `split` cuts the seed's order of the classes into `tasks` groups as equal as possible, larger first (appendix B),
    or, with `aligned` false, an order of the oracle's own. `dominant_tasks` gives each task one of the `shares` of the
    classes, in the oracle's own order. `chunks` takes the `order`'s chunks of classes. Raises ValueError as `identify`.
    """
    name = oracle["name"]
    if name == "chunks":
        return chunks_of_classes(order, classes, seed)
    if name not in ("split", "dominant_tasks"):
        return None
    if name == "dominant_tasks":
        sizes = shared_out(oracle["shares"], classes)
        of_class = np.empty(classes, dtype=np.int64)
        of_class[_own_order(classes, seed)] = np.repeat(np.arange(sizes.size), sizes)
        return of_class
    if oracle["tasks"] > classes:
        raise ValueError(f"oracle split: {oracle['tasks']} tasks are more than the {classes} classes")
    aligned = oracle.get("aligned", True)
    return groups(class_order(order, classes, seed) if aligned else _own_order(classes, seed), oracle["tasks"])


def shared_out(shares: Sequence[float], classes: int) -> np.ndarray:
    """The number of classes of each task by its share, int64 [tasks]; cumulative shares are rounded.

    Raises ValueError for shares that do not sum to 1, or leave a task without a class.
    """
    if not math.isclose(sum(shares), 1):
        raise ValueError(f"shares {list(shares)} sum to {sum(shares):g}, not to 1")
    sizes = np.diff(np.rint(np.cumsum([0, *shares]) * classes)).astype(np.int64)
    if not sizes.all():
        raise ValueError(f"shares {list(shares)} leave a task with none of the {classes} classes")
    return sizes


def _own_order(classes: int, seed: int) -> np.ndarray:
    return generator(seed, "oracle classes").permutation(classes)


def task_changes(tasks: np.ndarray, ends: np.ndarray, *, always: bool = False) -> np.ndarray:
    """Whether the task changes with each batch, bool [T]: the trigger of every learner that uses task changes.

    Batch t holds the positions from ends[t-1] to ends[t]-1. It brings a change if it holds several of the `tasks` [n],
    or another task than the batch before. A batch of several tasks differs from any other. With `always` every batch
    counts as one of several tasks. The first batch brings no change, since no learning precedes it.
    """
    starts = np.concatenate([[0], ends[:-1]])
    lowest, highest = np.minimum.reduceat(tasks, starts), np.maximum.reduceat(tasks, starts)
    mixed = (lowest != highest) | always
    changes = mixed.copy()
    changes[1:] |= mixed[:-1] | (lowest[1:] != lowest[:-1])
    changes[0] = False
    return changes
