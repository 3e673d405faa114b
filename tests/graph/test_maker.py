"""A maker makes what a file needs, each job once, also where threads share it."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from clpapers.graph import jobs
from clpapers.graph.maker import Maker
from clpapers.provenance import record_path

STREAM = Path("stream")
NEEDS = {Path("a"): [STREAM], Path("b"): [STREAM], STREAM: []}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A maker of two files of one stream, which takes a while; and the commands that it did."""

    def job_of(plan, path):
        return SimpleNamespace(command="make", inputs=NEEDS[path], outputs=[path], depends_on_choice=False)

    def run(command):
        done.append(command[2])
        if command[2] == str(STREAM):
            time.sleep(0.2)  # until the other thread asks for it too
        for file in (Path(command[2]), record_path(Path(command[2]))):
            (tmp_path / file).touch()
        return ""

    done: list[str] = []
    monkeypatch.setattr(jobs, "job_of", job_of)
    return Maker(SimpleNamespace(cuda=False, choice=None), run, tmp_path), done


def test_threads_make_a_common_input_once(made):
    maker, done = made
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(maker.make, (Path("a"), Path("b")))) == ["", ""]
    assert sorted(done) == ["a", "b", "stream"]
