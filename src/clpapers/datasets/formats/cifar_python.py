"""The official CIFAR-10 and CIFAR-100 archives: pickles, read without running any code that they name."""

import io
import pickle
from typing import ClassVar

import numpy as np

from clpapers.datasets.arrays import Split, Splits
from clpapers.datasets.files import Files, guarded

# For each of the two: batches of a split, key of the labels in a batch; file and key of the class names.
CIFAR10 = {"train": [f"data_batch_{k}" for k in range(1, 6)], "test": ["test_batch"]}, "labels"
CIFAR100 = {"train": ["train"], "test": ["test"]}, "fine_labels"
NAMES = {"labels": ("batches.meta", "label_names"), "fine_labels": ("meta", "fine_label_names")}


def present(files: Files) -> bool:
    return any(files.find(name) for name in ("data_batch_1", "test_batch", "train", "test"))


def decode(files: Files, spec: dict) -> Splits:
    batches, key = CIFAR10 if files.find("data_batch_1") or files.find("test_batch") else CIFAR100
    file, names = NAMES[key]
    if _unpickle(files, file).get(names) != spec["classes"]:
        raise files.wrong(f"{file} names other classes than ours")
    return {split: _split(files, batches[split], key, spec) for split in ("train", "test")}


def _split(files: Files, names: list[str], key: str, spec: dict) -> Split:
    height, width, channels = spec["shape"]
    images, labels = list[np.ndarray](), list[int]()
    for name in names:
        batch = _unpickle(files, name)
        stored, y = batch.get("data"), batch.get(key)
        if not isinstance(stored, _Array) or not isinstance(y, list) or any(type(label) is not int for label in y):
            raise files.wrong(f"{name} holds no images and labels that match")
        if stored.pixels.shape != (len(y), channels * height * width):
            raise files.wrong(f"{name} holds no images and labels that match")
        images.append(stored.pixels)
        labels += y
    x = np.concatenate(images).reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
    return Split(x, np.array(labels, np.int64))


def _unpickle(files: Files, name: str) -> dict:
    stored = files.read(name)
    with guarded(lambda fault: files.wrong(f"{name} is no CIFAR pickle: it {fault}")):
        read = _Unpickler(io.BytesIO(stored), encoding="latin1").load()
    if not isinstance(read, dict):
        raise files.wrong(f"{name} holds no dictionary")
    return read


class _Dtype:
    """Replaces `numpy.dtype` in a pickle; refuses all but uint8."""

    def __init__(self, code: str, *_: object) -> None:
        if code not in ("u1", "|u1"):
            raise pickle.UnpicklingError(f"an array of {code!r}, not of uint8")

    def __setstate__(self, _: object) -> None:
        """Ignore byte order and the like, which mean nothing for uint8."""


class _Array:
    """Replaces `numpy.ndarray` in a pickle by the uint8 array `pixels`, without running numpy's unpickling."""

    def __init__(self, *_: object) -> None:
        self.pixels = np.empty(0, np.uint8)

    def __setstate__(self, state: tuple) -> None:
        _, shape, _, fortran, stored = state
        if isinstance(stored, str):  # Python 2, which wrote the official files, stored bytes as str
            stored = stored.encode("latin1")
        self.pixels = np.frombuffer(stored, np.uint8).reshape(shape, order="F" if fortran else "C")


ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
}
UNUSED = (  # opcodes that allocate a stated size, or refer to something outside the file
    *pickle.BYTEARRAY8,
    *pickle.NEXT_BUFFER,
    *pickle.READONLY_BUFFER,
    *(pickle.EXT1 + pickle.EXT2 + pickle.EXT4 + pickle.PERSID + pickle.BINPERSID),
)


class _Unpickler(pickle._Unpickler):
    """Builds containers, numbers, text and the classes above; refuses a pickle that names anything else.

    Derived from the unpickler in Python: the one in C allocates whatever a pickle of ten bytes asks for.
    """

    dispatch: ClassVar[dict] = {code: load for code, load in pickle._Unpickler.dispatch.items() if code not in UNUSED}

    def find_class(self, module: str, name: str) -> type:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is refused")
        return ALLOWED[module, name]
