"""The IDX files of MNIST and Fashion-MNIST, plain or gzipped (format: yann.lecun.com/exdb/mnist)."""

import gzip
import io
import math

import numpy as np

from clpapers.datasets.arrays import Split, Splits
from clpapers.datasets.files import Files, guarded

PREFIXES = {"train": "train", "test": "t10k"}
IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"
UINT8 = 0x08


def present(files: Files, prefixes: dict[str, str] = PREFIXES) -> bool:
    return any(_find(files, f"{prefix}-{kind}") for prefix in prefixes.values() for kind in (IMAGES, LABELS))


def decode(files: Files, spec: dict, prefixes: dict[str, str] = PREFIXES) -> Splits:
    height, width, _ = spec["shape"]
    splits = {}
    for split, prefix in prefixes.items():
        x = _read(files, f"{prefix}-{IMAGES}", (spec[split], height, width))
        y = _read(files, f"{prefix}-{LABELS}", (spec[split],))
        splits[split] = Split(x[..., None], y)
    return splits


def _find(files: Files, name: str) -> str | None:
    return files.find(name) or files.find(f"{name}.gz")


def _read(files: Files, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """One IDX file as a uint8 array; it must have exactly this shape.

    Header, big-endian: two zero bytes, the type (8: uint8), the number of dimensions, each of them (int32).
    """
    path = _find(files, name) or name
    stored = files.read(path)
    size = 4 + 4 * len(shape) + math.prod(shape)
    if path.endswith(".gz"):
        with guarded(lambda fault: files.wrong(f"{path} {fault}")):
            # one byte more than expected, to check the CRC at the end or find that more follows
            stored = gzip.GzipFile(fileobj=io.BytesIO(stored)).read(size + 1)
    header = bytes((0, 0, UINT8, len(shape))) + np.array(shape, ">i4").tobytes()
    if not stored.startswith(header):
        begins = stored[: len(header)].hex(" ", 4)
        raise files.wrong(f"{path} begins {begins}, not as IDX of {shape}")
    if len(stored) != size:
        have = f"over {size}" if len(stored) > size else str(len(stored))
        raise files.wrong(f"{path} has {have} bytes, not {size}")
    return np.frombuffer(stored, np.uint8, offset=len(header)).reshape(shape)
