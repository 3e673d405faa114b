"""Lossless WebP mosaics, one a class and split: `{train,test}/<label>_<class>.webp`, images side by side."""

import re

import numpy as np

from clpapers.datasets.arrays import Split, Splits
from clpapers.datasets.files import Files
from clpapers.datasets.formats import _image

NAME = re.compile(r"(?:^|/)(train|test)/(\d+)_([^/]+)\.webp\Z")


def present(files: Files) -> bool:
    return any(map(NAME.search, files.paths))


def decode(files: Files, spec: dict) -> Splits:
    found: dict[str, dict[int, str]] = {"train": {}, "test": {}}
    for path in files.paths:
        if match := NAME.search(path):
            split, label, name = match.groups()
            if spec["classes"][int(label) : int(label) + 1] != [name]:
                raise files.wrong(f"{path} is not the name of class {label}")
            found[split][int(label)] = path
    return {split: _split(files, split, paths, spec) for split, paths in found.items()}


def _split(files: Files, split: str, paths: dict[int, str], spec: dict) -> Split:
    missing = [name for label, name in enumerate(spec["classes"]) if label not in paths]
    if missing:
        raise files.wrong(f"{split} lacks the mosaic of {missing[0]}")
    each = spec[split] // len(paths)
    x = np.concatenate([_tiles(files, paths[label], each, spec["shape"]) for label in sorted(paths)])
    return Split(x, np.repeat(np.arange(len(paths)), each))


def _tiles(files: Files, path: str, count: int, shape: list[int]) -> np.ndarray:
    """The images of one mosaic, uint8 [count, H, W, C], row by row."""
    height, width, channels = shape
    mosaic = _image.pixels(files, path, "WEBP", count * height * width)
    if mosaic.shape[0] % height or mosaic.shape[1] % width:
        raise files.wrong(f"{path} is no grid of {height} × {width} images")
    grid = mosaic.reshape(mosaic.shape[0] // height, height, mosaic.shape[1] // width, width, channels)
    return grid.swapaxes(1, 2).reshape(count, height, width, channels)
