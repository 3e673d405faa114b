"""A stream, the order in which a learner meets a data set's items, and its file."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clpapers.provenance import write_atomically

COLUMNS = ("mu", "sigma", "alpha", "beta")  # of class_parameters
DTYPES = {
    "indices": "int64",
    "timestamps": "float64",
    "class_parameters": "float64",
    "boundaries": "int64",
    "seed": "int64",
}


@dataclass(frozen=True, eq=False)
class Stream:
    """One seed's order of a data set's training items; also, array by array, what a stream file holds.

    indices: int64 [n], each item at most once: position in the stream → index in the training split.
    timestamps: float64 [n] in [0, 1], ascending; position/n where an order draws none.
    class_parameters: float64 [c, 4], a class's mu, sigma, alpha and beta; NaN where an order has none.
    boundaries: int64 [k], ascending positions in (0, n) at which a new task starts; empty if task-free.
    seed: int.
    """

    indices: np.ndarray
    timestamps: np.ndarray
    class_parameters: np.ndarray
    boundaries: np.ndarray
    seed: int


def save(stream: Stream, path: Path | str) -> None:
    """Write `stream` to the .npz file `path`, atomically; equal streams make equal bytes."""
    with write_atomically(path) as temporary:
        np.savez(
            temporary,
            indices=stream.indices,
            timestamps=stream.timestamps,
            class_parameters=stream.class_parameters,
            boundaries=stream.boundaries,
            seed=np.int64(stream.seed),
        )


def load(path: Path | str, items: int | None = None) -> Stream:
    """Read a stream file; `items`, where given, is the size of the training split its indices must lie in.

    Raises ValueError, naming the file and what is wrong with it, for anything that is not a stream, and
    OSError where the file cannot be read at all.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
    except OSError:
        raise
    except Exception as error:  # zipfile's and numpy's many, for bytes that are no archive of arrays
        raise ValueError(f"{path}: not a stream file ({error}); delete it and build it again") from error
    fault = _fault(arrays, items)
    if fault:
        raise ValueError(f"{path}: {fault}; delete it and build it again")
    return Stream(**(arrays | {"seed": int(arrays["seed"])}))


def _fault(arrays, items):
    """What is wrong with a stream file's arrays, or None."""
    if set(arrays) != set(DTYPES):
        return f"holds {', '.join(sorted(arrays)) or 'nothing'} instead of {', '.join(DTYPES)}"
    for name, dtype in DTYPES.items():
        if arrays[name].dtype != dtype:
            return f"{name}: {arrays[name].dtype} instead of {dtype}"
    indices, times, classes, boundaries, seed = (arrays[name] for name in DTYPES)
    if indices.ndim != 1 or not indices.size:
        return f"indices: shape {indices.shape} instead of [n]"
    if times.shape != indices.shape:
        return f"timestamps: shape {times.shape}, but indices: {indices.shape}"
    if classes.ndim != 2 or classes.shape[1] != len(COLUMNS):
        return f"class_parameters: shape {classes.shape} instead of [c, {len(COLUMNS)}]"
    if boundaries.ndim != 1 or seed.ndim != 0 or seed < 0:
        return "boundaries or seed: not a list and a number from 0 up"
    ordered = np.sort(indices)
    if ordered[0] < 0 or (items is not None and ordered[-1] >= items):
        return f"indices: {ordered[0]} to {ordered[-1]}, outside a training split of {items or 'any'} items"
    if (ordered[1:] == ordered[:-1]).any():
        return f"indices: {ordered[1:][ordered[1:] == ordered[:-1]][0]} occurs more than once"
    if not (times[0] >= 0 and times[-1] <= 1 and (times[1:] >= times[:-1]).all()):
        return "timestamps: not ascending in [0, 1]"
    edges = np.concatenate([[0], boundaries, [indices.size]])
    if not (edges[1:] > edges[:-1]).all():
        return f"boundaries: not ascending between 0 and {indices.size}"
    return None
