"""Folders and archives as named bytes, and what archives are refused for."""

import io
import tarfile
import zipfile

import numpy as np
import official_formats as made
import pytest

from clpapers.datasets import files
from clpapers.datasets.files import SourceError

CONTENT = {"top/a.bin": np.random.default_rng(0).bytes(5000), "top/deep/b.txt": b"bee", "top/deep/a.bin": b"other"}


def written(form, path, content):
    if form == "folder":
        return files.folder(made.write_folder(path, content))
    if form == "zip":
        return files.archive(made.write_zip(path / "x.zip", content))
    return files.archive(made.write_tar(path / f"x.{form}", content, "w" if form == "tar" else "w:gz"))


@pytest.mark.parametrize("form", ["folder", "zip", "tar", "tgz", "tar.gz"])
def test_every_form_holds_the_same_files(form, tmp_path):
    held = written(form, tmp_path, CONTENT)
    assert set(held.paths) == set(CONTENT)
    assert all(held.read(name) == content for name, content in CONTENT.items())
    assert held.find("a.bin") == "top/a.bin"  # the least deep
    assert held.find("in") is None  # not a whole part of a path
    with pytest.raises(SourceError, match=r"nothing\.txt is missing"):
        held.read("nothing.txt")


@pytest.mark.parametrize("form", ["zip", "tar", "tgz"])
@pytest.mark.parametrize("name", ["../evil", "top/../../evil", "/evil", "top\\..\\..\\evil"])
def test_members_that_lead_outside_are_refused_and_never_written(form, name, tmp_path):
    inner = tmp_path / "downloads"
    with pytest.raises(SourceError, match="leads out of the archive"):
        written(form, inner, {**CONTENT, name: b"evil"})
    assert {path.name for path in tmp_path.rglob("*")} == {"downloads", f"x.{form}"}


def test_links_in_a_tar_hold_nothing(tmp_path):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    assert not files.archive(tmp_path / "x.tar").paths


@pytest.mark.parametrize("form", ["zip", "tgz"])
def test_bombs_are_refused(form, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 4999)
    with pytest.raises(SourceError, match="unpacks to over 4999 bytes"):
        written(form, tmp_path, CONTENT)


@pytest.mark.parametrize("form", ["zip", "tar", "tgz"])
def test_a_web_page_in_an_archives_place_is_called_so(form, tmp_path):
    path = tmp_path / f"x.{form}"
    path.write_bytes(b"\n<!DOCTYPE html><html>please log in</html>" + bytes(600))
    with pytest.raises(SourceError, match=rf"x\.{form}: is a web page, not an archive; delete it"):
        files.archive(path)


@pytest.mark.parametrize("form", ["zip", "tar", "tgz"])
def test_damage_anywhere_is_a_source_error_or_shows_in_the_bytes(form, tmp_path):
    """Cut short or with a byte changed, an archive fails as a SourceError or gives altered content."""
    made_whole = tmp_path / f"whole.{form}"
    {"zip": made.write_zip}.get(form, made.write_tar)(made_whole, CONTENT, *(["w"] if form == "tar" else []))
    whole = made_whole.read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for trial in range(120):
        place = int(rng.integers(len(whole)))
        changed = whole[:place] + bytes([whole[place] ^ int(rng.integers(1, 256))]) + whole[place + 1 :]
        path = tmp_path / f"x.{form}"
        path.write_bytes(whole[:place] if trial % 2 else changed)
        try:
            held = files.archive(path)
            for name in held.paths:
                held.read(name)
        except SourceError:
            refused += 1
    assert refused > 20


def test_an_encrypted_member_is_refused(tmp_path):
    path = made.write_zip(tmp_path / "x.zip", {"a": b"a"})
    stored = bytearray(path.read_bytes())
    stored[6] |= 1  # the general-purpose flag of the member…
    stored[stored.find(b"PK\x01\x02") + 8] |= 1  # …and of its entry in the directory
    path.write_bytes(bytes(stored))
    with pytest.raises(SourceError, match="encrypted"):
        files.archive(path).read("a")


def test_a_member_that_lies_about_its_size_is_refused(tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(100_000))
    stored = stream.getvalue().replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    (tmp_path / "x.zip").write_bytes(stored)
    with pytest.raises(SourceError, match="a is damaged"):
        files.archive(tmp_path / "x.zip").read("a")
