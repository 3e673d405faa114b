"""What no data set may be, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses
import zipfile
from pathlib import Path

import numpy as np
import official_formats as made
import pytest
import refusals
import test_archive_formats as official
import test_cub_awa as pictured
import test_icubworld as icub
import test_own_formats as own
from PIL import Image
from test_archive_formats import zipped
from test_build import in_folder, small
from test_cub_awa import TABLE, cub_files
from test_datasets_yaml import change, check
from test_keras import package
from test_own_formats import PNG, RAMP, built, stored

from clpapers.datasets import files, keras, packages, sources
from clpapers.datasets.formats import icubworld, image_folders, npz

pytestmark = pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
IDX = "train-images-idx3-ubyte"
WHOLE = official.content_of("idx")[-1][IDX]
BATCH = "cifar-10-batches-py/data_batch_2"
HTML = b"\n<!DOCTYPE html><html>please log in</html>" + bytes(600)


def decoded(case, changed=(), **spec):
    """What a format reads of its own files, some of which are changed."""
    format, known, _, content = official.content_of(case)
    format.decode(made.held(content | dict(changed)), known | spec)


def other_classes(case):
    _, spec, *_ = official.content_of(case)
    return [*spec["classes"][1:], spec["classes"][0]]


def strip(*size):
    return {"package/test_batch.png": made.image(np.zeros((*size, 3), np.uint8), "PNG")}


def batch(data=None, labels=()):
    return {BATCH: made.python2_pickle({"data": data, "labels": list(labels)})}


def plain(*shape, kind="JPEG"):
    return made.image(np.zeros((*shape, 3), np.uint8), kind)


def huge(height, width):
    """A JPEG that says that it has this size; nothing of it is there."""
    content = plain(8, 8)
    sizes = content.index(b"\xff\xc0") + 5
    return content[:sizes] + height.to_bytes(2) + width.to_bytes(2) + content[sizes + 4 :]


def pictures(case, changed=(), without=()):
    """The images of a set with attributes, from its own files but for some, whose names may be cut in front."""
    content = pictured.CASES[case][2]()
    named = {next((name for name in content if name.endswith(end)), end): data for end, data in dict(changed).items()}
    kept = {name: data for name, data in (content | named).items() if not name.endswith(tuple(without))}
    pictured.read(case, kept)


def replaced(name, old, new):
    """A list of CUB-200's with other lines."""
    content = cub_files()[f"CUB_200_2011/{name}.txt"]
    assert old in content
    return {f"/{name}.txt": content.replace(old, new, 1)}


def in_files(*places):
    """Images in folders of these names."""
    for place in places:
        Path(place).mkdir(parents=True)
        Path(place, "0.png").write_bytes(PNG)


def encrypted():
    """A zip whose member's flag and directory say so."""
    stored = bytearray(made.write_zip(Path("x.zip"), {"a": b"a"}).read_bytes())
    stored[6] |= 1
    stored[stored.find(b"PK\x01\x02") + 8] |= 1
    Path("x.zip").write_bytes(bytes(stored))


def twice():
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.writestr("train/cat/0.png", PNG)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("train/cat/0.png", b"other")


def one_pixel(splits):
    """The images, of which one is other."""
    x, y = splits["train"]
    return splits | {"train": (x ^ (np.arange(len(x)) == 3)[:, None, None, None], y)}


def animated(form):
    return stored(RAMP, form, save_all=True, append_images=[Image.fromarray(RAMP.T)])


def keras_with(member):
    """The digest of a package, which then holds other bytes of a member."""
    return package(Path("p.tgz"), lambda name, data: data[::-1] if name.endswith(f"/{member}") else data)


test_refused, test_unedited = refusals.tests("datasets", vars(own) | globals())
