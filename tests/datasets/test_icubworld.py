"""iCubWorld 1.0: instances and frames out of the official layout, and refusals of anything else."""

import hashlib

import numpy as np
import official_formats as made
import pytest
from official_formats import held

from clpapers.datasets import arrays
from clpapers.datasets.build import DatasetError
from clpapers.datasets.formats import icubworld

THINGS = ("bananas", "cans", "pears")
FRAMES = 12  # of an object: numbers of one and of two digits
FOLDER = {"kind": "folder", "formats": ["icubworld"]}
ARCHIVE = {"kind": "archive", "url": "http://127.0.0.1:9/iCubWorld.zip", "md5": None, "format": "icubworld"}
OPTIONS = {"instances": 2, "test_set": "categorization"}
SPEC = made.entry((6, 6, 3), THINGS, 3 * 2 * FRAMES, 3 * 4, [FOLDER, ARCHIVE], **OPTIONS)


def picture(label, thing, frame, side=6):
    """What an image shows, in its three colours."""
    return np.full((side, side, 3), (40 * label, 30 * thing, 5 * frame), np.uint8)


def official(root="iCubWorld/", kind="PPM"):
    """The official layout; in training, objects and frames named so that only their numbers put frames in order."""
    content, suffix = {f"{root}readme.txt": b"iCubWorld 1.0", f"{root}train/Thumbs.db": b""}, kind.lower()
    for label, name in enumerate(THINGS):
        for frame in range(FRAMES):
            for thing, folder in enumerate(("a", "b")):
                path = f"{root}train/{name}/{name}_{folder}/{frame}.{suffix}"
                content[path] = made.image(picture(label, thing, frame), kind)
        for frame in range(4):
            new = f"{root}test/categorization/{name}/{frame:08d}.{suffix}"  # no folder an object: there is but one
            content[new] = made.image(picture(label, 4, frame), kind)
            known = f"{root}test/demonstrator/{name}/{name}_a/{frame}.{suffix}"
            content[known] = made.image(picture(label, 7, frame), kind)
            large = f"{root}test/robot/{name}/{name}_a/{frame}.{suffix}"
            content[large] = made.image(picture(label, 8, frame, 12), kind)
    return content


@pytest.mark.parametrize(("root", "kind"), [("iCubWorld/", "PPM"), ("", "PNG"), ("mine/iCubWorld/", "PPM")])
def test_each_frame_has_its_object_and_its_place(root, kind):
    assert icubworld.present(held(official(root, kind)))
    train = icubworld.decode(held(official(root, kind)), SPEC)["train"]
    label, thing, frame = (train.x[:, 0, 0, colour] // step for colour, step in enumerate((40, 30, 5)))
    np.testing.assert_array_equal(train.y, label)
    np.testing.assert_array_equal(train.instance, 2 * label + thing)
    np.testing.assert_array_equal(train.frame, frame)
    assert np.bincount(train.instance).tolist() == [FRAMES] * 6


@pytest.mark.parametrize(("test_set", "thing"), [("categorization", 4), ("demonstrator", 7)])
def test_the_test_split_is_the_set_asked_for(test_set, thing):
    test = icubworld.decode(held(official()), SPEC | {"test_set": test_set})["test"]
    assert test.y.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert (test.x[..., 1] == 30 * thing).all()
    assert test.instance is None


def test_crops_of_another_size_are_scaled():
    content = official()
    content["iCubWorld/train/cans/cans_b/3.ppm"] = made.image(picture(1, 1, 3, 9), "PPM")
    np.testing.assert_array_equal(icubworld.decode(held(content), SPEC)["train"].x[36 + 3], picture(1, 1, 3))


def without(part):
    return {path: data for path, data in official().items() if part not in path}


HELLO = {f"{who}/{part}/{name}/0.jpg": b"" for who in ("human", "robot") for part in ("train", "test")
         for name in ("octopus", "turtle")}  # fmt: skip


def test_built_from_the_users_folder(build, tmp_path):
    made.write_zip(tmp_path / "data/icub/iCubWorld.zip", official())
    info = build(SPEC, "icub")
    assert (info["source"], info["proof"], info["train"], info["test"]) == ("folder", "counts only", 72, 12)
    label, thing, frame = (arrays.load(tmp_path / "out/icub.npz", "train").x[:, 0, 0] // (40, 30, 5)).T
    np.testing.assert_array_equal(arrays.labels(tmp_path / "out/icub.npz", "train"), label)
    np.testing.assert_array_equal(arrays.instances(tmp_path / "out/icub.npz"), [2 * label + thing, frame])
    build(SPEC | {"test_set": "demonstrator", "folder": "icub"}, "other")
    assert (arrays.load(tmp_path / "out/other.npz", "test").x[..., 1] == 210).all()


def test_an_archive_without_an_md5_is_left_to_the_user_and_one_with_it_is_fetched(build, tmp_path, web, left):
    body = web.pages["/iCubWorld.zip"] = made.write_zip(tmp_path / "made.zip", official()).read_bytes()
    archive = ARCHIVE | {"url": f"{web.url}/iCubWorld.zip"}
    with pytest.raises(DatasetError) as refusal:
        build(made.entry(SPEC["shape"], THINGS, 72, 12, [FOLDER, archive], **OPTIONS), "icub")
    told = str(refusal.value)
    assert f"put iCubWorld.zip ({web.url}/iCubWorld.zip, MD5 unknown) into {tmp_path / 'data/icub'}/" in told
    assert "its MD5 is not known, so it is not fetched" in told
    assert left() == []
    archive["md5"] = hashlib.md5(body).hexdigest()
    info = build(made.entry(SPEC["shape"], THINGS, 72, 12, [FOLDER, archive], **OPTIONS), "icub")
    assert (info["source"], info["proof"]) == ("archive", "archive MD5")
