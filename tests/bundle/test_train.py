"""Which job starts next: the first whose inputs are there and that is expected to end in time."""

import json
import time
from pathlib import Path

import pytest

from clpapers.bundle import train
from clpapers.provenance import Refusal


def job(name, seconds, inputs=(), learner="er", card_seconds=None):
    spec = {"learner": {"name": learner}, "net": {"name": "mlp"}}
    out = f"results/paper/runs/d/o/{name}/seed0.json"
    facts = {"spec": spec, "seconds": seconds, "card_seconds": card_seconds, "inputs": list(inputs)}
    return {"command": "train", "out": out, "seeds": [0], **facts}


@pytest.mark.slow
def test_a_job_that_cannot_start_or_end_in_time_lets_another_pass(tmp_path, monkeypatch):
    """The only one that starts fails, as it has no data."""
    monkeypatch.chdir(tmp_path)
    jobs = [job("long", 1000.0), job("waiting", 1.0, ["late.npz"]), job("other", 1.0), job("short", 1.0)]
    Path("jobs.json").write_text(json.dumps(jobs))
    told = train.train(Path("jobs.json"), Path("out"), 1.0, abreast=1, without=["other"])
    assert told == "0 of 3 jobs done, 1 failed, 0 stopped at the end"
    (failed, _) = Path("out/log.txt").read_text().splitlines()
    assert "/short/" in failed
    with pytest.raises(Refusal, match="go there"):
        train.train(Path("out/jobs.json"), Path("out"), 1.0)


@pytest.mark.parametrize(
    ("made", "site", "ended", "expected"),
    [
        (job("a", 1000.0), {}, None, 1000.0),
        (job("a", 1000.0), {}, 0.01, 10.0),  # as one of its kind took
        (job("a", 1000.0, learner="mir"), {}, 0.01, 1000.0),
        (job("a", 1000.0), {"cuda": "13.0", "abreast": 3}, None, 40.0),
        (job("a", 1000.0, card_seconds=2.0), {"cuda": "13.0", "abreast": 3}, None, 6.0),  # its part of a card
        (job("a", 1000.0, card_seconds=50.0), {"cuda": "13.0", "abreast": 3}, None, 40.0),
    ],
)
def test_seconds_that_a_job_is_expected_to_take_by_hand(made, site, ended, expected, tmp_path):
    schedule = train._Schedule([made], tmp_path, time.monotonic() + 100, {"cuda": None, "abreast": 1} | site)
    schedule.ratios |= {train.kind(job("b", 1.0)): [ended]} if ended else {}
    assert schedule.expected(made) == pytest.approx(expected)
    assert (schedule.next() == made) is (expected < 100)
