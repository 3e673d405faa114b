"""The orders a data set can be streamed in: their options, their names in paths, and the streams they make."""

import itertools
import math
from typing import Annotated, Any, ClassVar

import numpy as np

from clpapers.catalogue.options import Count, Positive, Share, Struct, bounds
from clpapers.randomness import generator
from clpapers.streams import stf
from clpapers.streams.chunks import chunks_of_classes, class_order, domains_of_classes, overlapping_classes
from clpapers.streams.stream import COLUMNS, Stream

NO_BOUNDARIES = np.empty(0, dtype=np.int64)
NO_TRANSFORMS = np.empty((0, 0), dtype=np.int64)

Parts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # the first four arrays of a Stream
Tasks = Annotated[Count, "how many"]
Class = Annotated[int, bounds(minimum=0), "class"]
Items = Annotated[Count, "of a task, epoch after epoch; of `offline`, in all"]
RandomState = Annotated[
    Count | None,
    "with the seed added, of NumPy's RandomState that permutes pixels or classes; or the project's own draws",
]

# --- orders ------------------------------------------------------------------------------------------------


class Order(Struct):
    """The options of an order, and how it arranges items."""

    name: ClassVar[str]
    length: Annotated[Count | None, "items of the training split that come; null: all"]

    def canonical(self) -> dict:
        """Name, own options and length; then the options that may be left out, where they are not as if left out."""
        left_out, given = self.defaults(), vars(self)
        own = {key: given[key] for key in given if key not in left_out and key != "length"}
        changed = {key: given[key] for key in left_out if given[key] != left_out[key]}
        return {"name": self.name, **own, "length": self.length, **changed}

    def arrange(self, labels: np.ndarray, classes: int, seed: int, *recorded: np.ndarray) -> Parts:
        """Arrange items by their labels [n] among so many classes.

        recorded: of `instances` alone, the instance and frame of each item, int64 [n] each.
        """
        raise NotImplementedError

    def repeat(self, parts: Parts, classes: int, seed: int) -> Parts:
        """The stream with the repetitions that the options ask for."""
        return parts

    def transforms(self, pixels: int | None, seed: int) -> np.ndarray:
        """A permutation of the pixels for each task, int64 [tasks, pixels]; or none."""
        return NO_TRANSFORMS

    def chunk(self, labels: np.ndarray, classes: int, seed: int) -> np.ndarray:
        """The chunk of each item, [n], where chunks are groups of classes; −1 for an item that does not come."""
        chunk = chunks_of_classes(self.canonical(), classes, seed)
        assert chunk is not None
        return chunk[labels]


class Repeated(Order):
    """An order whose tasks come several times."""

    epochs: Annotated[Count, "how often a task comes before the next"] = 1  # `agem`, appendix F
    cycles: Annotated[Count, "how often the sequence of tasks comes"] = 1  # `desiderata`, B.6

    def repeat(self, parts: Parts, classes: int, seed: int) -> Parts:
        """Each chunk comes `epochs` times, or up to `items`, and the whole `cycles` times, each shuffled afresh."""
        items = getattr(self, "items", None)  # of a task
        if self.epochs == self.cycles == 1 and not items:
            return parts
        indices, _, _, boundaries = parts
        rng, repeated = generator(seed, "epochs"), []
        for cycle, chunk in itertools.product(range(self.cycles), np.split(indices, boundaries)):
            size = items or self.epochs * chunk.size
            visits = range(math.ceil(size / chunk.size))
            each = [rng.permutation(chunk) if cycle or visit else chunk for visit in visits]
            repeated.append(np.concatenate(each)[:size])
        whole = np.concatenate(repeated)
        return whole, *_undrawn(whole.size, classes), np.cumsum([chunk.size for chunk in repeated])[:-1]


class OfClasses(Repeated):
    """An order whose tasks have classes of their own.

    A cell's description may count the items of a task in steps, `iterations`.
    """

    tasks: Tasks
    items: Items | None = None
    iterations: Annotated[Count | None, "steps a task; a step has a batch of items"] = None

    def arrange(self, labels: np.ndarray, classes: int, seed: int, *recorded: np.ndarray) -> Parts:
        return _in_chunks(self.name, self.chunk(labels, classes, seed), self.tasks, classes, seed)


class Split(OfClasses):
    """Disjoint tasks: classes dealt at random, sizes as equal as can be (larger first), each task iid."""

    name = "split"
    random_state: RandomState = None
    renumbered: Annotated[bool, "whether `random_state` draws each class's place; or each place's class"] = False


