"""One outside image file to pixels, its size checked before anything is allocated."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from clpapers.datasets.files import Files


def pixels(files: Files, name: str, format: str, count: int) -> np.ndarray:
    """The image `name`, which must have `count` = H · W pixels, as uint8 [H, W, 3]."""
    stored = files.read(name)
    try:
        with Image.open(io.BytesIO(stored), formats=[format]) as image:
            width, height = image.size
            if width * height == count:
                return np.asarray(image.convert("RGB"))
    except Exception as error:  # a damaged or hostile image can break its decoder in any way
        raise files.wrong(f"{name} is no whole {format} image") from error
    raise files.wrong(f"{name} is {width} × {height}, not {count} pixels")
