"""`clpapers new`: commented files to start from, which run unchanged."""

import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import yaml

from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.settings import NAME, project_papers
from clpapers.provenance import PACKAGE, Refusal, escaped, write_text

TEMPLATES = PACKAGE / "new"
SIDE, EACH = 8, {"train": 20, "test": 5}  # of the sample: pixels, images a class
SAMPLE = ("left", "right")  # its classes: the brighter half


def write(kind: str, name: str, folder: Path) -> list[Path]:
    """Write the file `name` of a kind, such as paper or dataset, into a folder; returns the written files.

    A data set has the images of the folder `name` beside it, in folders `train/<class>` and `test/<class>`. Where that
    folder does not exist, a sample is written. Raises `Refusal` for a malformed name, for a name of the project's own,
    and instead of overwriting anything.
    """
    if not NAME.fullmatch(name):
        raise Refusal(f"new: {name!r}: a name has small letters, digits and _, and begins with a letter")
    datasets = CONFIG / "datasets.yaml"
    if name in (project_papers() if kind == "paper" else read_yaml(datasets) if datasets.is_file() else ()):
        raise Refusal(f"new: {name!r}: the project has a {kind} of this name; take another")
    template = next(TEMPLATES.glob(f"{kind}.*"))
    file = folder / f"{name}{template.suffix}"
    if escaped(file.absolute()) != str(file.absolute()):
        raise Refusal(
            f"new: {escaped(file.absolute())}: the folder's name is no printable text; rename it, or take another"
        )
    if file.exists() or file.is_symlink():
        raise Refusal(f"{file}: there is such a file already; take another name, or another folder by --folder")
    folder.mkdir(parents=True, exist_ok=True)
    text = template.read_text(encoding="utf-8")
    written = [file]
    if kind == "dataset":
        images = folder / name
        if not images.exists():
            _sample(images)
            written.append(images)
        values = _properties(images) | {"FOLDER beside": f"{name} beside", "NAME_OF_A_PAPER": "PAPER"}
        for key, value in values.items():
            text = text.replace(key, value)
    if yaml.safe_load(name) != name:  # such as `no`: quote it in keys and values, not in comments
        text = re.sub(r"^( *(?:(?:title|paper): )?)NAME", rf"\1{json.dumps('NAME')}", text, flags=re.MULTILINE)
        text = text.replace("folder: FOLDER", f"folder: {json.dumps(name)}")
    text = text.replace("FOLDER", name)
    write_text(file, text.replace("NAME", name).replace("PATH", str(file.absolute())))
    return written


def _properties(folder: Path) -> dict[str, str]:
    """The properties of a folder of images, by the template's keys: the first image's sides, the most channels."""
    from PIL import Image

    from clpapers.datasets import files
    from clpapers.datasets.formats import _image, image_folders

    splits = image_folders.images(replace(files.folder(folder), remedy="mend it and try again"))
    if not splits["train"] or sorted(splits["train"]) != sorted(splits["test"]):
        names_of = {split: ", ".join(classes) or "none" for split, classes in splits.items()}
        raise Refusal(
            f"{folder}: train/ has images of {names_of['train']}, test/ of {names_of['test']}; "
            "give both the same folders, or move it away for a sample"
        )
    sides, channels = [], []
    for path in (folder / name for classes in splits.values() for names in classes.values() for name in names):
        try:
            with Image.open(path, formats=_image.USER_FORMATS) as image:
                sides.append(_image.sides(image))
                channels.append(_image.channels(image))
        except Exception as error:  # a damaged image can break its decoder in any way
            fault = f"no image that can be read ({type(error).__name__})"
            raise Refusal(f"{path}: {fault}; mend it or take it away") from None
    shape = [*sides[0], max(channels)]
    sizes = {split.upper(): str(sum(map(len, classes.values()))) for split, classes in splits.items()}
    classes = sorted(splits["train"], key=_by_number)
    return {"SHAPE": str(shape), "CLASSES": json.dumps(classes, ensure_ascii=False)} | sizes


def _by_number(name: str) -> tuple[list[int | str], str]:
    """The key that sorts names of classes: numbers in them count as numbers, so that 2 comes before 10."""
    parts = re.split(r"([0-9]+)", name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)], name


def _sample(folder: Path) -> None:
    """Write a few grey images of two classes, with noise, into a folder that appears complete."""
    import numpy as np
    from PIL import Image

    from clpapers.randomness import generator

    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as work:
        for split, count in EACH.items():
            rng = generator(0, f"sample {split}")
            for half, name in enumerate(SAMPLE):
                (Path(work, "images", split, name)).mkdir(parents=True)
                for i in range(count):
                    pixels = rng.integers(0, 120, (SIDE, SIDE), dtype=np.uint8)
                    pixels[:, half * SIDE // 2 : (half + 1) * SIDE // 2] += 120
                    Image.fromarray(pixels).save(Path(work, "images", split, name, f"{i}.png"))
        Path(work, "images").rename(folder)
