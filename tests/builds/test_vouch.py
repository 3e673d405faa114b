"""Files whose times were lost: those for which records vouch are as if just made, and no others."""

import os
from pathlib import Path

import pytest

from clpapers import provenance
from clpapers.builds import preparation
from clpapers.provenance import record_path

TOP = Path("results/mini")


def results():
    return sorted(path for path in TOP.rglob("*") if path.is_file() and path.suffix != ".log")


@pytest.fixture
def times_lost(small_project):
    """Each file older than what it was made of."""
    for i, path in enumerate(sorted(results(), key=lambda path: ("streams" in path.parts, "datasets" in path.parts))):
        os.utime(path, (10**9 + i, 10**9 + i))


def newer(path):
    """Whether a run is older than its stream."""
    stream = next(TOP.glob("streams/*/*/seed0.npz"))
    return stream.stat().st_mtime_ns > path.stat().st_mtime_ns


def test_runs_become_as_new_as_their_streams(times_lost):
    runs = sorted(TOP.glob("runs/*/*/*/seed*.json"))
    assert any(map(newer, runs))
    assert preparation.restore_times(TOP) >= len(runs)
    assert not any(map(newer, runs))
    assert preparation.restore_times(TOP) == 0


@pytest.mark.parametrize("kind", ["result", "stream", "record"])
def test_nothing_vouches_for_what_was_edited(times_lost, kind):
    run, stream = next(TOP.glob("runs/*/*/*/seed0.json")), next(TOP.glob("streams/*/*/seed0.npz"))
    edited = {"result": run, "stream": stream, "record": record_path(run)}[kind]
    before = edited.stat().st_mtime
    edited.write_bytes(edited.read_bytes().replace(b'"commit": ', b'"comment": ', 1) + b" ")
    os.utime(edited, (before, before))
    preparation.restore_times(TOP)
    assert newer(run)


@pytest.mark.parametrize("names", ["abc", "cba", "bca"])
def test_what_was_made_of_each_other_is_taken_inputs_first(tmp_path, monkeypatch, names):
    """A chain of three files, the first the newest, whose records are found in any order."""
    monkeypatch.chdir(tmp_path)
    chain = [Path(name) for name in names]
    for path, above in zip(chain, [[], *([each] for each in chain)]):
        with provenance.recording("streams", [path], above, "c0de"):
            provenance.write_text(path, path.name)
    for i, path in enumerate(chain):
        for each in (path, record_path(path)):
            os.utime(each, (10**9 - i, 10**9 - i))
    assert preparation.restore_times(Path()) == 4  # two files with their records
    assert {path.stat().st_mtime for path in chain} == {10**9}
    assert preparation.restore_times(Path()) == 0
