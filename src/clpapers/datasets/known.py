"""Labels that are known without the images: of a toy, and of a data set whose class sizes config/ has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # not imported, so that an edit of the configuration's messages makes no stream stale
    from clpapers.config.facts import Facts
    from clpapers.config.plan import Plan


def labels(facts: Facts | Plan, dataset: str, split: str) -> np.ndarray:
    """The labels of a split as `datasets.arrays.labels` reads them, int64 [N], sorted.

    Raises `KeyError` for a split that a toy lacks, `ValueError` where only files tell (`Facts.class_sizes`).
    """
    if (class_sizes := facts.class_sizes(dataset)) is None:
        raise ValueError(f"{dataset}: the sizes of its classes are not known without its file")
    sizes = class_sizes[split]
    return np.repeat(np.arange(len(sizes)), sizes)
