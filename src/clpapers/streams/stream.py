"""A stream, the order in which a learner meets a data set's items, and its file format."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from clpapers.provenance import read_record, write_atomically

COLUMNS = ("mu", "sigma", "alpha", "beta")  # of class_parameters
DTYPES = {
    "indices": "int64",
    "timestamps": "float64",
    "class_parameters": "float64",
    "boundaries": "int64",
    "transforms": "int64",
    "seed": "int64",
    "data": "str",
}
ITEM_ORDER, IN_FILE = "by label, then by SHA-256 of the pixels", "as in its file"  # `datasets.arrays.canonical`


@dataclass(frozen=True, eq=False)
class Stream:
    """One seed's order of a data set's training items. A stream file holds the same arrays.

    indices: int64 [n], position in the stream → index in the training split, in the order that `data` names. A chunk
        between boundaries may visit its items again, but none before it has visited all. Two chunks have the same
        items, or share none.
    timestamps: float64 [n] in [0, 1], ascending; position/n where the order draws none.
    class_parameters: float64 [c, 4], a class's mu, sigma, alpha and beta; NaN where an order has none.
    boundaries: int64 [k], ascending positions in (0, n) at which another task, or burst of an instance, starts.
    transforms: int64 [d, p], for each task a permutation of the p = H·W·C values of an image, as [H, W, C] lies in
        memory: value j of an image in chunk i is value transforms[i mod d, j] of the data set's image; [0, 0] where
        images stay as they are.
    seed: int.
    data: the items that the indices point into (`data_of`): the data set's name, the order of its training split, its
        checksum in that order; in a file str [3], empty where it is unknown.
    """

    indices: np.ndarray
    timestamps: np.ndarray
    class_parameters: np.ndarray
    boundaries: np.ndarray
    transforms: np.ndarray
    seed: int
    data: tuple[str, str, str] = ("", "", "")

    @property
    def chunk(self) -> np.ndarray:
        """The chunk of each position, counted by boundaries: int64 [n]."""
        return np.searchsorted(self.boundaries, np.arange(self.indices.size), side="right")


def batches(boundaries: np.ndarray, n: int, batch: int | str, epochs: int = 1, least: int = 1) -> np.ndarray:
    """The ends of batches of size `batch` in a stream of n items, none across a boundary: int64 [T], ascending to n.

    The last batch of a chunk may be smaller; one of fewer than `least` items joins the batch before it. With `batch`
    "task" a batch is a whole chunk, or, where a chunk repeats its items for `epochs`, one epoch.
    """
    ends: list[int] = []
    for start, end in pairwise([0, *boundaries.tolist(), n]):
        size = (end - start) // epochs if isinstance(batch, str) else batch
        inner = range(start + size, end, size)
        ends += [*(inner[:-1] if inner and end - inner[-1] < least else inner), end]
    return np.array(ends)


def data_of(name: str, file: Path | None) -> tuple[str, str, str]:
    """`Stream.data` for the data set `name` in a `file` with a record; a toy has the file None.

    The checksum covers the training split's content (`datasets.arrays.checksum`). For features, whose last bits
    depend on the machine, it is the SHA-256 of their file; for a toy, which has no content, it is empty.

    Raises `ProvenanceError` where there is no record.
    """
    if file is None:
        return name, IN_FILE, ""
    record = read_record(file)
    if name in record["data"]:
        return name, ITEM_ORDER, record["data"][name]["sha256"]["train"]
    return name, IN_FILE, next(each["sha256"] for each in record["outputs"] if Path(each["path"]).name == file.name)


def save(stream: Stream, path: Path | str) -> None:
    """Write `stream` to the .npz file `path`, atomically; equal streams make equal bytes."""
    with write_atomically(path) as temporary:
        np.savez(temporary, **vars(stream) | {"seed": np.int64(stream.seed), "data": np.array(stream.data)})


def load(path: Path | str, items: int | None = None, checksum: str | None = None) -> Stream:
    """Read a stream file.

    items: the size of the training split, which the indices must not exceed; None checks no size.
    checksum: the training split's, which the file's `data` must name; None checks none.

    Raises ValueError, which names the file and its fault, for anything that is not a stream of these items, and
    OSError where the file cannot be read.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
    except OSError:
        raise
    except Exception as error:  # zipfile and numpy raise many kinds for bytes that are no archive of arrays
        raise ValueError(f"{path}: not a stream file ({error}); delete it and build it again") from error
    if mistake := _mistake(arrays, items):
        raise ValueError(f"{path}: {mistake}; delete it and build it again")
    seed, (name, order, source) = int(arrays.pop("seed")), map(str, arrays.pop("data"))
    if checksum is not None and source not in ("", checksum):  # of a set whose checksum nobody knew
        raise ValueError(
            f"{path}: its indices point into {name} with checksum {source[:12]}…, and this is {checksum[:12]}…; "
            "delete it and build it again"
        )
    return Stream(**arrays, seed=seed, data=(name, order, source))


