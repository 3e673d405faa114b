"""The kinds of sources: what torchvision knows, and which of the user's files is taken for what."""

import hashlib
import subprocess
import sys

import official_formats as made
import pytest

from clpapers.datasets import sources
from clpapers.datasets._torchvision import Official, official
from clpapers.datasets.files import SourceError
from clpapers.datasets.formats import cifar_python, emnist, mosaics

CIFAR = made.entry((4, 6, 3), ("apple", "baby"), 12, 4)
CIFAR["sha256"] = {"train": "0" * 64, "test": "0" * 64}
CIFAR["sources"] = [{"kind": "torchvision", "class": "CIFAR100", "format": "cifar_python"}]
FOLDER = {"kind": "folder", "formats": ["cifar_python", "mosaics"]}


def test_official_files_come_from_torchvision():
    assert official("CIFAR10") == [
        Official(
            ["https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"],
            "cifar-10-python.tar.gz",
            "c58f30108f718f92721af3b95e74349a",
        )
    ]
    assert official("CIFAR100")[0].md5 == "eb9058c3a382ffc7106e4002c42a8d85"
    assert official("EMNIST")[0][1:] == ("gzip.zip", "58c8d27c78d21e728a6bc7b3cc06412e")
    for name in ("MNIST", "FashionMNIST"):
        files = official(name)
        assert {file.filename.split("-")[0] for file in files} == {"train", "t10k"}
        assert len(files) == 4
        assert all(url.endswith("/" + file.filename) for file in files for url in file.urls)
    assert official("MNIST")[0].md5 != official("FashionMNIST")[0].md5


def test_reading_the_sources_loads_neither_torch_nor_torchvision():
    code = "import clpapers.datasets.build, sys; print({'torch', 'torchvision'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "set()"


def test_folder_takes_the_archive_its_content_or_mosaics(tmp_path):
    splits = made.random_splits(CIFAR)
    official_form = made.cifar100_files(splits, CIFAR["classes"])
    made.write_tar(tmp_path / "packed/cifar-100-python.tar.gz", official_form)
    made.write_folder(tmp_path / "unpacked", official_form)
    made.write_folder(tmp_path / "mosaics", made.mosaic_files(splits, CIFAR["classes"]))
    for name, format in (("packed", cifar_python), ("unpacked", cifar_python), ("mosaics", mosaics)):
        served = sources.folder(FOLDER, CIFAR, tmp_path / name, tmp_path / "downloads")
        assert served.format is format
        assert served.downloads == []  # the user's files are never ours to delete


def test_of_two_archives_the_larger_is_taken(tmp_path):
    files = made.tiny_imagenet_files(
        made.random_splits(spec := made.entry((8, 8, 3), ("n00000001",), 9, 2)), spec["classes"]
    )
    part = {name: data for name, data in files.items() if "_8.JPEG" not in name}
    made.write_zip(tmp_path / "tiny-imagenet-200-part.zip", part)
    made.write_zip(tmp_path / "tiny-imagenet-200.zip", files)
    spec["sha256"] = {"train": "0" * 64, "test": "0" * 64}
    served = sources.folder({"formats": ["tiny_imagenet"]}, spec, tmp_path, tmp_path)
    assert served.files.where.endswith("tiny-imagenet-200.zip")


def test_an_official_archive_of_the_users_is_held_to_its_md5_where_nothing_else_proves_it(tmp_path, monkeypatch):
    spec = made.entry((5, 5, 1), "0A", 8, 4)
    spec["sources"] = [{"kind": "torchvision", "class": "EMNIST", "format": "emnist"}]
    path = made.write_zip(tmp_path / "gzip.zip", made.emnist_files(made.random_splits(spec), spec["classes"]))
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    monkeypatch.setattr(sources, "official", lambda name: [Official([], "gzip.zip", md5)])
    served = sources.folder({"formats": ["emnist"]}, spec, tmp_path, tmp_path)
    assert served.proven
    assert served.format is emnist
    with path.open("ab") as stream:
        stream.write(b"!")
    with pytest.raises(SourceError, match=f"gzip.zip: has MD5 .*, not {md5}"):
        sources.folder({"formats": ["emnist"]}, spec, tmp_path, tmp_path)
    known = {**spec, "sha256": {"train": "0" * 64, "test": "0" * 64}}  # the content will tell
    assert not sources.folder({"formats": ["emnist"]}, known, tmp_path, tmp_path).proven
