"""Copies of the tiny world, builds that run beside a test, and single commands."""

import os
import signal

import pytest
from nursery import nursery


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
def command(tmp_path, monkeypatch):
    """Puts a command on the path, before all others."""

    def put(name, text):
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return put
