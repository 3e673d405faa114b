"""A folder of its own for each test that asks for it."""

import shutil

import pytest
from tiny_paper import DATASETS, ROOT, TINY, WEIGHTS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a small configuration."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "workflow/schemas", "workflow/schemas")
    shutil.copytree(TINY / "config", "config")
    for file in (DATASETS, WEIGHTS):
        shutil.copy(ROOT / file, file)
