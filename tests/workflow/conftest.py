"""The small project that the tests of the workflow share, and one finished run of it to copy from."""

import fcntl
import os
import signal
import subprocess

import pytest
from nursery import nursery
from project import Project


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder that all of pytest-xdist's workers see."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def pristine(tmp_path_factory):
    """The project with nothing built; not to be changed."""
    return Project.create(tmp_path_factory.mktemp("pristine") / "project")


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The project with the real papers, nothing built; not to be changed."""
    return Project.create(tmp_path_factory.mktemp("whole") / "project", papers=True)


@pytest.fixture(scope="session")
def finished(shared):
    """The project with the paper `mini` built without disturbance; not to be changed. Whoever comes first builds it."""
    folder = shared / "finished"
    with (shared / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            building = Project.create(shared / "building")
            building.build()
            building.folder.rename(folder)
    return Project(folder)


@pytest.fixture
def project(pristine, tmp_path):
    """A fresh copy with nothing built."""
    return pristine.copy(tmp_path / "project")


@pytest.fixture
def built(finished, tmp_path):
    """A fresh copy with everything built."""
    return finished.copy(tmp_path / "project")


@pytest.fixture
def running():
    """Start a project's build in the background; what is left of it at the test's end is killed."""
    started = []

    def start(project, *arguments, **options):
        started.append(project.start(*arguments, **options))
        return started[-1]

    yield start
    for leader in started:
        try:
            os.killpg(leader.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        leader.wait()


@pytest.fixture(scope="session")
def commands(pristine):
    """Single commands in any copy of the project, as quick forks."""
    with nursery(pristine) as running:
        yield running


@pytest.fixture
def mounted():
    """Give a folder a file system of its own, with what is in it: `mounted(folder, "-t", "tmpfs", …)`."""
    places = []

    def mount(folder, *options):
        done = subprocess.run(["mount", *options, folder], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
        places.append(folder)

    yield mount
    for folder in set(places):
        subprocess.run(["umount", folder], check=True)
