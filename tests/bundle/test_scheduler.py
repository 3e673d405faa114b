"""Which job starts next: the first whose inputs are there and that is expected to end in time."""

import json
import time
from types import SimpleNamespace

import pytest

from clpapers.bundle import scheduler


def job(name, seconds, inputs=(), learner="er"):
    spec = {"learner": {"name": learner}, "net": {"name": "mlp"}}
    out = f"results/paper/runs/d/o/{name}/seed0.json"
    return {"command": "train", "out": out, "seeds": [0], "spec": spec, "seconds": seconds, "inputs": list(inputs)}


@pytest.fixture
def schedule(tmp_path, monkeypatch):
    """A schedule of some jobs with so many seconds left, on a CPU."""
    monkeypatch.chdir(tmp_path)

    def make(jobs, left):
        (tmp_path / "jobs.json").write_text(json.dumps(jobs))
        parts = SimpleNamespace(unpack=lambda: False, complete=True)
        deadline = time.monotonic() + left + scheduler.WRITING
        return scheduler._Schedule(parts, tmp_path, deadline, 1, {"cuda": None})

    return make


def test_a_job_that_would_not_end_in_time_lets_a_shorter_one_pass(schedule):
    made = schedule([job("long", 1000.0), job("short", 10.0)], left=100)
    assert made.next()["seconds"] == 10.0
    assert made.next() is None


def test_a_job_waits_for_its_inputs(schedule, tmp_path):
    made = schedule([job("first", 1.0, ["late.npz"]), job("second", 1.0)], left=100)
    assert "second" in made.next()["out"]
    (tmp_path / "late.npz").write_bytes(b"")
    assert "first" in made.next()["out"]


def test_jobs_of_a_kind_take_what_jobs_of_it_took(schedule):
    made = schedule([job("a", 1000.0), job("b", 1000.0, learner="mir")], left=100)
    made.ratios[scheduler.kind(job("c", 1.0))] = [0.01]
    assert made.expected(made.waiting[0]) == pytest.approx(10.0)
    assert made.expected(made.waiting[1]) == 1000.0
    assert "/a/" in made.next()["out"]


@pytest.mark.parametrize(("card_seconds", "expected"), [(None, 40.0), (2.0, 6.0), (50.0, 40.0)])
def test_on_a_card_a_first_job_of_a_kind_is_expected_to_take_its_part(schedule, card_seconds, expected):
    made = schedule([job("a", 1000.0) | {"card_seconds": card_seconds}], left=100)
    made.site, made.abreast = {"cuda": "13.0"}, 3
    assert made.expected(made.waiting[0]) == expected
