"""The project's folder, where paths of config/ and results/ begin: the working folder, or the source of this package.

An editable install knows its checkout. Any other install carries config/, the schemas and the published metrics in
`clpapers/project`; the crates of runs stay in the repository.
"""

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
    return next((folder for folder in (Path(), PACKAGE.parents[1]) if (folder / MARK).is_file()), CARRIED).absolute()


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
    def work(*arguments: P.args, **options: P.kwargs) -> T:
        with entered():
            return function(*arguments, **options)

    return work


def folder_for_downloads(before: Path, path: Path | str) -> Path:
    """`path` in the project's folder or, where that came with the package, in the folder `before`."""
    return (before if Path.cwd() == CARRIED else Path.cwd()) / path
