"""Lay a cell's values over each other: defaults, then the data set's, the learner's, the target's and the factors'."""

import functools
from collections.abc import Iterable
from typing import NamedTuple

from clpapers.config.parts import takes


class Layer(NamedTuple):
    """Some of a cell's values: the `block` at a `path` in a paper's content.

    named: how many of the block's outer keys the path itself names, as `budget.memory` does in a grid.
    """

    path: tuple[str | int, ...]
    block: dict
    named: int = 0


def merge(base: dict, over: dict) -> dict:
    """`over` laid over `base`, mapping by mapping; lists and scalars are replaced. Neither argument changes.

    A block that changes its `name` keeps only the options of the base that the new name takes too: `{name: split,
    tasks: 5}` over an `stf` order keeps the length and drops μ_σ.
    """
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            name = value.get("name", below.get("name"))
            if name != below.get("name"):
                options = takes(key, name)
                below = below if options is None else {k: v for k, v in below.items() if k in options}
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def levels(path: tuple, values: dict, grid: dict[str, list]) -> list[Layer]:
    """The layers of `values`, by dotted key such as `budget.memory`; `grid` lists each key's values."""
    return [
        Layer((*path, key, grid[key].index(value)), nested(key, value), key.count(".") + 1)
        for key, value in values.items()
        if key not in ("dataset", "learner")
    ]


def nested(key: str, value: object) -> dict:
    """`budget.memory`, 5 → {"budget": {"memory": 5}}."""
    *outer, last = key.split(".")
    block = {last: value}
    for part in reversed(outer):
        block = {part: block}
    return block


def flattened(layers: Iterable[Layer]) -> dict:
    """The values of layers, each laid over the layers before it."""
    return functools.reduce(merge, (layer.block for layer in layers if layer.block), {})


def of_dataset(content: dict, dataset: str) -> list[Layer]:
    """The layers of a paper's content for every cell on a data set."""
    block = {k: v for k, v in content["datasets"][dataset].items() if k != "learners"}
    return [Layer(("defaults",), content.get("defaults", {})), Layer(("datasets", dataset), block)]


def of_learner(content: dict, dataset: str, learner: str) -> list[Layer]:
    """The layers for a learner there: its options, `method`, and under `cell` the values of a cell that it changes."""
    changes = content["datasets"][dataset].get("learners", {}).get(learner, {})
    return [
        Layer(("learners", learner), content["learners"][learner]),
        Layer(("datasets", dataset, "learners", learner), changes),
    ]


def within(layers: Iterable[Layer], key: str) -> list[Layer]:
    """The blocks that layers have under `key`."""
    return [
        Layer(path if named else (*path, key), block[key], max(named - 1, 0))
        for path, block, named in layers
        if key in block
    ]
