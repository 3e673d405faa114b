"""Which classes come together: the random order of a seed's classes, and the chunks that orders make of it.

A file of its own, so that a new order does not touch what oracles, and so runs, are made of.
"""

import numpy as np

from clpapers.randomness import generator

CLASS_CHUNKS = ("split", "split_two")  # orders whose chunks share no class


def class_order(classes: int, seed: int) -> np.ndarray:
    """π, the random order of the classes that is a seed's in every order and oracle: int64 [classes]."""
    return generator(seed, "split classes").permutation(classes)


def chunks_of_classes(order: dict, classes: int, seed: int) -> np.ndarray | None:
    """Which of the tasks 0 … tasks − 1 of `split` or `split_two` has each class, int64 [classes].

    Chunks i and tasks + i of `split_two` are of the same classes, and count as i. None for the other orders, whose
    chunks share classes. Raises ValueError for more tasks than classes.
    """
    if order["name"] not in CLASS_CHUNKS:
        return None
    if order["tasks"] > classes:
        raise ValueError(f"order {order['name']}: tasks: {order['tasks']} is more than the {classes} classes")
    return groups(class_order(classes, seed), order["tasks"])


def groups(dealt: np.ndarray, parts: int) -> np.ndarray:
    """The classes [K] as `dealt`, cut into parts of sizes as equal as can be, larger first: class → part, int64 [K]."""
    part_of = np.empty(dealt.size, dtype=np.int64)
    part_of[dealt] = np.repeat(np.arange(parts), [part.size for part in np.array_split(dealt, parts)])
    return part_of
