"""Image files in a folder a class, `{train,test}/<class>/…`: of any size, in colour or grey; a layout for own data."""

from __future__ import annotations

import re

from clpapers.datasets.arrays import Splits
from clpapers.datasets.files import Files
from clpapers.datasets.formats import _image

IMAGE = re.compile(rf"(?:^|/)(train|test)/([^/]+)/(?:.+/)?[^/.][^/]*\.(?:{'|'.join(_image.FORMATS)})$", re.IGNORECASE)


def present(files: Files) -> bool:
    return any(map(IMAGE.search, files.paths))


def decode(files: Files, spec: dict) -> Splits:
    """All images, scaled to the shape; a label is the place of the folder's name among `classes`."""
    classes = spec["classes"]
    found: dict[str, list[tuple[str, int]]] = {"train": [], "test": []}
    for path in files.paths:
        if match := IMAGE.search(path):
            split, name = match[1].lower(), match[2]
            if name not in classes:
                raise files.wrong(f"{split} has the folder {name!r}, which is none of the classes")
            found[split].append((path, classes.index(name)))
    for split, examples in found.items():
        for name in (name for label, name in enumerate(classes) if label not in {each for _, each in examples}):
            raise files.wrong(f"{split} has no image of {name}")
    return {split: _image.resized(files, split, examples, spec) for split, examples in found.items()}
