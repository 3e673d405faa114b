"""Five continual-learning papers, regenerated from images to tables.

Methods of this project and from outside descend from the classes `Learner` and `Replay`. `Setting` is a method's
argument and `Observed` its answer (`clpapers.runs.learner`). `clpapers.results` has the numbers as frames,
`clpapers.streams` the streams; both work in any folder.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clpapers.runs.learner import Learner, Observed, Replay, Setting

__all__ = ["Learner", "Observed", "Replay", "Setting"]
MODULES = ("results", "streams")


def __getattr__(name: str) -> object:
    """The public classes and modules, on demand: importing the package imports no torch."""
    if name in MODULES:
        return importlib.import_module(f"clpapers.{name}")
    if name in __all__:
        return getattr(importlib.import_module("clpapers.runs.learner"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
