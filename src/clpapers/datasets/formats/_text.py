"""Read lists and tables in plain text, and refuse a data set that lacks some of its files."""

import numpy as np

from clpapers.datasets.arrays import unit_rows
from clpapers.datasets.files import Absent, Files


def require(files: Files, lists: list[str], images: str, any_image: bool) -> None:
    """Refuse a data set without all of `lists` and some images, by an error that names everything missing.

    Raises Absent without `any_image` under `images`, since there is nothing to serve; SourceError otherwise.
    """
    missing = [name for name in lists if files.find(name) is None]
    if not any_image:
        raise Absent(f"{files.where}: lacks {', '.join([images, *missing])}")
    if missing:
        raise files.wrong(f"lacks {', '.join(missing)}")


def numbered_words(files: Files, name: str) -> list[str]:
    """The words of a list whose lines are `number word`, the numbers 1, 2, 3, …"""
    lines = [line.split() for line in files.read(name).decode("utf-8-sig", "replace").splitlines()]
    if any(len(line) != 2 or line[0] != str(number) for number, line in enumerate(lines, 1)):
        raise files.wrong(f"{name} is no list of numbered words")
    return [word for _, word in lines]


def table(files: Files, name: str, spec: dict) -> np.ndarray:
    """Class attributes as numbers in text, a line a class of `spec`; float32 [C, A], each row scaled to length 1."""
    shape = (len(spec["classes"]), spec["attributes"])
    try:
        rows = [[float(word) for word in line.split()] for line in files.read(name).decode("utf-8-sig").splitlines()]
        read = np.array(rows, np.float64)
    except ValueError as error:
        raise files.wrong(f"{name} is no table of numbers") from error
    if read.shape != shape or not np.isfinite(read).all() or not read.any(axis=1).all():
        raise files.wrong(f"{name} is no table of {shape[0]} classes × {shape[1]} attributes")
    return unit_rows(read)
