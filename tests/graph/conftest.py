"""The project's configuration, as it is or in a folder of the test's own."""

import shutil
from pathlib import Path

import pytest

from clpapers.config.plan import Plan

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def plan():
    """The small plan of a paper; not to be changed for good."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield Plan("smoke", ["stf"])


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """A working folder with a copy of config/ and its schemas."""
    for folder in ("config", "workflow"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
