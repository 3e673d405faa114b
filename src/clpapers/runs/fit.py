"""Checks that a resumed state can be one of the run that resumes it, against the state of a run that has just begun.

Both have the same objects, of the same types, shared in the same places, with tensors of the same dtype, device and
shape and the same options. These may differ: values of arrays and tensors, values that are None at the beginning, items
that lists and dictionaries gain, later attributes, and the attributes in a class's `moves`.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
import torch

Pair = tuple[object, object, str, bool]  # at the beginning, resumed, where, whether it moves


def misfit(begun: object, resumed: object, constants: Collection[object] = ()) -> str:
    """The first part of a `resumed` state that cannot descend from the `begun` one, as a line; empty without any.

    constants: objects that both have in common. A class's `moves`, a tuple of texts, names attributes of its objects
    that are replaced, or below which numbers, lengths and shapes change as a run goes on and parameters freeze.
    """
    fixed = {id(each) for each in constants}
    partners: dict[int, object] = {}  # id of an object of either state → its like in the other
    walked: set[tuple[int, int]] = set()
    queue: list[Pair] = [(begun, resumed, "state", False)]
    for here, there, at, moves in queue:
        if here is None or here is there:
            continue
        if type(here) is not type(there):
            return f"{at} is of type {type(there).__name__}, not {type(here).__name__}"
        if id(here) in fixed:
            return f"{at} is another than the run's own"
        if isinstance(here, bool | int | float | str | torch.dtype | torch.device | np.dtype | np.generic | torch.Size):
            if not moves and here != there and not _nan(here, there):
                return f"{at} is {str(there)[:40]}, not {str(here)[:40]}"
            continue
        if (id(here), id(there)) in walked:
            continue
        walked.add((id(here), id(there)))
        pairs = () if moves else ((here, there), (there, here))
        if not all(partners.setdefault(id(one), other) is other for one, other in pairs):
            return f"{at} is not shared with what it should be"
        if fault := _unlike(here, there, moves=moves):
            return f"{at} {fault}"
        queue += _inside(here, there, at, moves=moves)
    return ""


def _nan(here: object, there: object) -> bool:
    return isinstance(here, float) and isinstance(there, float) and math.isnan(here) and math.isnan(there)


def _unlike(here: object, there: object, *, moves: bool) -> str:
    """The difference of two objects of one type, their contents aside; empty without any."""
    if isinstance(here, torch.Tensor | np.ndarray):
        told = [
            f"{each.dtype} {list(each.shape) if not moves or _weight(each) else each.ndim}" for each in (here, there)
        ]
        if isinstance(here, torch.Tensor):
            told = [f"{text} on {each.device}" for text, each in zip(told, (here, there))]
            if not moves and here.requires_grad != there.requires_grad:
                return "is frozen, or is not, unlike the run's own"
            if any(n > 1 and not stride for n, stride in zip(there.shape, there.stride())) and 0 not in here.stride():
                return "has items that share their memory"
        return "" if told[0] == told[1] else f"is {told[1]}, not {told[0]}"
    if isinstance(here, torch.Generator):
        return "" if here.device == there.device else f"is on {there.device}, not {here.device}"
    if isinstance(here, list | tuple):
        few = len(there) < len(here) and not moves
        return f"has {len(there)} items, not {len(here)}" if few or _tuples(here, there) else ""
    if isinstance(here, dict):
        return f"lacks {_names(here.keys() - there.keys())}" if here.keys() - there.keys() and not moves else ""
    ours, theirs = _state(here), _state(there)
    if lacking := ours.keys() - theirs.keys():
        return f"lacks {_names(lacking)}"
    if hiding := {name for name in theirs.keys() - ours.keys() if hasattr(type(here), name)}:
        return f"hides {_names(hiding)} of its class"
    if isinstance(here, torch.nn.Module):  # whose dictionaries hold its parts, and hooks
        for name in (name for name, value in ours.items() if isinstance(value, dict)):
            if not isinstance(theirs[name], dict) or ours[name].keys() != theirs[name].keys():
                return f"has other {name} than the run's own"
    return ""


def _weight(thing: object) -> bool:
    return isinstance(thing, torch.nn.Parameter)


def _tuples(here: object, there: object) -> bool:
    return isinstance(here, tuple) and len(here) != len(there)


def _names(keys: Collection[object]) -> str:
    return ", ".join(sorted(map(str, keys)))[:80]


def _state(thing: object) -> dict:
    state = thing.__getstate__()
    return state if isinstance(state, dict) else {}


def _inside(here: object, there: object, at: str, *, moves: bool) -> list[Pair]:
    """The contents of two objects that are alike, pair by pair."""
    if isinstance(here, list | tuple):
        return [(one, other, f"{at}[{i}]", moves) for i, (one, other) in enumerate(zip(here, there))]
    if isinstance(here, dict):
        return [(one, there[key], f"{at}[{str(key)[:40]}]", moves) for key, one in here.items() if key in there]
    if isinstance(here, torch.Tensor | np.ndarray | torch.Generator | np.random.Generator | set | slice):
        return []
    moving, theirs = getattr(type(here), "moves", ()), _state(there)
    if isinstance(here, torch.optim.Optimizer | torch.optim.lr_scheduler.LRScheduler):  # rates and counts change
        moving = theirs.keys()
    return [(one, theirs[name], f"{at}.{name}", moves or name in moving) for name, one in _state(here).items()]
