"""The walk: what a person does after a fresh clone, in order, on a real default build; `make walk`.

The files are in the order of a first hour: the build and its audit, the documents' commands, the report's pages, other
users and other machines. pytest collects them by name; each can run alone. None changes the built project.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = (
    "CLPAPERS_BUILT"  # a checkout in which `make` has run; without it the walk clones this one and runs `make` there
)


@pytest.fixture(scope="session")
def built_project(tmp_path_factory):
    """The folder of a checkout in which `make` has run, and nothing else; not to be changed."""
    if folder := os.environ.get(BUILT):
        return Path(folder).resolve()
    if "PYTEST_XDIST_WORKER" in os.environ:
        raise pytest.UsageError(f"each worker would build: run `make walk`, or set {BUILT}")
    clone = tmp_path_factory.mktemp("walk") / "clpapers"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    subprocess.run(["env", "-u", "PYTHONPATH", "make"], cwd=clone, check=True)
    return clone


@pytest.fixture(scope="session")
def copied(built_project):
    """A function that copies the built project, git and results included, to a folder; all but the environment."""

    def copy(folder: Path) -> Path:
        return shutil.copytree(built_project, folder, symlinks=True, ignore=shutil.ignore_patterns(".venv"))

    return copy


@pytest.fixture(scope="session")
def prepared(built_project):
    """A function that begins an environment in a folder: the built project's packages are there, the project is not.

    So an installation fetches nothing: pip finds each requirement met. A line of a .pth file adds the built project's
    folder of packages; the .pth files in that folder itself, through which it has the project, are not read.
    """

    def begin(folder: Path) -> Path:
        python = built_project / ".venv/bin/python"
        subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
        own, theirs = (
            subprocess.run(
                [place / "bin/python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                check=True,
                capture_output=True,
                text=True,
            ).stdout.strip()
            for place in (folder, built_project / ".venv")
        )
        Path(own, "packages.pth").write_text(f"{theirs}\n", encoding="utf-8")
        return folder

    return begin
