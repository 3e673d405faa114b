"""A folder of its own for each test that asks for it."""

import shutil
from pathlib import Path

import pytest
from tiny_paper import DATASETS, REAL, ROOT, TEXT, WEIGHTS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a small configuration."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "workflow/schemas", "workflow/schemas")
    for name, text in TEXT.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    for file in (DATASETS, WEIGHTS):
        shutil.copy(ROOT / file, file)
    Path("config/scales/real.yaml").write_text(REAL)
