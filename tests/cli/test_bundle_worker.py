"""A job that travelled has what training asks of a task, and fails in one line."""

import json
import tarfile
from pathlib import Path

import torch

from clpapers.bundle.pack import pack
from clpapers.cli import bundle_worker
from clpapers.config import gans
from clpapers.config.plan import Plan
from clpapers.graph import jobs
from clpapers.provenance import record_path
from clpapers.runs import loop


def packed(plan, runs, stack=1):
    """The jobs in a bundle of some runs; inputs that are not there are empty files."""

    def make(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return ""

    pack(plan, runs, Path("bundle.tgz"), make=make, seconds={}, of_card={}, stack=stack)
    with tarfile.open("bundle.tgz") as tar:
        return json.load(tar.extractfile("bundle/jobs.json"))


def test_neighbours_share_a_job_and_one_whose_inputs_are_not_sound_says_so_in_one_line(unbuilt):
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


def check_that_they_travel(plan, listed):
    """A job has the inputs of the plan's, in this order, its selections, and its GANs along the same streams."""
    for job in listed:
        there, here = bundle_worker.PackedJob(job, {"cuda": None}).job, jobs.job_of(plan, Path(job["out"]))
        assert there.inputs == here.inputs
        for own, travelled in zip(here.subject, there.subject, strict=True):
            if isinstance(own, gans.Gans):
                assert [travelled.file(0), travelled.stream(0)] == [own.file(0), own.stream(0)]
            assert getattr(own, "spec", own) == getattr(travelled, "spec", travelled)


def test_jobs_that_travel_draw_from_the_gans_of_the_plan(unbuilt, everything):
    shared = next(iter(gans.shared(everything).values()))
    user = next(cell for cell in everything.cells.values() if gans.of_cell(everything, cell) is shared)
    listed = packed(everything, [(user.hash, min(shared.seeds))])
    assert [job["command"] for job in listed] == ["gans", "train"]
    check_that_they_travel(everything, listed)


def test_jobs_that_travel_take_what_a_selection_found(here):
    plan = Plan("mini", ["mini"])
    (cell,) = (cell for cell in plan.cells.values() if "selection" in cell.spec)
    (job,) = listed = packed(plan, [(cell.hash, 0)])
    assert job["chosen"] == ["results/mini/selection/mini/mnist-er.json"]
    check_that_they_travel(plan, listed)
