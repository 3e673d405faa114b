"""A seed's order of the classes, the chunk of each class, and the class of each output.

Kept apart from `orders`, so that a new order does not change the code that oracles and runs depend on.
"""

import numpy as np

from clpapers.randomness import generator

# Orders whose tasks share no output.
CLASS_CHUNKS = ("split", "split_two", "split_range", "split_overlapping", "split_ordered")

# The order in which an output stands for a place within the task, as in domain-incremental learning.
DOMAINS = "split_domains"

# Orders that may take the classes as the code of other authors draws them.
DRAWN = ("split", "split_range", DOMAINS)

# Orders that take the classes as they are numbered.
ORDERED = ("split_ordered", "dominant_ordered")


def class_order(order: dict, classes: int, seed: int) -> np.ndarray:
    """π, a seed's random permutation of the classes, the same for every order and oracle: int64 [classes].

    For an order of `ORDERED` it is the identity. With `random_state` NumPy's RandomState of that number plus the seed
    draws it first of all (`agem`, its authors' code), or, `renumbered`, its inverse, each class's place (van de Ven et
    al. 2022, their code).
    """
    if order["name"] in ORDERED:
        return np.arange(classes)
    if order["name"] in DRAWN and "random_state" in order:
        drawn = np.random.RandomState(order["random_state"] + seed).permutation(classes)
        return np.argsort(drawn) if "renumbered" in order else drawn
    return generator(seed, "split classes").permutation(classes)


def overlapping_classes(order: dict, classes: int, seed: int) -> np.ndarray:
    """The classes of each task of `split_overlapping`, int64 [tasks, per_task]: distinct in a task, drawn for each.

    Raises ValueError for more classes a task than the order has, and for a range outside the data set's classes.
    """
    present, per_task = classes_of(order, classes), order["per_task"]
    if per_task > len(present):
        raise ValueError(f"order {order['name']}: per_task: {per_task} is more than the {len(present)} classes")
    rng = generator(seed, "split_overlapping classes")
    return np.stack([rng.choice(present, per_task, replace=False) for _ in range(order["tasks"])])


def domains_of_classes(order: dict, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The task of each class of `split_domains`, as of `split`, and its place there, from 0 up: int64 [classes] each.

    Raises ValueError for more tasks than classes.
    """
    if order["tasks"] > classes:
        raise ValueError(f"order {order['name']}: tasks: {order['tasks']} is more than the {classes} classes")
    dealt = class_order(order, classes, seed)
    place = np.empty(classes, dtype=np.int64)
    place[dealt] = np.concatenate([np.arange(part.size) for part in np.array_split(dealt, order["tasks"])])
    return groups(dealt, order["tasks"]), place


def class_of_output(order: dict, classes: int, seed: int) -> np.ndarray:
    """The class that each output of a learner stands for, int64 [outputs]: class k is output k.

    On `split_overlapping` a class has a separate output in each of its tasks (`agem`, section 6): output
    task · per_task + place. On `split_domains` an output stands for a class of each task: −1.
    """
    if order["name"] == DOMAINS:
        return np.full(-(-classes // order["tasks"]), -1)
    if order["name"] != "split_overlapping":
        return np.arange(classes)
    return overlapping_classes(order, classes, seed).ravel()


def output_labels(order: dict, labels: np.ndarray, chunk: np.ndarray, classes: int, seed: int) -> np.ndarray:
    """The outputs that stand for the classes `labels` [n] of stream items in their chunks, `chunk` [n]: int64 [n]."""
    if order["name"] == DOMAINS:
        return domains_of_classes(order, classes, seed)[1][labels]
    if order["name"] != "split_overlapping":
        return labels
    task = chunk % order["tasks"]
    places = overlapping_classes(order, classes, seed)[task] == labels[:, None]
    return task * order["per_task"] + places.argmax(axis=1)


def outputs_at_test(order: dict, labels: np.ndarray, classes: int, seed: int) -> tuple[np.ndarray, ...]:
    """Test items and their outputs, int64 [m] each: an item comes once for every output of its class, `labels` [M].

    With them comes the task of each, where an output alone does not tell it: int64 [m] on `split_domains`, else [0].
    """
    if order["name"] == DOMAINS:
        task, place = domains_of_classes(order, classes, seed)
        return np.arange(labels.size), place[labels], task[labels]
    return *np.nonzero(labels[:, None] == class_of_output(order, classes, seed)), labels[:0]


def chunks_of_classes(order: dict, classes: int, seed: int) -> np.ndarray | None:
    """The task, 0 … tasks − 1, of each class, int64 [classes]; −1 for a class outside a `split_range`.

    Chunks i and tasks + i of `split_two`, and of an order with `cycles`, have the same classes and count as i. On
    `split_overlapping`, whose tasks share classes but no output, `classes` counts outputs. None for the other orders,
    whose tasks share classes.
    Raises ValueError for more tasks than classes, and for a range outside the data set's classes.
    """
    if order["name"] not in CLASS_CHUNKS:
        return None
    if order["name"] == "split_overlapping":
        return np.arange(classes) // order["per_task"]
    present = classes_of(order, classes)
    if order["tasks"] > len(present):
        raise ValueError(f"order {order['name']}: tasks: {order['tasks']} is more than the {len(present)} classes")
    of_class = np.full(classes, -1)
    of_class[present] = groups(class_order(order, len(present), seed), order["tasks"])
    return of_class


def classes_of(order: dict, classes: int) -> range:
    """The classes that an order may show: all, or its range. Raises ValueError for a range outside them."""
    if "first" not in order:
        return range(classes)
    name, first, last = order["name"], order["first"], order["last"]
    if not first <= last < classes:
        raise ValueError(f"order {name}: {first} to {last} are not among the {classes} classes")
    return range(first, last + 1)


def groups(dealt: np.ndarray, parts: int) -> np.ndarray:
    """Cut the classes, in the order `dealt` [K], into parts as equal as possible, larger first: class → part [K]."""
    part_of = np.empty(dealt.size, dtype=np.int64)
    part_of[dealt] = np.repeat(np.arange(parts), [part.size for part in np.array_split(dealt, parts)])
    return part_of
