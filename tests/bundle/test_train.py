"""Which job starts next: the first whose inputs are there and that is expected to end in time."""

import time
from pathlib import Path

import pytest

from clpapers.bundle import train
from clpapers.provenance import Refusal


def job(name, seconds, inputs=(), learner="er"):
    spec = {"learner": {"name": learner}, "net": {"name": "mlp"}}
    out = f"results/paper/runs/d/o/{name}/seed0.json"
    facts = {"spec": spec, "seconds": seconds, "card_seconds": None, "inputs": list(inputs)}
    return {"command": "train", "out": out, "seeds": [0], **facts}


@pytest.fixture
def schedule(tmp_path, monkeypatch):
    """A schedule of some jobs with so many seconds left, on a CPU."""
    monkeypatch.chdir(tmp_path)

    def make(jobs, left):
        return train._Schedule(jobs, tmp_path, time.monotonic() + left, {"cuda": None, "abreast": 1})

    return make


def test_a_job_that_would_not_end_in_time_lets_a_shorter_one_pass(schedule):
    made = schedule([job("long", 1000.0), job("short", 10.0)], left=100)
    assert made.next()["seconds"] == 10.0
    assert made.next() is None
    assert made.run() == "0 of 2 jobs done, 0 failed, 0 stopped at the end"


def test_a_job_waits_for_its_inputs(schedule, tmp_path):
    made = schedule([job("first", 1.0, ["late.npz"]), job("second", 1.0)], left=100)
    assert "second" in made.next()["out"]
    (tmp_path / "late.npz").write_bytes(b"")
    assert "first" in made.next()["out"]


def test_jobs_of_a_kind_take_what_jobs_of_it_took(schedule):
    made = schedule([job("a", 1000.0), job("b", 1000.0, learner="mir")], left=100)
    made.ratios[train.kind(job("c", 1.0))] = [0.01]
    assert made.expected(made.waiting[0]) == pytest.approx(10.0)
    assert made.expected(made.waiting[1]) == 1000.0
    assert "/a/" in made.next()["out"]


@pytest.mark.parametrize(("card_seconds", "expected"), [(None, 40.0), (2.0, 6.0), (50.0, 40.0)])
def test_on_a_card_a_first_job_of_a_kind_is_expected_to_take_its_part(schedule, card_seconds, expected):
    made = schedule([job("a", 1000.0) | {"card_seconds": card_seconds}], left=100)
    made.site |= {"cuda": "13.0", "abreast": 3}
    assert made.expected(made.waiting[0]) == expected


def test_a_list_is_trained_in_its_own_folder(tmp_path):
    with pytest.raises(Refusal, match="go there"):
        train.train(tmp_path / "jobs.json", Path("out"), 1.0)
