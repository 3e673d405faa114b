"""Decode image files to pixels; check their sizes before anything is allocated."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from clpapers.datasets.arrays import Split
from clpapers.datasets.files import Files

LARGEST = 1 << 27  # pixels: more than any photograph here has
FORMATS = {"jpg": "JPEG", "jpeg": "JPEG", "png": "PNG", "ppm": "PPM"}


def pixels(files: Files, name: str, format: str, count: int) -> np.ndarray:
    """The image `name`, which must have `count` = H · W pixels, as uint8 [H, W, 3]."""
    return np.asarray(_rgb(files, name, format, count, count))


def resized(files: Files, split: str, examples: list[tuple[str, int]], spec: dict) -> Split:
    """Images of any size, a path and a label each, scaled bilinearly to the shape in `spec`, the aspect ignored.

    A path's suffix, one of FORMATS, names the image's format; where the shape has one channel, colours become their
    grey. Raises SourceError for more images than `spec` gives to `split`.
    """
    if len(examples) > spec[split]:
        raise files.wrong(f"has {len(examples):,} {split} images, over {spec[split]:,}")
    height, width, channels = spec["shape"]
    x = np.empty((len(examples), height, width, channels), np.uint8)
    for row, (path, _) in zip(x, examples, strict=True):
        stored = _rgb(files, path, FORMATS[path.rpartition(".")[2].lower()], 1, LARGEST)
        scaled = stored.resize((width, height), Image.Resampling.BILINEAR)
        row[:] = scaled if channels == 3 else np.asarray(scaled.convert("L"))[..., None]
    return Split(x, np.array([label for _, label in examples], np.int64))


def _rgb(files: Files, name: str, format: str, least: int, most: int) -> Image.Image:
    """The image `name` in colour; SourceError unless it has `least` to `most` pixels."""
    stored = files.read(name)
    try:
        with Image.open(io.BytesIO(stored), formats=[format]) as image:
            width, height = image.size
            if least <= width * height <= most:
                return image.convert("RGB")
    except Exception as error:  # a damaged or hostile image can break its decoder in any way
        raise files.wrong(f"{name} is no whole {format} image") from error
    bounds = most if least == most else f"{least} to {most}"
    raise files.wrong(f"{name} is {width} × {height}, not {bounds} pixels")
