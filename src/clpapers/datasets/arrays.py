"""A data set as arrays: its canonical order, its content checksum, and the .npz file that holds it."""

import hashlib
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from clpapers.provenance import write_atomically


class Split(NamedTuple):
    """Images `x`, uint8 [N, H, W, C] with C = 1 or 3, and their labels `y`, int64 [N].

    Where images are frames of recordings, `instance`, int64 [N], is the number of the instance that an image shows.
    Instances are numbered from 0 over all classes, and each belongs to one class. `frame`, int64 [N], is the image's
    place among the frames of its instance. A split has both or neither.
    """

    x: np.ndarray
    y: np.ndarray
    instance: np.ndarray | None = None
    frame: np.ndarray | None = None


Splits = dict[str, Split]  # keys "train" and "test"


def canonical(split: Split) -> Split:
    """Order examples by label, then by the SHA-256 of the pixels' bytes, then by instance and frame.

    Mirrors need not keep the official order; in this one an index means the same image, whichever mirror served it.
    Examples that tie are identical, so the order is unique.
    """
    x = np.ascontiguousarray(split.x, np.uint8)
    y = split.y.astype(np.int64)
    digests = b"".join(hashlib.sha256(pixels.data).digest() for pixels in x.reshape(len(x), -1))
    words = np.frombuffer(digests, ">u8").reshape(len(x), 4)  # big-endian: compares as the digest's bytes do
    recorded = [column.astype(np.int64) for column in split[2:] if column is not None]
    order = np.lexsort((*recorded[::-1], *words.T[::-1], y))
    return Split(x[order], y[order], *(column[order] for column in recorded))


def checksum(split: Split) -> str:
    """The content checksum of a split in canonical order, as hexadecimal digits.

    SHA-256 over, in this sequence: the ASCII line `uint8 [N, H, W, C] int64 [N]`, numbers in place, and a
    newline; the pixels, row-major, one byte each; the labels, eight bytes each, little-endian. Where there are
    instances, the line ends in two more ` int64 [N]`, and the instances and frames follow as the labels do.
    """
    shape, (x, *columns) = list(split.x.shape), (array for array in split if array is not None)
    digest = hashlib.sha256(f"uint8 {shape}{f' int64 {shape[:1]}' * len(columns)}\n".encode("ascii"))
    digest.update(np.ascontiguousarray(x, np.uint8).reshape(-1).data)
    for column in columns:
        digest.update(column.astype("<i8").data)
    return digest.hexdigest()


def unit_rows(table: np.ndarray) -> np.ndarray:
    """Class attributes [C, A], each row divided by its Euclidean length, float32; no row may be zero.

    The squares are summed exactly, so that no machine's order of summation shows in the result.
    """
    lengths = np.sqrt([math.fsum(row) for row in np.square(table, dtype=np.float64)])
    return (table / lengths[:, None]).astype(np.float32)


def table_checksum(table: np.ndarray) -> str:
    """The content checksum of class attributes [C, A], as hexadecimal digits.

    SHA-256 over the ASCII line `float32 [C, A]`, numbers in place, and a newline; then the numbers, row-major,
    four bytes each, little-endian.
    """
    digest = hashlib.sha256(f"float32 {list(table.shape)}\n".encode("ascii"))
    digest.update(np.ascontiguousarray(table, "<f4").data)
    return digest.hexdigest()


def save(path: Path, splits: Splits, classes: list[str], attributes: np.ndarray | None = None) -> None:
    """Write `train_x`, `train_y`, `test_x`, `test_y` and `classes` (unicode [C]) to an .npz, atomically.

    A data set with instances adds `train_instance`, `train_frame`, `test_instance` and `test_frame`, one with class
    attributes `attributes` (float32 [C, A]). Equal arrays give equal bytes: `np.savez` stores members uncompressed
    under a fixed date.
    """
    fields = {f"{name}_{field}": array for name, split in splits.items() for field, array in split._asdict().items()}
    named = {key: array for key, array in fields.items() if array is not None}
    named["classes"] = np.array(classes, dtype=np.str_)
    if attributes is not None:
        named["attributes"] = attributes
    with write_atomically(path) as temporary:
        np.savez(temporary, allow_pickle=False, **named)


def load(path: Path | str, split: str) -> Split:
    """One split ("train" or "test") of a file that `save` wrote."""
    with np.load(path, allow_pickle=False) as stored:
        return Split(*(stored.get(f"{split}_{field}") for field in Split._fields))


def labels(path: Path | str, split: str) -> np.ndarray:
    """The labels of one split, int64 [N], sorted; the pixels stay on disk."""
    with np.load(path, allow_pickle=False) as stored:
        return stored[f"{split}_y"]


def instances(path: Path | str) -> tuple[np.ndarray, np.ndarray] | None:
    """Instance and frame of each training image, int64 [N] each (see `Split`); None where the data set has none."""
    with np.load(path, allow_pickle=False) as stored:
        if "train_instance" not in stored:
            return None
        return stored["train_instance"], stored["train_frame"]


def attributes(path: Path | str) -> np.ndarray | None:
    """The attributes of each class, float32 [C, A], each row of length 1; None where the data set has none."""
    with np.load(path, allow_pickle=False) as stored:
        return stored.get("attributes")


def by_name(path: Path | str) -> dict[str, np.ndarray]:
    """All arrays of an .npz."""
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)
