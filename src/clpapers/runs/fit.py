"""Checks that a resumed state can be one of the run that resumes it, against the state of a run that has just begun.

Both have the same objects, of the same types, shared in the same places, with tensors of the same dtype, device and
shape and the same options. These may differ: values of arrays and tensors, values that are None at the beginning, items
that lists and dictionaries gain, later attributes, and the attributes in a class's `moves`.
"""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import torch

Pair = tuple[Any, Any, str, bool]  # at the beginning, resumed, path, whether it moves; objects may be of any kind


def misfit(begun: Any, resumed: Any, constants: Collection[object] = ()) -> str:
    """The first part of a `resumed` state that cannot descend from the `begun` one, as a line; empty without any.

    constants: objects that both have in common. A class's `moves`, a tuple of texts, names attributes of its objects
    that are replaced, or below which numbers, lengths and shapes change as a run goes on and parameters freeze.
    """
    fixed = {id(each) for each in constants}
    partners: dict[int, object] = {}  # id of an object of either state → its counterpart in the other
    walked: set[tuple[int, int]] = set()
    queue: list[Pair] = [(begun, resumed, "state", False)]
    for one, other, path, moves in queue:
        if one is None or one is other:
            continue
        if type(one) is not type(other):
            return f"{path} is of type {type(other).__name__}, not {type(one).__name__}"
        if id(one) in fixed:
            return f"{path} is another than the run's own"
        if isinstance(one, bool | int | float | str | torch.dtype | torch.device | np.dtype | np.generic | torch.Size):
            if not moves and one != other and not _nan(one, other):
                return f"{path} is {str(other)[:40]}, not {str(one)[:40]}"
            continue
        if (id(one), id(other)) in walked:
            continue
        walked.add((id(one), id(other)))
        pairs = () if moves else ((one, other), (other, one))
        if not all(partners.setdefault(id(a), b) is b for a, b in pairs):
            return f"{path} is not shared with what it should be"
        if difference := _unlike(one, other, moves=moves):
            return f"{path} {difference}"
        queue += _inside(one, other, path, moves=moves)
    return ""


def _nan(begun: Any, resumed: Any) -> bool:
    return isinstance(begun, float) and isinstance(resumed, float) and math.isnan(begun) and math.isnan(resumed)


def _unlike(begun: Any, resumed: Any, *, moves: bool) -> str:
    """The difference of two objects of one type, their contents aside; empty without any."""
    if isinstance(begun, torch.Tensor | np.ndarray):
        texts = [
            f"{each.dtype} {list(each.shape) if not moves or _weight(each) else each.ndim}" for each in (begun, resumed)
        ]
        if isinstance(begun, torch.Tensor):
            texts = [f"{text} on {each.device}" for text, each in zip(texts, (begun, resumed))]
            if not moves and begun.requires_grad != resumed.requires_grad:
                return "is frozen, or is not, unlike the run's own"
            if (
                any(n > 1 and not stride for n, stride in zip(resumed.shape, resumed.stride()))
                and 0 not in begun.stride()
            ):
                return "has items that share their memory"
        return "" if texts[0] == texts[1] else f"is {texts[1]}, not {texts[0]}"
    if isinstance(begun, torch.Generator):
        return "" if begun.device == resumed.device else f"is on {resumed.device}, not {begun.device}"
    if isinstance(begun, list | tuple):
        few = len(resumed) < len(begun) and not moves
        return f"has {len(resumed)} items, not {len(begun)}" if few or _tuples(begun, resumed) else ""
    if isinstance(begun, dict):
        return f"lacks {_names(begun.keys() - resumed.keys())}" if begun.keys() - resumed.keys() and not moves else ""
    ours, theirs = _state(begun), _state(resumed)
    if lacking := ours.keys() - theirs.keys():
        return f"lacks {_names(lacking)}"
    if hiding := {name for name in theirs.keys() - ours.keys() if hasattr(type(begun), name)}:
        return f"hides {_names(hiding)} of its class"
    if isinstance(begun, torch.nn.Module):  # whose dictionaries hold its parts, and hooks
        for name in (name for name, value in ours.items() if isinstance(value, dict)):
            if not isinstance(theirs[name], dict) or ours[name].keys() != theirs[name].keys():
                return f"has other {name} than the run's own"
    return ""


def _weight(item: object) -> bool:
    return isinstance(item, torch.nn.Parameter)


def _tuples(begun: Any, resumed: Any) -> bool:
    return isinstance(begun, tuple) and len(begun) != len(resumed)


def _names(keys: Collection[object]) -> str:
    return ", ".join(sorted(map(str, keys)))[:80]


def _state(item: object) -> dict:
    state = item.__getstate__()
    return state if isinstance(state, dict) else {}


def _inside(begun: Any, resumed: Any, path: str, *, moves: bool) -> list[Pair]:
    """The contents of two objects of one form, pair by pair."""
    if isinstance(begun, list | tuple):
        return [(one, other, f"{path}[{i}]", moves) for i, (one, other) in enumerate(zip(begun, resumed))]
    if isinstance(begun, dict):
        return [(one, resumed[key], f"{path}[{str(key)[:40]}]", moves) for key, one in begun.items() if key in resumed]
    if isinstance(begun, torch.Tensor | np.ndarray | torch.Generator | np.random.Generator | set | slice):
        return []
    moving, theirs = getattr(type(begun), "moves", ()), _state(resumed)
    if isinstance(begun, torch.optim.Optimizer | torch.optim.lr_scheduler.LRScheduler):  # rates and counts change
        moving = theirs.keys()
    return [(one, theirs[name], f"{path}.{name}", moves or name in moving) for name, one in _state(begun).items()]
