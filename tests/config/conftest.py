"""A folder of its own for each test that asks for it."""

import shutil

import pytest
from tiny_paper import DATASETS, MINE, MNIST_ONLY, PAPER, ROOT, SELECTION, TINY, WEIGHTS, edit


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a small configuration."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "workflow/schemas", "workflow/schemas")
    shutil.copytree(TINY / "config", "config")
    for file in (DATASETS, WEIGHTS):
        shutil.copy(ROOT / file, file)


@pytest.fixture
def selecting(folder):
    """The paper searches for two values of a method."""
    edit(PAPER, "targets:\n", SELECTION, "grid: {dataset: [mnist, cifar10], learner: [er, ace]}", MNIST_ONLY)


@pytest.fixture
def away(folder, tmp_path):
    """A paper, its method and a data set of another person, in a folder beside."""
    shutil.copytree(TINY / "away", place := tmp_path / "away")
    (place / "mine.txt").rename(place / "mine.py")
    (place / "shapes").mkdir()
    (place / "mine.yaml").write_text(MINE)
    return place
