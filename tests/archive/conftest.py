"""Folders that crates are imported into, exported from and checked in."""

import os
import shutil
from pathlib import Path

import pytest
import refusals
from world.published import crate as published_crate

from clpapers.config.plan import Plan
from clpapers.report.publish import publish


def pytest_collection_modifyitems(items):
    for item in items:
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")
        if isinstance(case, refusals.Case) and "home" in case.fixtures:  # which Snakemake builds
            item.add_marker("workflow")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The working folder, with a configuration and nothing built."""
    for part in ("config", "workflow"):
        os.symlink(refusals.TESTS.parent / part, tmp_path / part)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def home(finished, tmp_path, monkeypatch):
    """A built project, which is the working folder."""
    monkeypatch.chdir(finished.copy(tmp_path / "home").folder)
    shutil.rmtree(".snakemake")  # where plans are kept


@pytest.fixture(scope="session")
def original(finished, tmp_path_factory):
    """The crate of everything, as a folder; not to be changed."""
    folder = tmp_path_factory.mktemp("original") / "crate"
    done = finished.clpapers("export", "--out", str(folder), "--agent", "Ada Lovelace")
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture
def copy(original, tmp_path):
    """A crate to tamper with, far from any project."""
    return Path(shutil.copytree(original, tmp_path / "far" / "crate"))


@pytest.fixture
def crate(small_project):
    """The crate of the runs of the working folder's project."""
    publish(Plan("mini", ["mini"]), ["mini"])
    return small_project / published_crate()


@pytest.fixture
def other(crate):
    """The project without results, which is the working folder; the crate lies beside it."""
    shutil.move(crate, crate.parents[4])
    shutil.rmtree("results")
    return crate.parents[4] / crate.name