def _mistake(arrays: dict[str, np.ndarray], items: int | None) -> str | None:
    """The first mistake in a stream file's arrays, or None."""
    if set(arrays) != set(DTYPES):
        return f"holds {', '.join(sorted(arrays)) or 'nothing'} instead of {', '.join(DTYPES)}"
    for name, dtype in DTYPES.items():
        if arrays[name].dtype != dtype and (dtype != "str" or arrays[name].dtype.kind != "U"):
            return f"{name}: {arrays[name].dtype} instead of {dtype}"
    indices, times, classes, boundaries, transforms, seed, data = (arrays[name] for name in DTYPES)
    if data.shape != (3,):
        return f"data: shape {data.shape} instead of [3]"
    if indices.ndim != 1 or not indices.size:
        return f"indices: shape {indices.shape} instead of [n]"
    if times.shape != indices.shape:
        return f"timestamps: shape {times.shape}, but indices: {indices.shape}"
    if classes.ndim != 2 or classes.shape[1] != len(COLUMNS):
        return f"class_parameters: shape {classes.shape} instead of [c, {len(COLUMNS)}]"
    if boundaries.ndim != 1 or seed.ndim != 0 or seed < 0:
        return "boundaries or seed: not a list and a number from 0 up"
    distinct = np.unique(indices)
    if distinct[0] < 0 or (items is not None and distinct[-1] >= items):
        return f"indices: {distinct[0]} to {distinct[-1]}, outside a training split of {items or 'any'} items"
    if not (times[0] >= 0 and times[-1] <= 1 and (times[1:] >= times[:-1]).all()):
        return "timestamps: not ascending in [0, 1]"
    edges = np.concatenate([[0], boundaries, [indices.size]])
    if not (edges[1:] > edges[:-1]).all():
        return f"boundaries: not ascending between 0 and {indices.size}"
    if mistake := _mistaken_visit(indices, boundaries, distinct.size):
        return mistake
    if transforms.shape != (0, 0):
        permutation = np.arange(transforms.shape[-1]) if transforms.ndim == 2 else None
        chunks, tasks = boundaries.size + 1, len(transforms) if transforms.ndim else 0
        if permutation is None or not tasks or chunks % tasks or (np.sort(transforms) != permutation).any():
            return f"transforms: shape {transforms.shape}, not a permutation for each task of {chunks} chunks"
    return None


def _mistaken_visit(indices: np.ndarray, boundaries: np.ndarray, distinct: int) -> str | None:
    """The mistake in the order in which chunks visit their items, or None."""
    sizes = {}  # items of a chunk, as bytes → their number
    for chunk in np.split(indices, boundaries):
        items, item = np.unique(chunk, return_inverse=True)
        visits = np.arange(chunk.size) // items.size * items.size + item  # one number for each round and item
        if np.bincount(visits).max() > 1:
            return f"indices: an item occurs more than once before each of the {items.size} of its chunk has occurred"
        sizes[items.tobytes()] = items.size
    if sum(sizes.values()) != distinct:
        return "indices: an item occurs more than once, in chunks that otherwise differ"
    return None
