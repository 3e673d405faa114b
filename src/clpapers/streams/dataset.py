"""Follow a stream file with any map-style PyTorch data set: items, batches, or an Avalanche benchmark.

`Images` is such a data set, of the pipeline's own files.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, Sampler, get_worker_info

from clpapers.datasets.arrays import Split, canonical, checksum
from clpapers.datasets.arrays import load as load_split
from clpapers.streams.stream import ITEM_ORDER, batches, load

IMAGE, LABEL = ("image", "img", "pixel_values", "x"), ("label", "labels", "fine_label", "target", "y")


class Item(NamedTuple):
    """An item of a stream; torch's `default_collate` makes batches of it.

    image, label: as the data set gives them. task: the number of the item's chunk, from 0 up. timestamp: in [0, 1].
    boundary: whether the item is the first after a boundary.
    """

    image: Any
    label: Any
    task: int
    timestamp: float
    boundary: bool


class Images(Dataset):
    """The images of a data set that the pipeline has fetched and verified.

    An item is an image, float32 [C, H, W] in [0, 1], and its label. `data` has the pixels as bytes [N, H, W, C],
    `targets` the labels, int64 [N].

    Parameters
    ----------
    file: results/<scale>/datasets/<name>.npz.
    split: train or test.

    Raises ValueError, with the remedy, for a file that is not there, and for one of features.
    """

    def __init__(self, file: Path | str, split: str):
        if not Path(file).is_file():
            raise ValueError(f"{file}: no such file; snakemake {file} --cores fetches it, in the project's folder")
        self.data, self.targets, *_ = load_split(file, split)
        if self.data.dtype != np.uint8:
            raise ValueError(f"{file}: holds features, not images; use its arrays")

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, position: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(self.data[position]).movedim(-1, 0) / 255, int(self.targets[position])


class StreamDataset(Dataset):
    """The items of `dataset` in the order of a stream file, an `Item` at each position.

    The file's indices point into the training split by label and the pixels' SHA-256, whatever the order of `dataset`.
    Its images are hashed once, to prove that the stream was made for them. On `permuted_pixels` the values of an image
    are permuted when it is read, after the transforms of `dataset`: a PIL image or an array [H, W, C], a tensor
    [C, H, W].

    Parameters
    ----------
    dataset: the training split, map-style, whose items begin with image and label, or are dictionaries that have them
        at a key of `IMAGE` and one of `LABEL`. Labels count classes from 0 up, as config/datasets.yaml lists them.
    file: a stream file (docs/streams.md).
    split: images and labels in the order of `dataset`, with instance and frame where it records them. Needed where
        `dataset` neither has `data` and `targets`, as torchvision's have, nor gives images of bytes.

    Raises ValueError, naming file and remedy, for a damaged file and for images that the stream was not made for. So it
    does for a stream of features, whose indices follow the order of the features' file. A loader whose batches are not
    in the stream's order, as by `shuffle=True`, gets a warning, once.
    """

    def __init__(self, dataset: Dataset, file: Path | str, split: Split | None = None):
        self.dataset, self.stream = dataset, load(file)
        self.tasks = self.stream.chunk
        self._starts = frozenset(self.stream.boundaries.tolist())
        name, order, _ = self.stream.data
        if order != ITEM_ORDER:
            raise ValueError(f"{file}: indices point into {name} {order}; use them with that file's arrays")
        if not self.stream.data[2]:
            remedy = f"build the data set, snakemake results/paper/datasets/{name}.npz, and make the stream again"
            raise ValueError(f"{file}: it was made without the images of {name}, so that none can be proven; {remedy}")
        try:
            own = own_order(split or contents(dataset), self.stream.data[2])
        except ValueError as error:
            raise ValueError(f"{file}: is of {name}'s training split, and {error}") from None
        self.indices = own[self.stream.indices]
        self._last: int | None = None  # the position that a loader had last
        self._warned = False

    def __len__(self) -> int:
        return len(self.indices)

    def __getitems__(self, positions: Sequence[int]) -> list[Item]:
        """The items of a loader's batch."""
        items = [self[position] for position in positions]
        self._watch([range(len(self))[position] for position in positions])
        return items

    def _watch(self, positions: list[int]) -> None:
        """Warn, once, of a batch that is not in the stream's order."""
        first, in_order = positions[0], [*range(positions[0], positions[0] + len(positions))]
        follows = self._last is None or first in (0, self._last + 1, *self._starts)
        alone = len(positions) == 1 and get_worker_info() is None  # workers take turns
        if not self._warned and (positions != in_order or (alone and not follows)):
            self._warned = True
            told = "batches are not in the stream's order; load it with shuffle=False, or by a StreamBatchSampler"
            warnings.warn(f"StreamDataset: {told}", stacklevel=2)
        self._last = positions[-1]

    def __getitem__(self, position: int) -> Item:
        try:
            index = range(len(self))[position]  # allows negative positions; IndexError ends a loop
        except TypeError:
            index = None
        if not isinstance(index, int):
            kind = type(position).__name__
            remedy = "give a StreamBatchSampler as batch_sampler=, not as sampler=, or ask for one position at a time"
            raise TypeError(f"a position of a stream is a whole number, not a {kind}; {remedy}")
        image, label = _pair(self.dataset[int(self.indices[index])])
        task, transforms = int(self.tasks[index]), self.stream.transforms
        if len(transforms):
            image = permuted(image, transforms[task % len(transforms)])
        return Item(image, label, task, float(self.stream.timestamps[index]), index in self._starts)


