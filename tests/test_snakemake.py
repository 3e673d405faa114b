"""The command `snakemake`: a bare `--cores` means all cores, and what cannot be written to is told of in one line."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from clpapers.snakemake import completed, prepare


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A project's folder and a home of its own."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "")


def failing(monkeypatch, below, number):
    """Have no file made below a folder."""
    made = tempfile.NamedTemporaryFile

    def fails(**given):
        if Path(given["dir"]).absolute().is_relative_to(Path(below).absolute()):
            raise OSError(number, os.strerror(number))
        return made(**given)

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", fails)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_folder_of_snakemakes_that_cannot_be_written(number, monkeypatch):
    failing(monkeypatch, ".snakemake", number)
    with pytest.raises(SystemExit) as end:
        prepare()
    assert str(end.value).startswith(f"clpapers: .snakemake: Snakemake cannot write there ({os.strerror(number)}); ")
    assert "\n" not in str(end.value)


def test_a_file_in_its_place():
    Path(".snakemake").touch()
    with pytest.raises(SystemExit, match="cannot write there"):
        prepare()


def test_a_home_that_cannot_be_written_is_not_needed(monkeypatch):
    failing(monkeypatch, os.environ["HOME"], errno.EROFS)
    prepare()
    assert os.environ["XDG_CACHE_HOME"] == str(Path(".snakemake/cache").absolute())


def test_a_home_that_can_is_left_alone():
    prepare()
    assert os.environ["XDG_CACHE_HOME"] == ""
    assert not list(Path(".snakemake").iterdir())


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("all --cores", "all --cores=all"),
        ("all -c", "all --cores=all"),
        ("--cores -n all", "--cores=all -n all"),
        ("all --cores 4 -n", "all --cores 4 -n"),
        ("all --cores all", "all --cores all"),
        ("all -c2", "all -c2"),
        ("all -n", "all -n"),
        ("", ""),
    ],
)
def test_completed(given, meant):
    assert completed(given.split()) == meant.split()
