"""The tiny world as fixtures: made once a session, whichever of pytest-xdist's workers asks first, and copied."""

import os
import shutil
from pathlib import Path

import pytest

import world
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.provenance import record_path
from world import PAPER, ROOT, Project

MADE_OF_RUNS = ("metrics", "targets", "runs/nets", "runs/index.csv", "runs/index.record.json", "streams/toy-13-17-10")
TOLD = ("logs", "benchmarks", "choices", "machine.json")


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder that all of pytest-xdist's workers see."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def pristine(shared):
    """The project with nothing built; not to be changed."""
    return Project(world.once(shared / "pristine", Project.create))


@pytest.fixture(scope="session")
def finished(shared, pristine):
    """The project with the paper `mini` built without disturbance; not to be changed."""
    return Project(world.once(shared / "finished", lambda folder: pristine.copy(folder).build()))


@pytest.fixture(scope="session")
def searched(shared, finished):
    """The finished project with a selection among its targets, built; not to be changed."""

    def make(folder):
        project = finished.copy(folder)
        project.edit(PAPER, "targets:\n", (world.HERE / "selection.yaml").read_text())
        project.commit()
        for cell in (folder / "results/mini/runs/mnist").glob("*/er-*"):  # whose rate is searched now
            shutil.rmtree(cell)
        project.build()

    return Project(world.once(shared / "searched", make))


def working_copy(project, folder, monkeypatch, *left_out):
    """A copy of a project as the working folder of this process; without Snakemake's notes and these results.

    Its code is linked, for this process runs that of the working tree and edits none.
    """

    def copy(source, place):
        linked = Path(source).relative_to(project.folder).parts[0] == "src"
        return os.link(source, place) if linked else shutil.copy2(source, place)

    notes = shutil.ignore_patterns(".snakemake")
    shutil.copytree(project.folder, folder, symlinks=True, ignore=notes, copy_function=copy)
    for name in (*TOLD, *left_out):
        path = folder / "results/mini" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    monkeypatch.chdir(folder)
    jobs._at_paper_scale.cache_clear()
    return folder


@pytest.fixture(scope="session")
def everything():
    """The plan of the project's papers at the scale `smoke`."""
    return Plan("smoke", all_papers())


@pytest.fixture(scope="session")
def whole():
    """The plan of the project's papers at their own scale."""
    return Plan("paper", all_papers())


@pytest.fixture
def unbuilt(tmp_path, monkeypatch):
    """The project's own configuration and nothing built, as the working folder: its files are links."""
    for part in ("config", "workflow"):
        left_out = shutil.ignore_patterns("outside")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=left_out, copy_function=os.symlink)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def here(searched, tmp_path, monkeypatch):
    """The built project with a selection, as the working folder."""
    return working_copy(searched, tmp_path / "here", monkeypatch)


@pytest.fixture
def small_project(finished, tmp_path, monkeypatch):
    """The project with the runs of its table and what they are made of, as the working folder.

    By their records the runs took some seconds; the server of a build makes them in less than a job is reckoned with.
    """
    from world.published import forge, runs

    folder = working_copy(finished, tmp_path / "here", monkeypatch, *MADE_OF_RUNS)
    for path in runs():
        forge(record_path(path), lambda record: record.update(cpu_seconds=5.0))
    return folder