class Stf(Order):
    """Simulated task-free: Algorithms 1 and 2 of `stf`."""

    name = "stf"
    mu_sigma: Annotated[float, bounds(exclusiveMinimum=0, exclusiveMaximum=stf.GAMMA), "how long a class lasts"]
    mu_sigma_factor: Annotated[Positive, "multiplies mu_sigma"] = 1

    def arrange(self, labels: np.ndarray, classes: int, seed: int, *recorded: np.ndarray) -> Parts:
        parameters = stf.class_distributions(classes, self.mu_sigma, generator(seed, "stf classes"))
        times = stf.timestamps(labels, parameters, generator(seed, "stf timestamps"))
        indices = stf.permute(times, generator(seed, "stf ties"))
        return indices, stf.rounded(times), stf.rounded(parameters), NO_BOUNDARIES


class SplitTwo(Order):
    """Split twice, on a random half of each class's items each time (larger half first): rule 4 of `rules`."""

    name = "split_two"
    tasks: Tasks

    def arrange(self, labels: np.ndarray, classes: int, seed: int, *recorded: np.ndarray) -> Parts:
        half = _ranks(labels, classes, generator(seed, "split_two halves")) % 2
        chunk = self.chunk(labels, classes, seed) + self.tasks * half
        return _in_chunks(self.name, chunk, 2 * self.tasks, classes, seed)


class SplitDomains(Split):
    """The tasks and items of split, in which an output stands for a place within the task (van de Ven et al. 2022)."""

    name = "split_domains"

    def arrange(self, labels: np.ndarray, classes: int, seed: int, *recorded: np.ndarray) -> Parts:
        chunk = domains_of_classes(self.canonical(), classes, seed)[0][labels]
        return _in_chunks("split", chunk, self.tasks, classes, seed)


class SplitOrdered(OfClasses):
    """Split with the classes as they are numbered (`desiderata`, section 4.2.2)."""

    name = "split_ordered"


class SplitRange(Split):
    """As split, with the classes `first` to `last` only: tasks for selection, and the others (`agem`, section 2)."""

    name = "split_range"
    first: Class
    last: Class
    tasks: Tasks


