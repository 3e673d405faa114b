"""iCubWorld 1.0 (Fanello et al. 2013): crops of filmed objects; each category's folder has one for each object."""

import re

import numpy as np

from clpapers.datasets.arrays import Splits
from clpapers.datasets.files import Files, SourceError
from clpapers.datasets.formats import _image

IMAGE = re.compile(rf"(?:^|/)(train|test/[^/]+)/([^/]+)/(?:.+/)?[^/]+\.(?:{'|'.join(_image.FORMATS)})\Z")


def present(files: Files) -> bool:
    return any(map(IMAGE.search, files.paths))


def decode(files: Files, spec: dict) -> Splits:
    """All training images, and the owners' test set that `spec` names.

    In training, each folder of an object is an instance; its frames are in the order of their numbers.
    """
    train, test = (_recordings(files, part, spec) for part in ("train", f"test/{spec['test_set']}"))
    for name, folders in zip(spec["classes"], train):
        if len(folders) != spec["instances"]:
            problem = f"train/{name} has images in {len(folders)} folders, not {spec['instances']}"
            raise SourceError(f"{files.where}: {problem}; give each object's frames a folder of their own")
    splits = {}
    for split, found in (("train", train), ("test", test)):
        examples = [(path, label) for label, folders in enumerate(found) for frames in folders for path in frames]
        splits[split] = _image.resized(files, split, examples, spec)
    sizes = [len(frames) for folders in train for frames in folders]
    instance, frame = np.repeat(np.arange(len(sizes)), sizes), np.concatenate([np.arange(size) for size in sizes])
    return {"train": splits["train"]._replace(instance=instance, frame=frame), "test": splits["test"]}


def _recordings(files: Files, part: str, spec: dict) -> list[list[list[str]]]:
    """The paths of the frames of each object of each category of `part`, in the order of their numbers."""
    found: dict[str, dict[str, list[str]]] = {}
    for match in filter(None, map(IMAGE.search, files.paths)):
        if match[1] == part:
            folder = match.string.rpartition("/")[0]
            found.setdefault(match[2], {}).setdefault(folder, []).append(match.string)
    if sorted(found) != spec["classes"]:
        theirs, ours = (", ".join(names) or "none" for names in (sorted(found), spec["classes"]))
        raise SourceError(
            f"{files.where}: {part} has the categories {theirs}, not {ours}; take iCubWorld 1.0, or, if this is it, "
            "correct `classes` in config/datasets.yaml"
        )
    return [[sorted(frames, key=_number) for _, frames in sorted(found[name].items())] for name in spec["classes"]]


def _number(path: str) -> tuple[list[int], str]:
    """A sort key that puts 9.ppm before 10.ppm."""
    return [int(digits) for digits in re.findall(r"\d+", path.rpartition("/")[2])], path
