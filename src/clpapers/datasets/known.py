"""Labels that are known without the images: of a toy, and of a data set whose class sizes config/ has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clpapers.config.facts import class_sizes

if TYPE_CHECKING:
    from clpapers.config.facts import Facts
    from clpapers.config.plan import Plan


def labels(known: Facts | Plan, dataset: str, split: str) -> np.ndarray:
    """The labels of a split as `datasets.arrays.labels` reads them, int64 [N], sorted.

    Raises `KeyError` for a split that a toy lacks, `ValueError` where only files tell (`config.facts.class_sizes`).
    """
    if (found := class_sizes(known, dataset)) is None:
        raise ValueError(f"{dataset}: the sizes of its classes are not known without its file")
    sizes = found[split]
    return np.repeat(np.arange(len(sizes)), sizes)
