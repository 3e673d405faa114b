"""The project's folder, where paths of config/ and results/ begin: the working folder, or the source of this package.

An editable install knows its checkout. Any other install carries config/, the schemas and the published metrics in
`clpapers/project`; the crates of runs stay in the repository.

A path such as results/paper/runs is a name: records hold it, and digests depend on it. Its file lies below the folder
that was `entered`. The working folder belongs to the process with all its threads, and is never changed for it.
"""

import contextlib
import contextvars
import functools
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path, PosixPath
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
PACKAGE = Path(__file__).parent
CARRIED = PACKAGE / "project"
MARK = Path("config", "config.yaml")
_ENTERED: contextvars.ContextVar[Path | None] = contextvars.ContextVar("project", default=None)  # of each thread


class _ProjectPath(PosixPath):
    """A path with the name's text and parts; its file lies below the folder that was entered."""

    def __fspath__(self) -> str:
        folder = _ENTERED.get()
        return str(self) if folder is None else os.path.join(folder, str(self))

    def absolute(self) -> Path:  # type: ignore[override]
        return Path(os.fspath(self)).absolute()

    # Some Pythons list the folder of the text, not of the path.

    def iterdir(self) -> Generator[Any, None, None]:
        yield from (self / name for name in os.listdir(self))

    def glob(self, pattern: str, **options: Any) -> Generator[Any, None, None]:
        top = Path(os.fspath(self))
        yield from (self / each.relative_to(top) for each in top.glob(pattern, **options))

    def rglob(self, pattern: str, **options: Any) -> Generator[Any, None, None]:
        yield from self.glob(f"**/{pattern}", **options)


def project_path(*parts: Path | str) -> Path:
    """The path of a name in the project, such as `results/paper`; paths derived from it lie there too."""
    return _ProjectPath(*parts)


def root() -> Path:
    """The project's folder."""
    return next((folder for folder in (Path(), PACKAGE.parents[1]) if (folder / MARK).is_file()), CARRIED).absolute()


@contextlib.contextmanager
def entered(folder: Path | None = None) -> Iterator[None]:
    """Inside, in this thread, names are of a project's folder, by default this project's."""
    before = _ENTERED.set(root() if folder is None else folder)
    try:
        yield
    finally:
        _ENTERED.reset(before)


def at_home(function: Callable[P, T]) -> Callable[P, T]:
    """A function that finds its files in the project's folder."""

    @functools.wraps(function)
    def work(*arguments: P.args, **options: P.kwargs) -> T:
        with entered():
            return function(*arguments, **options)

    return work


def folder_for_downloads(before: Path, path: Path | str) -> Path:
    """`path` in the project's folder or, where that came with the package, in the folder `before`."""
    return (before if Path.cwd() == CARRIED else Path.cwd()) / path
