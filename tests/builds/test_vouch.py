"""Files whose times were lost: those for which records vouch are as if just made, and no others."""

import json
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
def test_jobs_of_the_same_second_are_taken_inputs_first(tmp_path, monkeypatch, names):
    """A chain of three files, the first the newest: records are found in any order, and all began in one second."""
    monkeypatch.chdir(tmp_path)
    chain, above = [Path(name) for name in names], None
    for i, path in enumerate(chain):
        path.write_text(path.name)
        parts = {part: [{"path": str(each), "sha256": provenance.sha256(each)} for each in files if each]
                 for part, files in (("outputs", [path]), ("inputs", [above]))}  # fmt: skip
        record = parts | {"started": "2026-01-01T00:00:00+00:00"}
        record_path(path).write_text(json.dumps(record | {"seal": provenance.seal(record)}))
        for each in (path, record_path(path)):
            os.utime(each, (10**9 - i, 10**9 - i))
        above = path
    monkeypatch.setattr(preparation, "parse_record", lambda path, _: json.loads(path.read_text()))
    monkeypatch.setattr(type(tmp_path), "rglob", lambda *_: [record_path(path) for path in sorted(chain)])
    assert preparation.restore_times(Path()) == 4  # two files with their records
    assert {path.stat().st_mtime for path in chain} == {10**9}
    assert preparation.restore_times(Path()) == 0
