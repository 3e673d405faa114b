"""Methods, one a file; the file's name is the learner's."""

import importlib

from clpapers.runs.learner import Learner, Setting


def create(options: dict, setting: Setting) -> Learner:
    """The learner that a cell's `learner` describes: its name and options."""
    options = dict(options)
    return find(options.pop("name"))(setting, **options)


def find(name: str) -> type[Learner]:
    """The learner's class, the one that its module defines."""
    module = importlib.import_module(f"{__name__}.{name}")
    defined = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__]
    return next(v for v in defined if issubclass(v, Learner))
