"""Methods, one a file; the file's name is the learner's."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from clpapers.runs.learner import Learner, Setting
from clpapers.runs.method import Method, OneSeed


def create(options: dict, setting: Setting) -> Learner:
    """The learner that a cell's `learner` describes: its name and options."""
    options = dict(options)
    found = written(options.pop("name"), options.pop("file", None))
    return OneSeed(setting, found, options) if issubclass(found, Method) else found(setting, **options)


def find(name: str, file: str | None = None) -> type[Learner]:
    """The class of a learner, as the loop sees it."""
    found = written(name, file)
    return OneSeed if issubclass(found, Method) else found


def written(name: str, file: str | None = None) -> type[Learner] | type[Method]:
    """The class that a learner's module defines; of a method from outside, the copy of its file."""
    module = _of_file(Path(file)) if file else importlib.import_module(f"{__name__}.{name}")
    defined = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__]
    return next(v for v in defined if issubclass(v, Learner | Method))


def _of_file(file: Path) -> ModuleType:
    """The module of a file, imported once; it stands among this package's modules, where a checkpoint finds it.

    Another file of the name takes its place.
    """
    name = f"{__name__}.{file.stem.replace('.', '_')}"
    if getattr(sys.modules.get(name), "__file__", None) != str(file):
        sys.modules[name] = module = ModuleType(name)  # before it runs: classes look there for their declaration
        module.__file__ = str(file)
        try:
            exec(compile(file.read_bytes(), file, "exec"), vars(module))  # leaves no __pycache__ beside the file
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
