"""Caltech-UCSD Birds-200-2011 (Wah et al. 2011): photographs of birds, a folder a species, and their attributes."""

import numpy as np

from clpapers.datasets.arrays import Splits
from clpapers.datasets.files import Files
from clpapers.datasets.formats import _image, _text

IMAGES, LABELS, TRAINING, CLASSES = "images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt"
ATTRIBUTES = "class_attribute_labels_continuous.txt"
FLAGS = {"1": "train", "0": "test"}  # whether an image is for training


def present(files: Files) -> bool:
    return any(files.find(name) for name in (IMAGES, LABELS, TRAINING, ATTRIBUTES))


def decode(files: Files, spec: dict) -> Splits:
    """The official split; `001.Black_footed_Albatross` is class 0, without its number."""
    any_image = any(path.endswith(".jpg") and "images" in path.split("/")[-3:-1] for path in files.paths)
    _text.require(files, [IMAGES, LABELS, TRAINING, CLASSES, ATTRIBUTES], "images/", any_image)
    folders = [f"{number:03d}.{name}" for number, name in enumerate(spec["classes"], 1)]
    if _text.numbered_words(files, CLASSES) != folders:
        raise files.wrong(f"{CLASSES} names other classes than ours")
    images, labels, training = (_text.numbered_words(files, name) for name in (IMAGES, LABELS, TRAINING))
    if not len(images) == len(labels) == len(training):
        raise files.wrong(f"{IMAGES}, {LABELS} and {TRAINING} differ in length")
    label_of = {str(label + 1): label for label in range(len(folders))}
    listed = files.find(IMAGES)
    assert listed is not None  # as `require` has made sure
    root = listed.removesuffix(IMAGES) + "images/"
    examples: dict[str, list[tuple[str, int]]] = {flag: [] for flag in FLAGS}
    for image, number, flag in zip(images, labels, training):
        if number not in label_of or flag not in examples or image.split("/")[0] != folders[label_of[number]]:
            raise files.wrong(f"{image} has class {number} and split {flag}, which do not fit its folder")
        examples[flag].append((root + image, label_of[number]))
    return {split: _image.resized(files, split, examples[flag], spec) for flag, split in FLAGS.items()}


def attributes(files: Files, spec: dict) -> np.ndarray:
    """How many per cent of a class's images show each attribute."""
    return _text.table(files, ATTRIBUTES, spec)