def _pair(item: Any) -> tuple[Any, Any]:
    """Image and label of an item: the first two of a sequence, or those at the usual keys of a dictionary.

    Raises ValueError for an item that has neither.
    """
    if isinstance(item, Mapping):
        keys = [next((key for key in names if key in item), None) for names in (IMAGE, LABEL)]
        if None in keys:
            missing, names = ("image", IMAGE) if keys[0] is None else ("label", LABEL)
            there, usual = ", ".join(map(str, item)), ", ".join(names)
            raise ValueError(
                f"the items here are dictionaries of {there}, with no {missing} at {usual}; rename the key, or give "
                "items (image, label)"
            )
        return item[keys[0]], item[keys[1]]
    if not isinstance(item, Sequence) or isinstance(item, str | bytes) or len(item) < 2:
        raise ValueError(
            f"the items here are of {type(item).__name__}; give items (image, label), or dictionaries of both"
        )
    return item[0], item[1]


def class_numbers(labels: Any, count: int) -> np.ndarray:
    """The labels of `count` images, int64 [N], as class numbers; ValueError, with the remedy, for any that are none."""
    try:
        y = np.asarray(labels)
    except ValueError:
        raise ValueError("the labels here differ in shape; give one class number an image") from None
    if y.dtype.kind not in "iufb":
        raise ValueError(f"the labels here are of {y.dtype}, such as {y.flat[0]!r}; give class numbers, from 0 up")
    if y.ndim != 1:
        remedy = "labels.reshape(-1)" if y.size == len(y) else "labels.argmax(1), if they are one-hot"
        raise ValueError(f"the labels here have the shape {list(y.shape)}, not [{count}]; give {remedy}")
    if len(y) != count:
        raise ValueError(f"here are {count:,} images and {len(y):,} labels; give one label an image")
    if (broken := y[y != np.round(y)]).size:  # as NaN is, which equals nothing
        raise ValueError(f"the labels here are no whole numbers, such as {broken[0]}; give class numbers, from 0 up")
    return y.astype(np.int64)


def contents(dataset: Any) -> Split:
    """Images and labels of a data set, in its order: from its `data` and `targets`, or else item by item.

    Raises ValueError where images are not bytes, as after most transforms, or differ in shape.
    """
    if hasattr(dataset, "data") and hasattr(dataset, "targets"):
        images, labels = dataset.data, dataset.targets
    elif not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise ValueError(f"this is a {type(dataset).__name__} without positions; give a map-style data set")
    else:
        items = [_pair(dataset[i]) for i in range(len(dataset))]
        images, labels = [image for image, _ in items], [label for _, label in items]
        if torch.is_tensor(images[0]) and images[0].ndim == 3:  # [C, H, W]
            images = [image.movedim(0, -1) for image in images]
        if len({np.shape(image) for image in images}) > 1:
            raise ValueError("this has images of several shapes; resize them, or give `split`")
    x = np.asarray(images) if torch.is_tensor(images) else np.stack([np.asarray(image) for image in images])
    return Split(x, class_numbers(labels, len(x)))


