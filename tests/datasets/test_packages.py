"""npm and apt-get, played by small scripts: what they leave, how they fail, and that nothing else remains."""

import os

import official_formats as made
import pytest

from clpapers.datasets import files, packages


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


def test_a_clients_full_disk_is_a_full_disk(client, tmp_path):
    client("npm", "echo 'npm error code ENOSPC'; exit 1")
    with pytest.raises(OSError, match="No space left") as caught:
        packages.npm("data", "1.2.3", tmp_path / "downloads")
    assert caught.value.errno == 28


def test_what_a_killed_run_left_is_cleared_after_a_day(client, tmp_path):
    old, young = tmp_path / "downloads/.fetching-old", tmp_path / "downloads/.fetching-young"
    for remains in (old, young):
        made.write_folder(remains, {"half": b"half"})
    os.utime(old, (0, 0))
    client("npm", "echo x > data-1.2.3.tgz")
    packages.npm("data", "1.2.3", tmp_path / "downloads")
    assert not old.exists()
    assert young.exists()  # another run may be at it