class SplitOverlapping(OfClasses):
    """Tasks that may share classes, but no item (`agem`, section 6).

    A class's items are dealt at random, as equally as possible, to its tasks; classes without a task are left out.
    """

    name = "split_overlapping"
    first: Class
    last: Class
    tasks: Tasks
    per_task: Annotated[Count, "classes"]

    def chunk(self, labels: np.ndarray, classes: int, seed: int) -> np.ndarray:
        drawn = overlapping_classes(self.canonical(), classes, seed).ravel()
        outputs, counts = np.argsort(drawn, kind="stable"), np.bincount(drawn, minlength=classes)  # class by class
        items = np.bincount(labels, minlength=classes)
        if (items < counts).any():
            short = int(np.argmax(items < counts))
            raise ValueError(
                f"order {self.name}: tasks: {counts[short]} of them have class {short}, which has {items[short]} "
                "items; lengthen the stream or lower tasks"
            )
        ranks = _ranks(labels, classes, generator(seed, "split_overlapping parts"))
        which = (np.cumsum(counts) - counts)[labels] + ranks % np.maximum(counts, 1)[labels]
        return np.where(counts[labels], outputs[np.minimum(which, outputs.size - 1)] // self.per_task, -1)


class Dominant(Order):
    """A chunk for each class, with `share` of its items and an equal part (±1) of the rest of every other class's.

    The remainder goes, one item each, to the chunks that follow the class's own.
    """

    name = "dominant"
    share: Annotated[Share, "of the items of a class, in its own chunk"]

    def arrange(self, labels: np.ndarray, classes: int, seed: int, *recorded: np.ndarray) -> Parts:
        chunk_of = np.argsort(class_order(self.canonical(), classes, seed))
        own, share = chunk_of[labels], self.share if classes > 1 else 1
        dominant = np.rint(np.bincount(labels, minlength=classes) * share).astype(np.int64)
        past = _ranks(labels, classes, generator(seed, "dominant parts")) - dominant[labels]
        chunk = np.where(past < 0, own, (own + 1 + past % max(classes - 1, 1)) % classes)
        return _in_chunks("dominant", chunk, classes, classes, seed)  # the same draws, however the classes come


class DominantOrdered(Dominant):
    """Dominant with the classes as they are numbered."""

    name = "dominant_ordered"


class Random(Order):
    """Stationary: one uniformly drawn permutation."""

    name = "random"

    def arrange(self, labels: np.ndarray, classes: int, seed: int, *recorded: np.ndarray) -> Parts:
        indices = generator(seed, "random items").permutation(labels.size)
        return indices, *_undrawn(labels.size, classes), NO_BOUNDARIES


class Offline(Order):
    """`items` items, epoch after epoch, each a fresh permutation and none marked by a boundary."""

    name = "offline"
    items: Items

    def arrange(self, labels: np.ndarray, classes: int, seed: int, *recorded: np.ndarray) -> Parts:
        epochs, visits = generator(seed, "offline items"), range(math.ceil(self.items / labels.size))
        indices = np.concatenate([epochs.permutation(labels.size) for _ in visits])[: self.items]
        return indices, *_undrawn(self.items, classes), NO_BOUNDARIES


class PermutedPixels(Repeated):
    """Domains: all items, shuffled afresh, once for each task; each task has its own permutation of the pixels.

    With `once` one shuffle of all items is cut into tasks, as equal as can be (larger first).
    """

    name = "permuted_pixels"
    tasks: Tasks
    unpermuted_first: Annotated[bool, "whether the first task has the pixels as they are"] = False
    once: Annotated[bool, "whether each item comes in one task alone; or it comes in all"] = False
    random_state: RandomState = None

    def arrange(self, labels: np.ndarray, classes: int, seed: int, *recorded: np.ndarray) -> Parts:
        items, tasks = generator(seed, "permuted_pixels items"), self.tasks
        if self.once and labels.size < tasks:
            raise ValueError(f"order {self.name}: one of {tasks} tasks has no item among {labels.size}; lower tasks")
        parts = [items.permutation(labels.size) for _ in range(1 if self.once else tasks)]
        if self.once:
            parts = np.array_split(parts[0], tasks)
        indices = np.concatenate(parts)
        return indices, *_undrawn(indices.size, classes), np.cumsum([part.size for part in parts])[:-1]

    def transforms(self, pixels: int | None, seed: int) -> np.ndarray:
        if pixels is None:
            raise ValueError("order permuted_pixels: pixels: how many an image has was not given")
        rng: np.random.Generator | np.random.RandomState = generator(seed, "permuted_pixels pixels")
        if self.random_state is not None:
            rng = np.random.RandomState(self.random_state + seed)  # NumPy keeps its draws as they were
        drawn = np.stack([rng.permutation(pixels) for _ in range(self.tasks)])
        if self.unpermuted_first:
            drawn[0] = np.arange(pixels)
        return drawn


class Instances(Order):
    """Bursts of an instance's successive frames; the bursts of all instances in random order (`streaming`, 2.1).

    Each instance's sequence is cut into bursts of `burst` frames, the last shorter; None makes it one burst.
    """

    name = "instances"
    burst: Annotated[Count | None, "most frames of an instance in a row; null: all"]

    def arrange(self, labels: np.ndarray, classes: int, seed: int, *recorded: np.ndarray) -> Parts:
        instance, frame = recorded
        sequences = np.split(np.lexsort((frame, instance)), np.cumsum(np.unique(instance, return_counts=True)[1])[:-1])
        size = self.burst or labels.size
        bursts = [frames[start : start + size] for frames in sequences for start in range(0, frames.size, size)]
        drawn = [bursts[i] for i in generator(seed, "instances bursts").permutation(len(bursts))]
        return np.concatenate(drawn), *_undrawn(labels.size, classes), np.cumsum([part.size for part in drawn])[:-1]


ORDERS: dict[str, type[Order]] = {
    each.name: each
    for each in (
        *(Stf, Split, SplitTwo, SplitDomains, SplitOrdered, SplitRange, SplitOverlapping, Dominant, DominantOrdered),
        *(Random, Offline, PermutedPixels, Instances),
    )
}


def read(order: dict) -> Order:
    """The struct of an order, by its name; without `length`, the whole training split comes.

    Fractions count to 6 significant digits, so that √(1/12)/5 is one order, however it was computed or printed.

    Raises ValueError for an unknown name, and for items beside epochs or cycles. Values are checked with the cell.
    """
    name = order.get("name")
    if name not in ORDERS:
        raise ValueError(f"order: name: {name!r} is not one of {', '.join(ORDERS)}")
    options: dict[str, Any] = {"length": None}
    for key, value in order.items():
        options[key] = float(f"{value:.6g}") if isinstance(value, float) else value
    del options["name"]
    made = ORDERS[name](**options)
    if isinstance(made, OfClasses) and made.items and (made.epochs, made.cycles) != (1, 1):
        raise ValueError(f"order {name}: items: a task of so many items is not repeated; leave out epochs and cycles")
    if isinstance(made, OfClasses) and made.iterations:
        raise ValueError(f"order {name}: iterations: a stream knows no batch; give items, which are iterations × batch")
    return made


def canonical(order: dict) -> dict:
    """The canonical form of an order (`Order.canonical`), from which its streams and any hash are made."""
    return read(order).canonical()


def slug(order: dict) -> str:
    """An order's part of a path, one for each canonical order: `stf-0.057735`, `random-n500`, `split-5-e10-c5`."""
    made = read(order)
    options, left_out = made.canonical(), made.defaults()
    parts = [
        f"{options[key]:.6g}" if isinstance(options[key], float) else str(options[key])
        for key in options
        if key not in left_out and key != "length" and options[key] is not None
    ]
    parts += [] if made.length is None else [f"n{made.length}"]
    changed = {key: options[key] for key in options if key in left_out}
    return "-".join([*parts, *(key if value is True else f"{key[0]}{value}" for key, value in changed.items())])


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
    pixels: H·W·C of an image, for `permuted_pixels`. recorded: for `instances`, the instance that each item shows and
    its frame number, int64 [N] each.

    Raises ValueError for a bad order, for bad labels, for a length or tasks that the labels cannot fill, and for
    missing `pixels` or `recorded`.
    """
    made = read(order)
    if labels.ndim != 1 or not labels.size or not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0:
        raise ValueError("labels: not a non-empty list of integers from 0 up")
    classes = int(labels.max()) + 1 if classes is None else classes
    if labels.max() >= classes:
        raise ValueError(f"labels: {labels.max()} is none of {classes} classes")
    transforms, columns = made.transforms(pixels, seed), recorded if made.name == "instances" else ()
    if columns is None:
        raise ValueError("order instances: these items are no frames of recorded instances; take another order")
    if made.length is None:
        parts = made.arrange(labels, classes, seed, *columns)
    elif made.length > labels.size:
        whole = f"the training split's {labels.size} items"
        raise ValueError(f"order {made.name}: length: {made.length} is more than {whole}")
    else:
        subset = generator(seed, "subset").choice(labels.size, made.length, replace=False, shuffle=False)
        subset.sort()
        parts = made.arrange(labels[subset], classes, seed, *(column[subset] for column in columns))
        parts = (subset[parts[0]], *parts[1:])
    return Stream(*made.repeat(parts, classes, seed), transforms, seed)


def _in_chunks(name: str, chunk: np.ndarray, chunks: int, classes: int, seed: int) -> Parts:
    """Items by their `chunk` [n], shuffled inside each; items of chunk −1 do not come."""
    kept = np.flatnonzero(chunk >= 0)
    chunk = chunk[kept]
    sizes = np.bincount(chunk, minlength=chunks)
    if not sizes.all():
        raise ValueError(f"order {name}: one of {chunks} chunks has no item among {chunk.size}; lengthen the stream")
    starts = np.cumsum(sizes)[:-1]
    indices = kept[np.argsort(chunk.astype(np.int16) if chunks < 1 << 15 else chunk, kind="stable")]  # int16 by radix
    items = generator(seed, f"{name} items")
    for part in np.split(indices, starts):
        items.shuffle(part)
    return indices, *_undrawn(chunk.size, classes), starts


def _ranks(labels: np.ndarray, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Each item's rank, from 0 up, in a random order of its class's items: int64 [n]."""
    drawn = rng.permutation(labels.size)
    by_class = drawn[np.argsort(labels[drawn], kind="stable")]
    sizes = np.bincount(labels, minlength=classes)
    ranks = np.empty(labels.size, dtype=np.int64)
    ranks[by_class] = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return ranks


def _undrawn(items: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Timestamps position/n, and no class parameters."""
    times = np.arange(items, dtype=float)
    times /= items
    return times, np.full((classes, len(COLUMNS)), np.nan)
