"""A job that travelled has what training asks of a task, and fails in one line."""

import json
import tarfile
from pathlib import Path

import pytest
import torch

from clpapers.bundle.pack import pack
from clpapers.cli import bundle_worker
from clpapers.config import gans
from clpapers.config.plan import Plan
from clpapers.graph import jobs
from clpapers.provenance import record_path
from clpapers.runs import loop


@pytest.fixture
def packed(unbuilt):
    """The jobs in a bundle of some runs, whose inputs are empty files."""

    def jobs_of(plan, runs, stack):
        def make(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            return ""

        pack(plan, runs, Path("bundle.tgz"), make=make, seconds={}, of_card={}, stack=stack)
        with tarfile.open("bundle.tgz") as tar:
            return json.load(tar.extractfile("bundle/jobs.json"))

    return jobs_of


def test_neighbours_share_a_job_and_one_whose_inputs_are_not_sound_says_so_in_one_line(packed):
    plan = Plan("paper", ["stf"])
    cell = plan.targets["stf/table1"].cells[0][1]
    listed = packed(plan, [(cell.hash, seed) for seed in (5, 7, 1, 0, 3)], 4)
    assert [job["seeds"] for job in listed] == [[5], [7], [0, 1], [3]]
    fault = bundle_worker.run(listed[0], {"cuda": None})
    assert listed[0]["inputs"][0] in fault
    assert "\n" not in fault


def test_memory_that_runs_out_on_a_card_is_told_in_one_line(here, monkeypatch):
    """A job has a share of a card. The card is made up, and what runs out; the next try starts over."""
    (file, *_) = sorted(Path("results/mini/runs/mnist").rglob("seed0.json"))
    record = json.loads(record_path(file).read_text())
    file.unlink()
    record_path(file).unlink()
    job = {"command": "train", "out": str(file), "seeds": [0], "spec": record["cell"], "classes": 10, "chosen": []}
    job |= {"inputs": [item["path"] for item in record["inputs"]], "last": False, "code": "c0de", "settings": "5e77"}
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "a card")
    monkeypatch.setattr(loop, "train", lambda *given, **options: [{"seed": 0, "out_of_memory": True}])
    fault = bundle_worker.run(job | {"git": {}, "packed_on": {}}, {"cuda": "12.8"})
    assert fault.startswith("Refusal: ")
    assert str(file) in fault
    assert "memory ran out" in fault
    assert not file.exists()
    assert list(file.parent.glob(".*.checkpoint")) == []


def test_gans_that_travel_are_those_of_the_plan(packed):
    """Their file, the stream that they are trained along, and so the order of the job's inputs."""
    plan = Plan("smoke", ["desiderata"])
    shared = next(iter(gans.shared(plan).values()))
    user = next(cell for cell in plan.cells.values() if gans.of_cell(plan, cell) is shared)
    seed = min(shared.seeds)
    for job, command in zip(packed(plan, [(user.hash, seed)], 1), ("gans", "train"), strict=True):
        there = bundle_worker.PackedJob(job, {"cuda": None}).job
        assert job["command"] == command
        assert there.inputs == jobs.job_of(plan, Path(job["out"])).inputs
        (travelled,) = (each for each in there.subject if isinstance(each, gans.Gans))
        assert (travelled.file(seed), travelled.stream(seed)) == (shared.file(seed), shared.stream(seed))
        assert travelled.spec == shared.spec
