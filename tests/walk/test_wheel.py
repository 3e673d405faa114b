"""The package from its wheel, in an empty folder and an environment that has the project from there alone."""

import json
import shlex
from pathlib import Path

import pytest
from shell import Shell

ROOT = Path(__file__).parents[2]
THREADS = """\
import os
from concurrent.futures import ThreadPoolExecutor

from clpapers import results

here = os.getcwd()
names = ["stf/table1", "rules/table1", "agem/table1", "rules/table2"]
alone = {name: (results.metrics(name), results.compare(name), results.printed(name)) for name in names}


def ask(name):
    assert os.path.exists("notes.txt"), os.getcwd()
    return name, (results.metrics(name), results.compare(name), results.printed(name))


with ThreadPoolExecutor(8) as threads:
    for name, frames in threads.map(ask, names * 6):
        assert os.getcwd() == here
        assert all(ours.equals(theirs) for ours, theirs in zip(frames, alone[name])), name
"""


@pytest.fixture(scope="module")
def maker(built_project, copied, tmp_path_factory):
    """Who makes the wheel, in `~/wheels`, in a copy of the built project."""
    home = tmp_path_factory.mktemp("maker")
    return Shell(copied(home / "clpapers"), built_project / ".venv", home)


@pytest.fixture(scope="module")
def left(maker):
    """What git says of the copy before the wheel is made, and after."""
    status = "git status --porcelain --ignored"
    make = "python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir ~/wheels ."
    return maker.ok(status), maker.ok(f"{make} && {status}")


@pytest.fixture(scope="module")
def user(maker, left, prepared, tmp_path_factory):
    """In an empty folder, with the wheel. The built project's packages must meet its requirements."""
    home = tmp_path_factory.mktemp("user")
    (home / "empty").mkdir()
    user = Shell(home / "empty", prepared(home / "environment"), home)
    user.ok(f"python -m pip install --quiet --ignore-installed --no-deps {maker.home}/wheels/*.whl")
    user.ok("python -m pip check")
    where = Path(user.ok("python -c 'import clpapers; print(clpapers.__file__)'"))
    assert where.is_relative_to(home / "environment")
    return user


def test_the_wheel_leaves_nothing_in_the_checkout(left):
    before, after = left
    assert after == before


def test_a_method_is_begun_and_tried_and_a_stream_is_drawn(user):
    user.ok("clpapers new method mine")
    assert "/mine.py: twice the same bytes\n" in user.ok("clpapers try mine.py")
    user.ok("clpapers stream --paper stf --dataset cifar10 --seeds 0-1 --out streams")
    streams = sorted(path.relative_to(user.folder).as_posix() for path in (user.folder / "streams").rglob("seed*.npz"))
    assert streams == [f"streams/cifar10/stf-0.057735/seed{seed}.npz" for seed in (0, 1)]


def test_results_are_asked_for_in_threads_and_the_folder_stays(user, tmp_path):
    """A notebook's own relative paths hold before, while and after others ask."""
    (tmp_path / "notes.txt").touch()
    user._replace(folder=tmp_path).ok(f"python -c {shlex.quote(THREADS)}")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_results_are_asked_for_in_threads_beside_a_build_too(built_project, user, tmp_path):
    """An editable installation reads the results of its checkout."""
    (tmp_path / "notes.txt").touch()
    Shell(tmp_path, built_project / ".venv", user.home).ok(f"python -c {shlex.quote(THREADS)}")


def test_the_notebook_runs_cell_by_cell(user, tmp_path):
    cells = json.loads((ROOT / "docs/tour.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "tour.py").write_text("\n".join(code), encoding="utf-8")
    user._replace(folder=tmp_path).ok("python tour.py")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["streams", "tour.py"]
