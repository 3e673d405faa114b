"""The terms between the loop and a method from outside: tensors of its own, facts that it declares, answers in form.

A method that breaks them ends in `Broken`, one line: file, line, fault, remedy.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import torch

from clpapers.provenance import Refusal


class Broken(Refusal):
    """A method breaks a contract; one line: file, line, fault, remedy."""


class Undeclared:
    """In the place of a fact that a method does not declare in `uses`: whatever is done with it is refused."""

    def __init__(self, fact: str, use: str):
        self._fact, self._use = fact, use

    def _refuse(self, *_: object) -> NoReturn:
        frame = inspect.currentframe()
        while frame is not None and frame.f_globals.get("__name__") in (__name__, "torch._tensor"):
            frame = frame.f_back
        assert frame is not None
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        raise Broken(f'{where}: {self._fact} is not there, as "uses" has no "{self._use}"; declare it there')

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    @classmethod
    def __torch_function__(cls, function: object, types: object, args: tuple = (), kwargs: object = None) -> object:
        self, *_ = (each for each in args if isinstance(each, cls))
        self._refuse()

    __getitem__ = __len__ = __iter__ = __eq__ = __ne__ = __bool__ = __int__ = __index__ = __add__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def checked_step(observed: object, seeds: int, shape: Sequence[int], function: Any) -> Iterator[torch.Tensor | None]:
    """Copies of the loss [S] and the logits, of a shape [S, B, K], that a learner's `observe` returned.

    Raises `Broken` where it returned anything else.
    """
    where = f"{location(function)}: observe returns"
    if not isinstance(observed, tuple) or len(observed) != 2:
        raise Broken(f"{where} {described(observed)}; return Observed(loss, logits)")
    for name, given, wanted in zip(("loss", "logits"), observed, ([seeds], list(shape))):
        if given is not None and (not isinstance(given, torch.Tensor) or list(given.shape) != wanted):
            remedy = f"there are {seeds} seeds, return {wanted} or None"
            raise Broken(f"{where} {name} of {described(given)}; {remedy}")
        yield None if given is None else given.detach().clone()


def location(function: Any) -> str:
    """File and line of a function of a method."""
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def checked_scores(scores: object, shape: Sequence[int], function: Any) -> torch.Tensor:
    """The scores that a method's function returned. Raises `Broken` where they are none of this shape.

    A NaN beside finite scores is refused too: it stands in no order with them. An item with nothing but NaN is none,
    as when a net has diverged.
    """
    if not isinstance(scores, torch.Tensor) or not scores.is_floating_point() or scores.shape != torch.Size(shape):
        wanted = f"return {list(shape)}, a score for each of the {shape[-1]} classes, the largest for the answer"
        raise Broken(f"{location(function)}: {function.__name__} returns {described(scores)}; {wanted}")
    if ((nan := scores.isnan()).any(dim=-1) & ~nan.all(dim=-1)).any():
        remedy = "return -inf for a class that is no answer"
        raise Broken(f"{location(function)}: {function.__name__} returns NaN for some of the classes; {remedy}")
    return scores


def described(value: object) -> str:
    """The kind of a value, and a tensor's shape: `int64 [5]`."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    return type(value).__name__
