"""One .npz with `train_x`, `train_y`, `test_x` and `test_y`: a layout for own data, as `np.savez` writes it.

Images are uint8 [N, H, W, C], or [N, H, W] where there is one channel; labels whole numbers [N], of the classes in
their order. The pipeline's own data sets are laid out so too.
"""

import io
import math
import zipfile

import numpy as np

from clpapers.datasets.arrays import Split, Splits
from clpapers.datasets.files import Files, guarded

HEADER = 1 << 14  # bytes, more than that of any array here
READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def present(files: Files) -> bool:
    return any(path.endswith(".npz") for path in files.paths)


def decode(files: Files, spec: dict) -> Splits:
    names = sorted(path for path in files.paths if path.endswith(".npz"))
    if len(names) > 1:
        raise files.wrong(f"has {names[0]} and {names[1]}, not one .npz")
    stored = files.read(names[0])
    with guarded(lambda fault: files.wrong(f"{names[0]} {fault}")), zipfile.ZipFile(io.BytesIO(stored)) as archive:
        return {split: _split(files, archive, split, spec) for split in ("train", "test")}


def _split(files: Files, archive: zipfile.ZipFile, split: str, spec: dict) -> Split:
    count, (height, width, channels) = spec[split], spec["shape"]
    shapes = [(count, height, width, channels), *([(count, height, width)] if channels == 1 else [])]
    x = _array(files, archive, f"{split}_x", shapes, "u1")
    y = _array(files, archive, f"{split}_y", [(count,)], "iu")
    return Split(x.reshape(shapes[0]), y.astype(np.int64))


def _array(files: Files, archive: zipfile.ZipFile, key: str, shapes: list[tuple[int, ...]], kinds: str) -> np.ndarray:
    """An array of one of the shapes, of uint8 ("u1") or of any whole numbers ("iu"); nothing else is even unpacked."""
    if f"{key}.npy" not in archive.namelist():
        raise files.wrong(f"has no array {key}, only {', '.join(archive.namelist())[:200] or 'none'}")
    most = HEADER + 8 * math.prod(shapes[0])
    with archive.open(f"{key}.npy") as member:
        stored = member.read(most + 1)
    stream = io.BytesIO(stored)
    shape, fortran, dtype = READERS[np.lib.format.read_magic(stream)](stream)
    if shape not in shapes or (dtype != np.uint8 if kinds == "u1" else dtype.kind not in kinds):
        wanted = "uint8" if kinds == "u1" else "whole numbers"
        raise files.wrong(f"{key} is {dtype} {list(shape)}, not {wanted} {' or '.join(str(list(s)) for s in shapes)}")
    whole = np.frombuffer(stored, dtype, math.prod(shape), stream.tell())
    return whole.reshape(shape, order="F" if fortran else "C")
