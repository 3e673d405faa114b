"""The orders a data set can be streamed in: their names in paths, and the streams they make."""

import math
from numbers import Integral, Real

import numpy as np

from clpapers.randomness import generator
from clpapers.streams import stf
from clpapers.streams.stream import COLUMNS, Stream

# --- what an order is called -------------------------------------------------------------------------------


def canonical(order: dict) -> dict:
    """The one form of an order: what its slug and its streams, and any hash of it, are made from.

    `length` is always there (None: the whole training split), and `mu_sigma` is rounded to 6 significant
    digits, so that √(1/12)/5, however it was computed or printed, is one order.

    Raises ValueError, naming the key, for an unknown name, a missing or unknown key, or a value out of range.
    """
    name = order.get("name")
    if name not in ORDERS:
        raise ValueError(f"order: name: {name!r} is not one of {', '.join(ORDERS)}")
    _, checks = ORDERS[name]
    for key in order:
        if key not in ("name", *checks, "length"):
            raise ValueError(f"order {name}: {key!r} is not one of {', '.join((*checks, 'length'))}")
    for key in checks:
        if key not in order:
            raise ValueError(f"order {name}: {key} is missing")
    values = {key: check(f"order {name}: {key}", order[key]) for key, check in checks.items()}
    length = order.get("length")
    if length is not None:
        length = _count(f"order {name}: length", length)
    return {"name": name, **values, "length": length}


def slug(order: dict) -> str:
    """An order's part of a path, one for each canonical order: `stf-0.057735`, `split-5`, `random-n500`."""
    name, *values, length = canonical(order).values()
    parts = [name, *(f"{value:.6g}" if isinstance(value, float) else str(value) for value in values)]
    return "-".join(parts if length is None else [*parts, f"n{length}"])


def _count(where, value):
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{where}: {value!r} is not a whole number from 1 up")
    return int(value)


def _mu_sigma(where, value):
    rounded = float(f"{value:.6g}") if isinstance(value, Real) else math.nan
    if not 0 < rounded < stf.GAMMA:
        raise ValueError(f"{where}: {value!r} is not, at 6 significant digits, a number inside (0, {stf.GAMMA})")
    return rounded


# --- what it does ------------------------------------------------------------------------------------------


def make(order: dict, labels: np.ndarray, seed: int) -> Stream:
    """The stream of `seed`: the training items with these `labels`, in an `order` (see `canonical`).

    `labels` are integers [N] from 0 up, however arranged; ascending, as the data sets have them, is fastest.
    With a `length`, a uniformly drawn subset of that many items is ordered. Every draw has its own purpose
    (`generator`), so at one seed neither the subset nor the classes' parameters depend on what else is drawn.

    Raises ValueError for a bad order, for bad labels, and for a length or tasks that the labels cannot fill.
    """
    name, *values, length = canonical(order).values()
    if labels.ndim != 1 or not labels.size or not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0:
        raise ValueError("labels: not a non-empty list of integers from 0 up")
    arrange, _ = ORDERS[name]
    classes = int(labels.max()) + 1
    if length is None:
        return Stream(*arrange(labels, classes, seed, *values), seed)
    if length > labels.size:
        raise ValueError(f"order {name}: length: {length} is more than the training split's {labels.size} items")
    subset = generator(seed, "subset").choice(labels.size, length, replace=False, shuffle=False)
    subset.sort()
    positions, *rest = arrange(labels[subset], classes, seed, *values)
    return Stream(subset[positions], *rest, seed)


# Each of these takes labels [n], the number of classes, the seed and the order's own values, and returns the
# first four arrays of a Stream over those n items.


def _stf(labels, classes, seed, mu_sigma):
    """Simulated task-free: Algorithms 1 and 2 of `stf`."""
    parameters = stf.class_distributions(classes, mu_sigma, generator(seed, "stf classes"))
    times = stf.timestamps(labels, parameters, generator(seed, "stf timestamps"))
    indices = stf.permute(times, generator(seed, "stf ties"))
    return indices, times, parameters, np.empty(0, dtype=np.int64)


def _split(labels, classes, seed, tasks):
    """Disjoint tasks: classes dealt at random, sizes as equal as can be (larger first), each task iid."""
    if tasks > classes:
        raise ValueError(f"order split: tasks: {tasks} is more than the {classes} classes")
    dealt = generator(seed, "split classes").permutation(classes)
    task_of = np.empty(classes, dtype=np.int16 if tasks < 1 << 15 else np.int64)  # numpy sorts int16 by radix
    for task, group in enumerate(np.array_split(dealt, tasks)):
        task_of[group] = task
    task = task_of[labels]
    starts = np.cumsum(np.bincount(task, minlength=tasks))[:-1]
    if (np.diff(starts, prepend=0, append=labels.size) == 0).any():
        raise ValueError(f"order split: tasks: one of {tasks} has no item among {labels.size}; lengthen the stream")
    indices = np.argsort(task, kind="stable")
    items = generator(seed, "split items")
    for part in np.split(indices, starts):
        items.shuffle(part)
    return indices, *_undrawn(labels.size, classes), starts


def _random(labels, classes, seed):
    """Stationary: one uniformly drawn permutation."""
    indices = generator(seed, "random items").permutation(labels.size)
    return indices, *_undrawn(labels.size, classes), np.empty(0, dtype=np.int64)


def _undrawn(items, classes):
    """Timestamps position/n, and no class parameters."""
    times = np.arange(items, dtype=float)
    times /= items
    return times, np.full((classes, len(COLUMNS)), np.nan)


# An order's name: what arranges it, and its own keys with what checks and normalises each one's value.
ORDERS = {
    "stf": (_stf, {"mu_sigma": _mu_sigma}),
    "split": (_split, {"tasks": _count}),
    "random": (_random, {}),
}
