"""Which classes come together: the random order of a seed's classes, and the chunks that orders make of it.

A file of its own, so that a new order does not touch what oracles, and so runs, are made of.
"""

import numpy as np

from clpapers.randomness import generator

CLASS_CHUNKS = ("split", "split_two", "split_range")  # orders whose chunks share no class


def class_order(classes: int, seed: int) -> np.ndarray:
    """π, the random order of the classes that is a seed's in every order and oracle: int64 [classes]."""
    return generator(seed, "split classes").permutation(classes)


def chunks_of_classes(order: dict, classes: int, seed: int) -> np.ndarray | None:
    """Which of the tasks 0 … tasks − 1 of an order has each class, int64 [classes]; −1 for one not in a `split_range`.

    Chunks i and tasks + i of `split_two` are of the same classes, and count as i. None for the other orders, whose
    chunks share classes. Raises ValueError for more tasks than classes, and for a range of classes that there is not.
    """
    if order["name"] not in CLASS_CHUNKS:
        return None
    present = classes_of(order, classes)
    if order["tasks"] > len(present):
        raise ValueError(f"order {order['name']}: tasks: {order['tasks']} is more than the {len(present)} classes")
    of_class = np.full(classes, -1)
    of_class[present] = groups(class_order(len(present), seed), order["tasks"])
    return of_class


def classes_of(order: dict, classes: int) -> range:
    """The classes that an order shows; all, but for `split_range`. Raises ValueError for a range that there is not."""
    if order["name"] != "split_range":
        return range(classes)
    if not order["first"] <= order["last"] < classes:
        raise ValueError(f"order split_range: {order['first']} to {order['last']} are not among the {classes} classes")
    return range(order["first"], order["last"] + 1)


def groups(dealt: np.ndarray, parts: int) -> np.ndarray:
    """The classes [K] as `dealt`, cut into parts of sizes as equal as can be, larger first: class → part, int64 [K]."""
    part_of = np.empty(dealt.size, dtype=np.int64)
    part_of[dealt] = np.repeat(np.arange(parts), [part.size for part in np.array_split(dealt, parts)])
    return part_of