def own_order(split: Split, expected: str) -> np.ndarray:
    """Index in canonical order (`datasets.arrays.canonical`) → index in the order of `split`: int64 [N].

    split: images uint8 [N, H, W, C] or [N, H, W]; EMNIST may lie transposed, as torchvision has it.
    expected: the content checksum in canonical order.

    Raises ValueError where neither form of the images has this checksum, where they are not bytes, and for labels that
    are no class numbers.
    """
    if split.x.dtype != np.uint8:
        raise ValueError(f"this gives images of {split.x.dtype}, not bytes; leave out its transforms, or give `split`")
    split = split._replace(y=class_numbers(split.y, len(split.x)))
    n, x = len(split.y), split.x if split.x.ndim == 4 else split.x[..., None]
    instance, frame = (np.zeros(n, np.int64) if each is None else each for each in split[2:])
    for images in (x, x.swapaxes(1, 2)):
        placed = canonical(Split(images, split.y, instance, frame * n + np.arange(n)))  # carries each item's own index
        frames = np.asarray(placed.frame)
        recorded = () if split.instance is None else (placed.instance, frames // n)
        found = checksum(Split(placed.x, placed.y, *recorded))
        if found == expected:
            return frames % n
    raise ValueError(
        f"these {n:,} images or their labels are others (checksum {found[:12]}…, not {expected[:12]}…); give the "
        "data set that the stream was made of, or make the stream again"
    )


def permuted(image: Any, permutation: np.ndarray) -> Any:
    """An image, PIL or [H, W, C] or a tensor [C, H, W], its H·W·C values permuted as they lie in [H, W, C]."""
    if torch.is_tensor(image):
        last = image.movedim(0, -1) if image.ndim == 3 else image
        moved = last.reshape(-1)[torch.from_numpy(permutation)].reshape(last.shape)
        return moved.movedim(-1, 0) if image.ndim == 3 else moved
    array = np.asarray(image)
    moved = array.reshape(-1)[permutation].reshape(array.shape)
    return Image.fromarray(moved) if isinstance(image, Image.Image) else moved


class StreamBatchSampler(Sampler[list[int]]):
    """Batches of a stream, in its order, as positions: `size` items each, fewer at the end of a chunk.

    For `DataLoader(dataset, batch_sampler=StreamBatchSampler(dataset, 10))`. No batch crosses a boundary. Raises
    ValueError for a size that is no whole number from 1 up, and TypeError for anything but a `StreamDataset`.
    """

    def __init__(self, dataset: StreamDataset, size: int):
        _refuse_subset(dataset)
        self.ends = batches(dataset.stream.boundaries, len(dataset), checked_size(size)).tolist()

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[list[int]]:
        return (list(range(start, end)) for start, end in zip([0, *self.ends], self.ends))


def _refuse_subset(dataset: object) -> None:
    if not hasattr(dataset, "stream"):  # `isinstance` fails once a notebook has loaded this module anew
        kind = type(dataset).__name__
        raise TypeError(
            f"a {kind} is no StreamDataset; give the StreamDataset itself, since a stream is followed whole"
        )


def checked_size(size: int) -> int:
    """A size that is a whole number from 1 up; ValueError for another."""
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ValueError(f"size: {size!r} is not a whole number of items from 1 up")
    return int(size)


class _Pairs(Dataset):
    """The images and labels at some positions."""

    def __init__(self, dataset: Dataset, positions: Sequence[int]):
        self.dataset, self.positions = dataset, positions

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, i: int) -> tuple:
        return _pair(self.dataset[self.positions[i]])


def to_avalanche(train: StreamDataset, test: Dataset, size: int | None = None, *, tasks: bool = False) -> Any:
    """An Avalanche benchmark (0.6.0): a `train_stream` in the stream's order, and a `test_stream` of one experience.

    Train with `shuffle=False`, or a strategy shuffles within an experience.

    Parameters
    ----------
    test: the test split, map-style.
    size: items of an experience, as in `StreamBatchSampler`; None makes each chunk an experience.
    tasks: whether an experience's task label is its chunk, for learners that use tasks; else, and at test, it is 0.

    Raises ImportError, with the remedy, where Avalanche is not installed, TypeError where `train` is no
    `StreamDataset`, and ValueError for labels that are no class numbers.
    """
    _refuse_subset(train)
    try:
        from avalanche.benchmarks import benchmark_from_datasets
        from avalanche.benchmarks.utils import AvalancheDataset, DataAttribute, TaskLabels
    except ImportError as error:
        raise ImportError(f"{error}; install Avalanche: pip install 'clpapers[avalanche]'") from error

    def experience(dataset: Dataset, labels: np.ndarray, positions: range, task: int) -> AvalancheDataset:
        targets = DataAttribute(labels[positions.start : positions.stop].tolist(), "targets")
        labels_of_task = TaskLabels([task] * len(positions))
        return AvalancheDataset([_Pairs(dataset, positions)], data_attributes=[targets, labels_of_task])

    labels = labels_of(train.dataset)[train.indices]
    size = len(train) if size is None else checked_size(size)
    ends = batches(train.stream.boundaries, len(train), size).tolist()
    learnt = [
        experience(train, labels, range(start, end), int(train.tasks[start]) if tasks else 0)
        for start, end in zip([0, *ends], ends)
    ]
    tested = labels_of(test)
    return benchmark_from_datasets(train=learnt, test=[experience(test, tested, range(len(tested)), 0)])


def labels_of(dataset: Any) -> np.ndarray:
    """The labels of a data set: its `targets`, or else item by item; int64 [N]."""
    targets = hasattr(dataset, "targets")
    labels = dataset.targets if targets else [_pair(dataset[i])[1] for i in range(len(dataset))]
    return class_numbers(labels, len(dataset))
