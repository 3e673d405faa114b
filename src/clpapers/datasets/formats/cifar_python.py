"""The official CIFAR-10 and CIFAR-100 archives: pickles, read without running any code that they name."""

import io
import pickle

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
        if not isinstance(y, list) or any(type(label) is not int for label in y):
            raise files.wrong(f"{name} holds no list of labels")
        shape = len(y), channels * height * width
        if not isinstance(stored, np.ndarray) or (stored.shape, stored.dtype) != (shape, np.uint8):
            raise files.wrong(f"{name} holds no images of its labels")
        images.append(stored)
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


ALLOWED = {
    *(("numpy", name) for name in ("dtype", "ndarray")),
    *((f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")),  # by the version that wrote it
    ("_codecs", "encode"),
}


class _Unpickler(pickle.Unpickler):
    """Builds containers, numbers, text and arrays; refuses a pickle that names anything else."""

    def find_class(self, module: str, name: str) -> type:
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is refused")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)
