"""Animals with Attributes 2 (Xian et al. 2018): photographs of animals, a folder a class, and their attributes."""

import math
import re

import numpy as np

from clpapers.datasets.arrays import Splits
from clpapers.datasets.files import Files
from clpapers.datasets.formats import _image, _text

CLASSES, ATTRIBUTES = "classes.txt", "predicate-matrix-continuous.txt"
IMAGE = re.compile(r"(?:^|/)JPEGImages/([^/]+)/\1_\d+\.jpg\Z")


def present(files: Files) -> bool:
    return files.find(ATTRIBUTES) is not None or any(map(IMAGE.search, files.paths))


def decode(files: Files, spec: dict) -> Splits:
    """The split of A-GEM's authors, whose lists (in github.com/facebookresearch/agem) follow a rule.

    A class's n images are taken in the order of their names. The first ⌊0.7 n⌋ are for training, the next ⌈0.15 n⌉
    for validation, which nothing here uses, and the rest for testing: 26,102 + 5,620 + 5,600.
    """
    found: dict[str, list[str]] = {name: [] for name in spec["classes"]}
    matches = [match for match in map(IMAGE.search, sorted(files.paths)) if match]
    _text.require(files, [CLASSES, ATTRIBUTES], "JPEGImages/", bool(matches))
    if _text.numbered_words(files, CLASSES) != spec["classes"]:
        raise files.wrong(f"{CLASSES} names other classes than ours")
    for match in matches:
        if match[1] not in found:
            raise files.wrong(f"{match[1]!r} is no class of {CLASSES}")
        found[match[1]].append(match.string)
    examples: dict[str, list[tuple[str, int]]] = {"train": [], "test": []}
    for label, paths in enumerate(found.values()):
        train = int(0.7 * len(paths))  # in floating point, as theirs: of 720 leopards 503
        validation = math.ceil(0.15 * len(paths))
        examples["train"] += [(path, label) for path in paths[:train]]
        examples["test"] += [(path, label) for path in paths[train + validation :]]
    return {split: _image.resized(files, split, chosen, spec) for split, chosen in examples.items()}


def attributes(files: Files, spec: dict) -> np.ndarray:
    """How strongly people link each attribute with a class.

    The antelope's four missing cells hold −1. It stays, a number like any other, as in the table of A-GEM's
    authors; it hardly changes a row's length, which is 266.
    """
    return _text.table(files, ATTRIBUTES, spec)
