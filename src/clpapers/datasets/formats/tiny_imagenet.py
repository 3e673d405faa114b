"""Tiny ImageNet (Le & Yang 2015): JPEGs in a folder a class; the validation images are the test set."""

import re

from clpapers.datasets.arrays import Splits
from clpapers.datasets.files import Files
from clpapers.datasets.formats import _image

ANNOTATIONS = "val/val_annotations.txt"
TRAIN = re.compile(r"train/(n\d{8})/images/[^/]+\.JPEG\Z")


def present(files: Files) -> bool:
    return any(files.find(name) for name in ("wnids.txt", ANNOTATIONS))


def decode(files: Files, spec: dict) -> Splits:
    """All training images that are there; a label is the rank of its WordNet id in sorted order."""
    classes = spec["classes"]
    if sorted(files.read("wnids.txt").decode("utf-8-sig", "replace").split()) != classes:
        raise files.wrong("wnids.txt names other classes than ours")
    listed = files.find("wnids.txt")
    assert listed is not None  # it has just been read
    root = listed.removesuffix("wnids.txt")
    train = [(path, match[1]) for path in files.paths if (match := TRAIN.fullmatch(path.removeprefix(root)))]
    lines = files.read(root + ANNOTATIONS).decode("utf-8-sig", "replace").splitlines()
    rows = [f"{line}\t".split("\t") for line in lines]
    test = [(f"{root}val/images/{name}", wnid) for name, wnid, *_ in rows]
    labels = {wnid: label for label, wnid in enumerate(classes)}
    strange = {wnid for _, wnid in train + test} - set(labels)
    if strange:
        raise files.wrong(f"{strange.pop()!r} is no class of wnids.txt")
    examples = {"train": train, "test": test}
    return {
        split: _image.resized(files, split, [(path, labels[wnid]) for path, wnid in chosen], spec, exact=True)
        for split, chosen in examples.items()
    }
