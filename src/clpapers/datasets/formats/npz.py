"""One .npz with `train_x`, `train_y`, `test_x` and `test_y`: a layout for own data, as `np.savez` writes it.

Images are uint8 [N, H, W, C], or [N, H, W] where there is one channel; labels whole numbers [N], of the classes in
their order. The pipeline's own data sets are laid out so too.
"""

import io
from collections.abc import Mapping

import numpy as np

from clpapers.datasets.arrays import Split, Splits
from clpapers.datasets.files import Files, guarded


def present(files: Files) -> bool:
    return any(path.endswith(".npz") for path in files.paths)


def decode(files: Files, spec: dict) -> Splits:
    names = sorted(path for path in files.paths if path.endswith(".npz"))
    if len(names) > 1:
        raise files.wrong(f"has {names[0]} and {names[1]}, not one .npz")
    with (
        guarded(lambda fault: files.wrong(f"{names[0]} {fault}")),
        np.load(io.BytesIO(files.read(names[0])), allow_pickle=False) as stored,
    ):
        return {split: _split(files, stored, split, spec) for split in ("train", "test")}


def _split(files: Files, stored: Mapping[str, np.ndarray], split: str, spec: dict) -> Split:
    count, (height, width, channels) = spec[split], spec["shape"]
    shapes = [(count, height, width, channels), *([(count, height, width)] if channels == 1 else [])]
    x = _array(files, stored, f"{split}_x", shapes, "uint8")
    y = _array(files, stored, f"{split}_y", [(count,)], "whole numbers")
    return Split(x.reshape(shapes[0]), y.astype(np.int64))


def _array(
    files: Files, stored: Mapping[str, np.ndarray], key: str, shapes: list[tuple[int, ...]], kind: str
) -> np.ndarray:
    """An array of one of the shapes, of uint8 or of any whole numbers."""
    if key not in stored:
        raise files.wrong(f"has no array {key}, only {', '.join(stored)[:200] or 'none'}")
    array = stored[key]
    if array.shape not in shapes or (array.dtype != np.uint8 if kind == "uint8" else array.dtype.kind not in "iu"):
        found = f"{array.dtype} {list(array.shape)}"
        raise files.wrong(f"{key} is {found}, not {kind} {' or '.join(str(list(shape)) for shape in shapes)}")
    return array
