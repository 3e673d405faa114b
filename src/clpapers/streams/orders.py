"""The orders a data set can be streamed in: their names in paths, and the streams they make."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from clpapers.randomness import generator
from clpapers.streams import stf
from clpapers.streams.chunks import chunks_of_classes, class_order, domains_of_classes, overlapping_classes
from clpapers.streams.stream import COLUMNS, Stream

FLAGS = ("unpermuted_first", "once")  # true or false, of `permuted_pixels`

# --- names of orders ---------------------------------------------------------------------------------------


def canonical(order: dict) -> dict:
    """The canonical form of an order, from which its slug, its streams and any hash are made.

    It always has `length` (None: the whole training split), `epochs` and `cycles` only from two up, the `FLAGS` only
    where they are true, and `items` of a task and `random_state` only where they are given. `mu_sigma` and `share` are
    rounded to 6 significant digits, so that √(1/12)/5 gives one order, however it was computed or printed.

    Raises ValueError, naming the key, for an unknown name, a missing or unknown key, or a value out of range.
    """
    name = order.get("name")
    if name not in ORDERS:
        raise ValueError(f"order: name: {name!r} is not one of {', '.join(ORDERS)}")
    _, checks = ORDERS[name]
    options = (*checks, "length", *OPTIONAL.get(name, ()))
    for key in order:
        if key not in ("name", *options):
            raise ValueError(f"order {name}: {key!r} is not one of {', '.join(options)}")
    for key in checks:
        if key not in order:
            raise ValueError(f"order {name}: {key} is missing")
    values = {key: check(f"order {name}: {key}", order[key]) for key, check in checks.items()}
    length = order.get("length")
    if length is not None:
        length = _count(f"order {name}: length", length)
    times = {key: _count(f"order {name}: {key}", order.get(key, 1)) for key in ("epochs", "cycles")}
    flags = {key: order[key] for key in FLAGS if key in order}
    for key, flag in flags.items():
        if not isinstance(flag, bool):
            raise ValueError(f"order {name}: {key}: {flag!r} is not true or false")
    optional = {key: count for key, count in times.items() if count > 1} | {key: True for key in flags if flags[key]}
    for key in ("items", "random_state"):
        if key in order and key not in checks:
            optional[key] = _count(f"order {name}: {key}", order[key])
    if "items" in optional and optional.keys() & {"epochs", "cycles"}:
        raise ValueError(f"order {name}: items: a task of so many items is not repeated; leave out epochs and cycles")
    return {"name": name, **values, "length": length, **optional}


def slug(order: dict) -> str:
    """An order's part of a path, one for each canonical order: `stf-0.057735`, `random-n500`, `split-5-e10-c5`."""
    name, values, length, optional = _parts(order)
    values = [value for value in values if value is not None]
    parts = [name, *(f"{value:.6g}" if isinstance(value, float) else str(value) for value in values)]
    parts += [] if length is None else [f"n{length}"]
    parts += [key if value is True else f"{key[0]}{value}" for key, value in optional.items()]
    return "-".join(parts)


def _parts(order: dict) -> tuple[str, list, int | None, dict]:
    """Name, own values, length and optional values of an order."""
    order = canonical(order)
    optional = {key: order.pop(key) for key in OPTIONAL.get(order["name"], ()) if key in order}
    name, *values, length = order.values()
    return name, values, length, optional


