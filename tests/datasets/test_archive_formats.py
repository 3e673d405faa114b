"""Each format decodes to what was put in, and refuses what is not exactly right."""

import gzip
import os
import pickle

import numpy as np
import official_formats as made
import pytest
from official_formats import held

from clpapers.datasets.files import SourceError
from clpapers.datasets.formats import cifar_python, emnist, idx, image_rows, mosaics, tiny_imagenet

DIGITS = made.entry((5, 4, 1), "012", 30, 9)
LETTERS = made.entry((5, 5, 1), "0Aa", 30, 9)
CIFAR10 = made.entry((4, 6, 3), ("cat", "dog", "frog"), 30, 9)
CIFAR100 = made.entry((4, 6, 3), ("apple", "aquarium_fish", "baby"), 24, 12)
TINY = made.entry((8, 8, 3), ("n00000001", "n00000002"), 12, 4)


def zipped(content):
    return {f"{name}.gz": gzip.compress(data) for name, data in content.items()}


CASES = {
    "idx": (idx, DIGITS, lambda s, c: made.idx_files(s)),
    "idx gzipped": (idx, DIGITS, lambda s, c: zipped(made.idx_files(s))),
    "emnist": (emnist, LETTERS, made.emnist_files),
    "cifar10": (cifar_python, CIFAR10, made.cifar10_files),
    "cifar100": (cifar_python, CIFAR100, made.cifar100_files),
    "image_rows": (image_rows, CIFAR10, lambda s, c: made.image_rows_files(s)),
    "mosaics": (mosaics, CIFAR100, made.mosaic_files),
    "tiny_imagenet": (tiny_imagenet, TINY, made.tiny_imagenet_files),
}


def content_of(case):
    format, spec, make = CASES[case]
    splits = made.random_splits(spec)
    return format, spec, splits, make(splits, spec["classes"])


def bag(x, y):
    """The examples as a sorted list: the formats keep no common order."""
    return sorted((int(label), image.tobytes()) for image, label in zip(x, y))


@pytest.mark.parametrize("case", CASES)
def test_decodes_what_was_put_in_and_recognises_its_own_files_only(case):
    format, spec, splits, content = content_of(case)
    assert format.present(held(content))
    assert not format.present(held({"readme.txt": b"", "images/cat.jpg": b""}))
    decoded = format.decode(held(content), spec)
    for name, (x, y, *_) in (made.jpeg_splits(splits) if case == "tiny_imagenet" else splits).items():
        assert decoded[name].x.shape == x.shape
        assert bag(*decoded[name][:2]) == bag(x, y)


# Not needed, or good for fewer images, which `build` counts; or so short that its half may be whole.
OPTIONAL = {
    "missing": ("mapping", "words", "boxes", "/test/images/", "/train/n0"),
    "cut in half": ("words", "boxes", "/test/images/", "annotations.txt"),
}


@pytest.mark.parametrize("damage", OPTIONAL)
@pytest.mark.parametrize("case", CASES)
def test_every_file_is_needed_whole(case, damage):
    format, spec, _, content = content_of(case)
    for name, data in content.items():
        if not any(part in name for part in OPTIONAL[damage]):
            rest = {other: data for other, data in content.items() if other != name}
            cut = {} if damage == "missing" else {name: data[: len(data) // 2]}
            with pytest.raises(SourceError, match=r"^here: "):
                format.decode(held(rest | cut), spec)


class Shell:
    """A pickle that runs a command when it is read."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def test_a_malicious_pickle_is_refused_and_not_run(tmp_path):
    _, spec, _, content = content_of("cifar10")
    marker = tmp_path / "was-here"
    evil = pickle.dumps({"data": Shell(f"touch {marker}"), "labels": [0]})
    with pytest.raises(SourceError, match=r"asks for .*system, which is refused"):
        cifar_python.decode(held({**content, "cifar-10-batches-py/data_batch_1": evil}), spec)
    assert not marker.exists()
    pickle.loads(evil)  # the same bytes do run where nobody refuses
    assert marker.exists()


def test_grey_jpegs_get_three_channels():
    format, spec, _, content = content_of("tiny_imagenet")
    grey = made.image(np.full((8, 8), 77, np.uint8), "JPEG")
    decoded = format.decode(held({**content, "tiny-imagenet-200/val/images/val_0.JPEG": grey}), spec)
    assert (decoded["test"].x == 77).all(axis=(1, 2, 3)).sum() == 1
