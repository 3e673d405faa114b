"""The walk: what a person does after a fresh clone, in order, on a real default build; `make walk`.

The files are in the order of a first hour: the build and its audit, the documents' commands, the report's pages, other
users and other machines. pytest collects them by name; each can run alone. None changes the built project.
"""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from shell import Shell

ROOT = Path(__file__).parents[2]
BUILT = "CLPAPERS_BUILT"  # a checkout in which `make` has run; without it `make` runs in a clone of this one


@pytest.fixture(scope="session")
def built_project(tmp_path_factory):
    """The folder of a checkout in which `make` has run, and nothing else; not to be changed."""
    if folder := os.environ.get(BUILT):
        return Path(folder).resolve()
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    clone = shared / "clpapers"
    with (shared / "clpapers.lock").open("w") as lock:  # whichever of pytest-xdist's workers comes first builds
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (clone / "results/paper/report/index.html").is_file():
            subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
            Shell(clone, clone / ".venv", Path.home()).ok("make")
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

    So an installation fetches nothing: pip finds each requirement met. Lines of a .pth file add the built project's
    folders of packages; the .pth files in these, through which it has the project itself, are not read.
    """
    there = built_project / ".venv/bin/python"

    def paths(python: Path) -> list[str]:
        code = "import sys; print(*(path for path in sys.path if path.endswith('-packages')), sep='\\n')"
        return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.splitlines()

    def begin(folder: Path) -> Path:
        subprocess.run([there, "-m", "venv", "--without-pip", folder], check=True)
        (own,) = paths(folder / "bin/python")
        Path(own, "packages.pth").write_text("\n".join(paths(there)), encoding="utf-8")
        return folder

    return begin


@pytest.fixture(scope="session")
def installed(built_project, prepared):
    """A function that installs a copied project in place, in an environment in its folder, as `make env` does."""

    def install(folder: Path, home: Path) -> Shell:
        user = Shell(folder, prepared(folder / ".venv"), home)
        user.ok("python -m pip install --quiet --no-deps --no-build-isolation --editable .")
        shutil.copy2(built_project / ".venv/.installed", folder / ".venv/.installed")
        return user

    return install