def _count(where: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{where}: {value!r} is not a whole number from 1 up")
    return int(value)


def _count_or_none(where: str, value: Any) -> int | None:
    return None if value is None else _count(where, value)


def _class(where: str, value: Any) -> int:
    if value == 0 and isinstance(value, Integral) and not isinstance(value, bool):
        return 0
    return _count(where, value)


def _inside(top: float) -> Callable[[str, Any], float]:
    def check(where: str, value: Any) -> float:
        rounded = float(f"{value:.6g}") if isinstance(value, Real) else math.nan
        if not 0 < rounded < top:
            raise ValueError(f"{where}: {value!r} is not, at 6 significant digits, a number inside (0, {top})")
        return rounded

    return check


# --- streams -----------------------------------------------------------------------------------------------


def make(
    order: dict,
    labels: np.ndarray,
    seed: int,
    pixels: int | None = None,
    recorded: tuple[np.ndarray, np.ndarray] | None = None,
    classes: int | None = None,
) -> Stream:
    """The stream of `seed`: the training items with these `labels`, in an `order` (see `canonical`).

    `labels` are integers [N] from 0 up, however arranged; ascending, as the data sets have them, is fastest. `classes`
    is the number that the data set declares, by which oracles and learners count too; by default the labels' own.
    With a `length`, a uniformly drawn subset of that many items is ordered. Every draw has its own purpose
    (`generator`), so at one seed neither the subset nor the classes' parameters depend on what else is drawn.
    With `epochs` each task's items come that many times, shuffled afresh each time, before the next task begins
    (`agem`, appendix F). With `items` a task has that many, epoch after epoch and the last one cut, as where a paper
    counts steps. With `cycles` the whole sequence of tasks comes that many times (`desiderata`, B.6).

    Only `permuted_pixels` needs `pixels`, H·W·C of an image. With `unpermuted_first` its first task keeps images as
    they are. With `once` each item comes in one task alone (`rules`, section 3.1). With `random_state` NumPy's
    RandomState of that number plus the seed draws the permutations, and on `split_range` the tasks' classes (`agem`,
    its authors' code). Only `instances` needs `recorded`, the instance that each item shows and its frame number, int64
    [N] each.

    Raises ValueError for a bad order, for bad labels, for a length or tasks that the labels cannot fill, and for
    missing `pixels` or `recorded`.
    """
    name, values, length, optional = _parts(order)
    if labels.ndim != 1 or not labels.size or not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0:
        raise ValueError("labels: not a non-empty list of integers from 0 up")
    classes = int(labels.max()) + 1 if classes is None else classes
    if labels.max() >= classes:
        raise ValueError(f"labels: {labels.max()} is none of {classes} classes")
    arrange, _ = ORDERS[name]
    if "once" in optional:
        arrange = partial(arrange, once=True)
    if name == "split_range" and "random_state" in optional:
        arrange = partial(arrange, random_state=optional["random_state"])
    transforms = NO_TRANSFORMS
    if name == "permuted_pixels":
        transforms = _pixel_permutations(values[0], pixels, seed, optional.get("random_state"))
    if "unpermuted_first" in optional:
        transforms[0] = np.arange(transforms.shape[1])
    if name == "instances" and recorded is None:
        raise ValueError("order instances: these items are no frames of recorded instances; take another order")
    columns = (recorded or ()) if name == "instances" else ()
    if length is None:
        indices, *rest = arrange(labels, classes, seed, *values, *columns)
    elif length > labels.size:
        raise ValueError(f"order {name}: length: {length} is more than the training split's {labels.size} items")
    else:
        subset = generator(seed, "subset").choice(labels.size, length, replace=False, shuffle=False)
        subset.sort()
        positions, *rest = arrange(labels[subset], classes, seed, *values, *(column[subset] for column in columns))
        indices = subset[positions]
    if optional.keys() & {"epochs", "cycles", "items"}:
        epochs, cycles = optional.get("epochs", 1), optional.get("cycles", 1)
        indices, *rest = _repeated(indices, rest[-1], epochs, cycles, optional.get("items"), classes, seed)
    times, parameters, boundaries = rest
    return Stream(indices, times, parameters, boundaries, transforms, seed)


# Each function takes labels [n], the number of classes, the seed and the order's own values. `instances` also takes the
# instance and frame of each item, [n]. All return `Parts`, the first four arrays of a Stream over these n items.

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

NO_BOUNDARIES = np.empty(0, dtype=np.int64)
NO_TRANSFORMS = np.empty((0, 0), dtype=np.int64)


def _stf(labels: np.ndarray, classes: int, seed: int, mu_sigma: float) -> Parts:
    """Simulated task-free: Algorithms 1 and 2 of `stf`."""
    parameters = stf.class_distributions(classes, mu_sigma, generator(seed, "stf classes"))
    times = stf.timestamps(labels, parameters, generator(seed, "stf timestamps"))
    indices = stf.permute(times, generator(seed, "stf ties"))
    return indices, stf.rounded(times), stf.rounded(parameters), NO_BOUNDARIES


def _split(labels: np.ndarray, classes: int, seed: int, tasks: int, name: str = "split") -> Parts:
    """Disjoint tasks: classes dealt at random, sizes as equal as can be (larger first), each task iid."""
    chunk = _chunk({"name": name, "tasks": tasks}, labels, classes, seed)
    return _in_chunks(name, chunk, tasks, classes, seed)


def _split_range(
    labels: np.ndarray, classes: int, seed: int, first: int, last: int, tasks: int, **drawn_by: int
) -> Parts:
    """As split, with the classes `first` to `last` only: tasks for selection, and the others (`agem`, section 2).

    drawn_by: `random_state`, if the order has it.
    """
    order = {"name": "split_range", "first": first, "last": last, "tasks": tasks, **drawn_by}
    chunk = _chunk(order, labels, classes, seed)
    kept = np.flatnonzero(chunk >= 0)
    indices, times, parameters, boundaries = _in_chunks("split_range", chunk[kept], tasks, classes, seed)
    return kept[indices], times, parameters, boundaries


def _split_overlapping(
    labels: np.ndarray, classes: int, seed: int, first: int, last: int, tasks: int, per_task: int
) -> Parts:
    """Tasks that may share classes, but no item (`agem`, section 6).

    A class's items are dealt at random, as equally as possible, to its tasks; classes without a task are left out.
    """
    name = "split_overlapping"
    order = {"name": name, "first": first, "last": last, "tasks": tasks, "per_task": per_task}
    drawn = overlapping_classes(order, classes, seed).ravel()
    outputs, counts = np.argsort(drawn, kind="stable"), np.bincount(drawn, minlength=classes)  # class by class
    items = np.bincount(labels, minlength=classes)
    if (items < counts).any():
        short = int(np.argmax(items < counts))
        raise ValueError(
            f"order {name}: tasks: {counts[short]} of them have class {short}, which has {items[short]} items; "
            "lengthen the stream or lower tasks"
        )
    ranks = _ranks(labels, classes, generator(seed, "split_overlapping parts"))
    kept = np.flatnonzero(counts[labels])
    kept_labels = labels[kept]
    output = outputs[(np.cumsum(counts) - counts)[kept_labels] + ranks[kept] % counts[kept_labels]]
    indices, times, parameters, boundaries = _in_chunks(name, output // per_task, tasks, classes, seed)
    return kept[indices], times, parameters, boundaries


def _split_domains(labels: np.ndarray, classes: int, seed: int, tasks: int) -> Parts:
    """The tasks and items of split, in which an output stands for a place within the task (van de Ven et al. 2022)."""
    chunk = domains_of_classes({"name": "split_domains", "tasks": tasks}, classes, seed)[0][labels]
    return _in_chunks("split", chunk, tasks, classes, seed)


def _split_two(labels: np.ndarray, classes: int, seed: int, tasks: int) -> Parts:
    """Split twice, on a random half of each class's items each time (larger half first): rule 4 of `rules`."""
    chunk = _chunk({"name": "split_two", "tasks": tasks}, labels, classes, seed)
    half = _ranks(labels, classes, generator(seed, "split_two halves")) % 2
    return _in_chunks("split_two", chunk + tasks * half, 2 * tasks, classes, seed)


def _dominant(labels: np.ndarray, classes: int, seed: int, share: float, name: str = "dominant") -> Parts:
    """A chunk for each class, with `share` of its items and an equal part (±1) of the rest of every other class's.

    The remainder goes, one item each, to the chunks that follow the class's own.
    """
    chunk_of = np.argsort(class_order({"name": name}, classes, seed))
    own = chunk_of[labels]
    dominant = np.rint(np.bincount(labels, minlength=classes) * (share if classes > 1 else 1)).astype(np.int64)
    past = _ranks(labels, classes, generator(seed, "dominant parts")) - dominant[labels]
    chunk = np.where(past < 0, own, (own + 1 + past % max(classes - 1, 1)) % classes)
    return _in_chunks("dominant", chunk, classes, classes, seed)  # the same draws, however the classes come


def _permuted_pixels(labels: np.ndarray, classes: int, seed: int, tasks: int, once: bool = False) -> Parts:
    """Domains: all items, shuffled afresh, once for each task; each task has its own row of `_pixel_permutations`.

    With `once` one shuffle of all items is cut into tasks, as equal as can be (larger first).
    """
    items = generator(seed, "permuted_pixels items")
    if once and labels.size < tasks:
        raise ValueError(f"order permuted_pixels: one of {tasks} tasks has no item among {labels.size}; lower tasks")
    parts = [items.permutation(labels.size) for _ in range(1 if once else tasks)]
    if once:
        parts = np.array_split(parts[0], tasks)
    indices = np.concatenate(parts)
    return indices, *_undrawn(indices.size, classes), np.cumsum([part.size for part in parts])[:-1]


def _offline(labels: np.ndarray, classes: int, seed: int, items: int) -> Parts:
    """`items` items, epoch after epoch, each a fresh permutation and none marked by a boundary."""
    epochs = generator(seed, "offline items")
    indices = np.concatenate([epochs.permutation(labels.size) for _ in range(math.ceil(items / labels.size))])[:items]
    return indices, *_undrawn(items, classes), NO_BOUNDARIES


def _instances(
    labels: np.ndarray, classes: int, seed: int, burst: int | None, instance: np.ndarray, frame: np.ndarray
) -> Parts:
    """Bursts of an instance's successive frames; the bursts of all instances in random order (`streaming`, 2.1).

    Each instance's sequence is cut into bursts of `burst` frames, the last shorter; None makes it one burst.
    """
    sequences = np.split(np.lexsort((frame, instance)), np.cumsum(np.unique(instance, return_counts=True)[1])[:-1])
    size = burst or labels.size
    bursts = [frames[start : start + size] for frames in sequences for start in range(0, frames.size, size)]
    drawn = [bursts[i] for i in generator(seed, "instances bursts").permutation(len(bursts))]
    return np.concatenate(drawn), *_undrawn(labels.size, classes), np.cumsum([part.size for part in drawn])[:-1]


def _random(labels: np.ndarray, classes: int, seed: int) -> Parts:
    """Stationary: one uniformly drawn permutation."""
    indices = generator(seed, "random items").permutation(labels.size)
    return indices, *_undrawn(labels.size, classes), NO_BOUNDARIES


def _chunk(order: dict, labels: np.ndarray, classes: int, seed: int) -> np.ndarray:
    """The chunk of each item, [n], in an order whose chunks are groups of classes."""
    chunk = chunks_of_classes(order, classes, seed)
    assert chunk is not None
    return chunk[labels]


def _in_chunks(name: str, chunk: np.ndarray, chunks: int, classes: int, seed: int) -> Parts:
    """Items by their `chunk` [n], shuffled inside each."""
    sizes = np.bincount(chunk, minlength=chunks)
    if not sizes.all():
        raise ValueError(f"order {name}: one of {chunks} chunks has no item among {chunk.size}; lengthen the stream")
    starts = np.cumsum(sizes)[:-1]
    indices = np.argsort(chunk.astype(np.int16) if chunks < 1 << 15 else chunk, kind="stable")  # int16 by radix
    items = generator(seed, f"{name} items")
    for part in np.split(indices, starts):
        items.shuffle(part)
    return indices, *_undrawn(chunk.size, classes), starts


def _repeated(
    indices: np.ndarray, boundaries: np.ndarray, epochs: int, cycles: int, items: int | None, classes: int, seed: int
) -> Parts:
    """Repeat each chunk of a stream `epochs` times, or up to `items`, and the whole `cycles` times.

    Repetitions are shuffled afresh.
    """
    rng, repeated = generator(seed, "epochs"), []
    for cycle, chunk in itertools.product(range(cycles), np.split(indices, boundaries)):
        size = items or epochs * chunk.size
        visits = range(math.ceil(size / chunk.size))
        each = [rng.permutation(chunk) if cycle or visit else chunk for visit in visits]
        repeated.append(np.concatenate(each)[:size])
    whole = np.concatenate(repeated)
    return whole, *_undrawn(whole.size, classes), np.cumsum([chunk.size for chunk in repeated])[:-1]


def _ranks(labels: np.ndarray, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Each item's rank, from 0 up, in a random order of its class's items: int64 [n]."""
    drawn = rng.permutation(labels.size)
    by_class = drawn[np.argsort(labels[drawn], kind="stable")]
    sizes = np.bincount(labels, minlength=classes)
    ranks = np.empty(labels.size, dtype=np.int64)
    ranks[by_class] = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return ranks


def _pixel_permutations(tasks: int, pixels: int | None, seed: int, random_state: int | None = None) -> np.ndarray:
    """A permutation for each task, the first included: int64 [tasks, pixels]."""
    if pixels is None:
        raise ValueError("order permuted_pixels: pixels: how many an image has was not given")
    rng: np.random.Generator | np.random.RandomState = generator(seed, "permuted_pixels pixels")
    if random_state is not None:
        rng = np.random.RandomState(random_state + seed)  # NumPy keeps its draws as they were
    return np.stack([rng.permutation(pixels) for _ in range(tasks)])


def _undrawn(items: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Timestamps position/n, and no class parameters."""
    times = np.arange(items, dtype=float)
    times /= items
    return times, np.full((classes, len(COLUMNS)), np.nan)


# Order name → the function that arranges items, and the order's own keys, each with the check that normalises it.
ORDERS: dict[str, tuple[Callable, dict[str, Callable]]] = {
    "stf": (_stf, {"mu_sigma": _inside(stf.GAMMA)}),
    "split": (_split, {"tasks": _count}),
    "split_two": (_split_two, {"tasks": _count}),
    "split_domains": (_split_domains, {"tasks": _count}),
    "split_ordered": (partial(_split, name="split_ordered"), {"tasks": _count}),  # `desiderata`, section 4.2.2
    "split_range": (_split_range, {"first": _class, "last": _class, "tasks": _count}),
    "split_overlapping": (_split_overlapping, {"first": _class, "last": _class, "tasks": _count, "per_task": _count}),
    "dominant": (_dominant, {"share": _inside(1)}),
    "dominant_ordered": (partial(_dominant, name="dominant_ordered"), {"share": _inside(1)}),
    "permuted_pixels": (_permuted_pixels, {"tasks": _count}),
    "instances": (_instances, {"burst": _count_or_none}),
    "random": (_random, {}),
    "offline": (_offline, {"items": _count}),
}
OPTIONAL = {
    **dict.fromkeys(("split", "split_ordered", "split_overlapping", "split_domains"), ("epochs", "cycles", "items")),
    "split_range": ("epochs", "cycles", "items", "random_state"),
    "permuted_pixels": ("epochs", "cycles", *FLAGS, "random_state"),
}
