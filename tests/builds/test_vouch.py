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


@pytest.mark.parametrize("first", ["runs", "streams"])
def test_jobs_of_the_same_second_are_taken_inputs_first(times_lost, monkeypatch, first):
    """Records name the second of a job's start, which many jobs of a small build share."""
    parse, found = (
        preparation.parse_record,
        sorted(TOP.rglob("*.record.json"), key=lambda path: first not in path.parts),
    )

    def of_one_second(path, file):
        record = parse(path, file) | {"started": "2026-01-01T00:00:00+00:00"}
        return record | {"seal": provenance.seal(record)}

    for path in TOP.glob("datasets/*"):  # which makes streams late, and runs by them
        os.utime(path, (2 * 10**9, 2 * 10**9))
    monkeypatch.setattr(preparation, "parse_record", of_one_second)
    monkeypatch.setattr(type(TOP), "rglob", lambda *_: found)
    preparation.restore_times(TOP)
    assert not any(map(newer, TOP.glob("runs/*/*/*/seed*.json")))
    assert preparation.restore_times(TOP) == 0
