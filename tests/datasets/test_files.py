"""Folders and archives as named bytes, and what archives are refused for."""

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


@pytest.mark.parametrize("form", ["folder", "zip", "tar", "tgz"])
def test_every_form_holds_the_same_files(form, tmp_path):
    held = written(form, tmp_path, CONTENT)
    assert {name: held.read(name) for name in held.paths} == CONTENT
    assert held.find("a.bin") == "top/a.bin"  # the least deep
    assert held.find("in") is None  # not a whole part of a path


@pytest.mark.parametrize("form", ["zip", "tar", "tgz"])
def test_damage_anywhere_is_a_source_error_or_shows_in_the_bytes(form, tmp_path):
    """Cut short or with a byte changed, an archive fails as a SourceError or gives altered content."""
    path = tmp_path / f"x.{form}"
    written(form, tmp_path, CONTENT)
    whole, rng, refused = path.read_bytes(), np.random.default_rng(1), 0
    for trial in range(120):
        place = int(rng.integers(len(whole)))
        changed = whole[:place] + bytes([whole[place] ^ int(rng.integers(1, 256))]) + whole[place + 1 :]
        path.write_bytes(whole[:place] if trial % 2 else changed)
        try:
            held = files.archive(path)
            for name in held.paths:
                held.read(name)
        except SourceError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("form", ["zip", "tar"])
def test_nothing_is_written_wherever_a_member_leads(form, tmp_path):
    held = written(form, tmp_path / "downloads", CONTENT | {"../evil": b"evil", "/evil": b"evil", "top\\c": b"see"})
    assert held.read("top/a.bin") == CONTENT["top/a.bin"]
    assert held.read("top/c") == b"see"
    assert {path.name for path in tmp_path.rglob("*")} == {"downloads", f"x.{form}"}
