"""The project's folder, where paths of config/ and results/ begin: the one at hand, or where this package comes from.

An editable install knows its checkout. Another one carries config/, the schemas and the published metrics in
`clpapers/project`; the crates of runs stay in the repository.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

from clpapers.provenance import PACKAGE

P = ParamSpec("P")
T = TypeVar("T")
CARRIED = PACKAGE / "project"
MARK = Path("config", "config.yaml")


def root() -> Path:
    """The project's folder."""
    return next((place for place in (Path(), PACKAGE.parents[1]) if (place / MARK).is_file()), CARRIED).absolute()


@contextlib.contextmanager
def entered() -> Iterator[Path]:
    """Inside, the project's folder is the working one; yields the one before."""
    before = Path.cwd()
    os.chdir(root())
    try:
        yield before
    finally:
        os.chdir(before)


def at_home(function: Callable[P, T]) -> Callable[P, T]:
    """A function that does its work in the project's folder."""

    @functools.wraps(function)
    def work(*given: P.args, **named: P.kwargs) -> T:
        with entered():
            return function(*given, **named)

    return work


def beside(before: Path, path: Path | str) -> Path:
    """A folder for what is fetched: the project's or, where that came with the package, one in the folder `before`."""
    return (before if Path.cwd() == CARRIED else Path.cwd()) / path
