"""Restrictions of the classes that compete, in training and at test (`rules`, section 4.4)."""

from typing import NamedTuple

import numpy as np

from clpapers.randomness import generator
from clpapers.streams.chunks import chunks_of_classes, groups
from clpapers.streams.oracles import task_of_class
from clpapers.streams.stream import batches


class Restriction(NamedTuple):
    """The partitions of the classes that restrict training and test.

    aligned: whether the oracle's partition I is the data's own, D.
    train: "oracle" where I restricts training (or, in a cell with `present`, the classes of the batch do); or "none".
    test: J, which restricts the predictions: "oracle" (I), "data" (D), "independent" (of both); or "none".
    """

    aligned: bool
    train: str
    test: str


RESTRICTIONS = {
    "single_head": Restriction(True, "none", "none"),
    "es": Restriction(True, "oracle", "oracle"),
    "es_ed": Restriction(True, "oracle", "independent"),
    "ea": Restriction(True, "oracle", "none"),
    "td": Restriction(False, "oracle", "oracle"),
    "td_es": Restriction(False, "oracle", "data"),
    "td_es_ed": Restriction(False, "oracle", "independent"),
}
VIEWS = ("oracle", "data", "independent")  # values of `test` that restrict it; the other is "none"


def union_masks(of_class: np.ndarray | None, labels: np.ndarray, ends: np.ndarray, classes: int) -> np.ndarray:
    """The classes that compete in each batch, bool [T, classes]: the classes of every task that occurs in it.

    `of_class` [classes] is class → task, −1 for a class that never competes; None lets all compete. `labels` [n] are
    the items', `ends` [T] the batches'.
    """
    if of_class is None:
        return np.ones((len(ends), classes), dtype=bool)
    occurs = np.zeros((len(ends), of_class.max() + 1), dtype=bool)
    occurs[np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0)), of_class[labels]] = True
    return occurs[:, of_class] & (of_class >= 0)


def test_batches(
    labels: np.ndarray, of_chunk: np.ndarray | None, batch: int | str, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The order of test items with `labels` [m], int64 [m], and the ends of their batches in it, int64 [T].

    Chunks follow one another as in the data, shuffled inside; no batch crosses them. `of_chunk` [K] is class → chunk;
    None makes all one chunk. `batch` is a number or the word `task`, as for a stream (`batches`).
    """
    order = generator(seed, "test order").permutation(labels.size)
    if of_chunk is None:
        return order, batches(np.empty(0, dtype=np.int64), labels.size, batch)
    chunk = of_chunk[labels[order]]
    order = order[np.argsort(chunk, kind="stable")]
    ends = np.cumsum(np.bincount(chunk))
    return order, batches(np.unique(ends[(ends > 0) & (ends < labels.size)]), labels.size, batch)


def evaluation_partition(view: str, oracle: dict, order: dict, classes: int, seed: int) -> np.ndarray | None:
    """J, the partition of the classes that restricts the predictions of a `view`: class → task, int64 [classes].

    `oracle`: I itself. `data`: D, the chunks of the `order`. `independent`: classes dealt at random into as many groups
    as I has tasks, as equal as possible. None lets all classes compete: for the view `none`, for `data` where chunks
    share classes, and for the others where the oracle's task does not follow from the class.
    """
    if view == "none":
        return None
    if view == "data":
        return chunks_of_classes(order, classes, seed)
    of_class = task_of_class(oracle, order, classes, seed)
    if view == "oracle" or of_class is None:
        return of_class
    return groups(generator(seed, "evaluation classes").permutation(classes), int(of_class.max()) + 1)


def view_masks(
    view: str, oracle: dict, order: dict, test_labels: np.ndarray, classes: int, batch: int | str, seed: int
) -> np.ndarray | None:
    """The classes that compete for each test item under a `view`, bool [m, classes]; None where all do.

    An item has the classes of its test batch (`test_batches`, `union_masks`); rows are in the test split's order.
    """
    partition = evaluation_partition(view, oracle, order, classes, seed)
    if partition is None:
        return None
    served, ends = test_batches(test_labels, chunks_of_classes(order, classes, seed), batch, seed)
    masks = np.empty((test_labels.size, classes), dtype=bool)
    masks[served] = np.repeat(
        union_masks(partition, test_labels[served], ends, classes), np.diff(ends, prepend=0), axis=0
    )
    return masks
