"""How a cell's values lie over each other: defaults, then a data set's, a learner's, a target's and a factor's."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

from clpapers.config.schemas import schema


class Layer(NamedTuple):
    """Some of a cell's values: the `block` that a place `at` in a paper's content says.

    named: how many of the block's outer keys the place itself names, as `budget.memory` does in a grid.
    """

    at: tuple[str | int, ...]
    block: dict
    named: int = 0


def merge(base: dict, over: dict) -> dict:
    """`over` laid over `base`, mapping by mapping; lists and scalars are replaced. Neither argument changes.

    A block that changes its `name` keeps of the base only what the new name takes too: `{name: split, tasks: 5}`
    over an `stf` order keeps the length and drops μ_σ.
    """
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            name = value.get("name", below.get("name"))
            if name != below.get("name"):
                options = schema("paper")["$defs"].get(f"{key}_options", {}).get("const", {}).get(name, below)
                below = {k: v for k, v in below.items() if k in options}
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def levels(at: tuple, values: dict, there: dict[str, list]) -> list[Layer]:
    """What the `values` of a grid say, by dotted key, of those that are `there`: `budget.memory`, 5 and the like."""
    return [
        Layer((*at, key, there[key].index(value)), nested(key, value), key.count(".") + 1)
        for key, value in values.items()
        if key not in ("dataset", "learner")
    ]


def nested(key: str, value: object) -> dict:
    """`budget.memory`, 5 → {"budget": {"memory": 5}}."""
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


def flattened(layers: Iterable[Layer]) -> dict:
    """What layers come to, each laid over those before it."""
    return functools.reduce(merge, (layer.block for layer in layers if layer.block), {})


def of_dataset(content: dict, dataset: str) -> list[Layer]:
    """What a paper's content says of every cell on a data set."""
    block = {k: v for k, v in content["datasets"][dataset].items() if k not in ("learners", "desiderata")}
    return [Layer(("defaults",), content.get("defaults", {})), Layer(("datasets", dataset), block)]


def of_learner(content: dict, dataset: str, learner: str) -> list[Layer]:
    """What it says of a learner there: the options, `method`, and under `cell` what the learner changes of a cell."""
    there = content["datasets"][dataset].get("learners", {}).get(learner, {})
    return [
        Layer(("learners", learner), content["learners"][learner]),
        Layer(("datasets", dataset, "learners", learner), there),
    ]


def within(layers: Iterable[Layer], key: str) -> list[Layer]:
    """The blocks that layers have under `key`."""
    return [
        Layer(at if named else (*at, key), block[key], max(named - 1, 0)) for at, block, named in layers if key in block
    ]
