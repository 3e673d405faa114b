"""Five continual-learning papers, regenerated from images to tables.

A method of one's own extends `Method` (`clpapers.runs.method`), with one seed and plain tensors. The project's own
extend `Learner` and `Replay`, which train many seeds as one program; `Setting` is their argument and `Observed` their
answer (`clpapers.runs.learner`). `clpapers.results` has the numbers as frames, `clpapers.streams` the streams; both
work in any folder.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clpapers.runs.learner import Learner, Observed, Replay, Setting
    from clpapers.runs.method import Method

__all__ = ["Learner", "Method", "Observed", "Replay", "Setting"]
MODULES = ("results", "streams")


def __getattr__(name: str) -> object:
    """The public classes and modules, on demand: importing the package imports no torch."""
    if name in MODULES:
        return importlib.import_module(f"clpapers.{name}")
    if name in __all__:
        return getattr(importlib.import_module(f"clpapers.runs.{'method' if name == 'Method' else 'learner'}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
