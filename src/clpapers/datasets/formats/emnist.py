"""EMNIST's balanced split (Cohen et al. 2017): IDX files whose images are stored transposed."""

import numpy as np

from clpapers.datasets.arrays import Split, Splits
from clpapers.datasets.files import Files
from clpapers.datasets.formats import idx

PREFIXES = {"train": "emnist-balanced-train", "test": "emnist-balanced-test"}
MAPPING = "emnist-balanced-mapping.txt"


def present(files: Files) -> bool:
    return idx.present(files, PREFIXES)


def decode(files: Files, spec: dict) -> Splits:
    """Upright images; torchvision leaves them on their side. The mapping must name the classes as we do."""
    if files.find(MAPPING):
        try:
            words = files.read(MAPPING).decode("utf-8-sig").split()
            numbers = [int(word) for word in words]  # label, character code, label, …
            names = [chr(code) for _, code in sorted(zip(numbers[::2], numbers[1::2]))]
        except (ValueError, OverflowError):
            names = []
        if names != spec["classes"]:
            raise files.wrong(f"{MAPPING} gives other classes than ours")
    splits = idx.decode(files, spec, PREFIXES)
    return {name: Split(np.swapaxes(split.x, 1, 2), split.y) for name, split in splits.items()}
