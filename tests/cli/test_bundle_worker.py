"""A job that travelled has what training asks of a task, and fails in one line."""

import json
from pathlib import Path

import pytest
import torch

from clpapers.bundle.pack import _neighbours, _resolved
from clpapers.cli import bundle_worker
from clpapers.config import gans
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.provenance import record_path
from clpapers.runs import loop

SPEC = {
    "dataset": "mnist",
    "learner": {"name": "er"},
    "net": {"name": "mlp"},
    "order": {"name": "random"},
    "precision": "float32",
}
JOB = {
    "command": "train",
    "out": "results/mini/runs/mnist/random/er-0123456789/seeds3-4.json",
    "seeds": [3, 4],
    "spec": SPEC,
    "classes": 10,
    "inputs": ["results/mini/datasets/mnist.npz"],
    "chosen": ["results/mini/selection/agem/mnist-er.json"],
    "last": False,
    "code": "c0de",
    "settings": "5e77",
    "git": {"commit": None, "dirty": None},
    "packed_on": {},
}


def test_its_files_and_seeds_are_those_that_were_packed():
    packed = bundle_worker.PackedJob(JOB, {"cuda": None})
    cell, seeds, chosen, shared = packed.job.subject
    assert (cell.spec, list(seeds)) == (SPEC, [3, 4])
    assert chosen == [Path("results/mini/selection/agem/mnist-er.json")]
    assert shared is None
    assert len(packed.plan.datasets["mnist"]["classes"]) == 10


def test_its_share_of_a_card_is_not_the_whole_card():
    """So where memory runs out, a run is refused and not recorded as one that no card holds."""
    device, share = bundle_worker.PackedJob(JOB, {"cuda": "a card"}).device()
    assert (device.type, share.is_whole) == ("cuda", False)


def test_a_job_whose_inputs_are_not_there_says_so_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fault = bundle_worker.run(JOB, {"cuda": None})
    assert "results/mini/datasets/mnist.npz" in fault
    assert "\n" not in fault


@pytest.mark.parametrize(
    ("seeds", "ranges"), [([0], [range(1)]), ([0, 1, 3], [range(2), range(3, 4)]), ([2, 3, 4], [range(2, 5)])]
)
def test_neighbours_share_a_job(seeds, ranges):
    assert list(_neighbours(seeds)) == ranges


@pytest.mark.parametrize("alone", [True, False])
def test_memory_that_runs_out_on_a_card_is_told_in_one_line(alone, here, monkeypatch):
    """The card is a CPU; what runs out is made up. Nothing is written, and the next try starts over."""
    monkeypatch.chdir(here)
    (file, *_) = sorted(Path("results/mini/runs/mnist").rglob("seed0.json"))
    record = json.loads(record_path(file).read_text())
    file.unlink()
    record_path(file).unlink()
    streams = [item["path"] for item in record["inputs"]]
    packed = JOB | {
        "out": str(file),
        "seeds": [0],
        "spec": record["cell"] | {},
        "inputs": streams,
        "chosen": [],
    }

    def exhausted(*given, **options):
        if alone:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return [{"seed": 0, "out_of_memory": True}]

    monkeypatch.setattr(loop, "_train_stack" if alone else "train", exhausted)
    monkeypatch.setattr(bundle_worker.PackedJob, "device", lambda self: (torch.device("cpu"), bundle_worker.Share()))
    monkeypatch.setattr(bundle_worker.PackedJob, "hardware", lambda self, device: {"device": "a card"})
    fault = bundle_worker.run(packed, {"cuda": "12.8"})
    assert fault.startswith("Refusal: ")
    assert str(file) in fault
    assert "memory ran out" in fault
    assert not file.exists()
    assert list(file.parent.glob(".*.checkpoint")) == []


def test_gans_that_travel_are_those_of_the_plan():
    """Their file, the stream that they are trained along, and so the order of the job's inputs."""
    plan = Plan("smoke", all_papers())
    shared = next(iter(gans.shared(plan).values()))
    seed = min(shared.seeds)
    for path in (shared.file(seed), shared.cell.folder / f"seed{seed}.json"):
        job = jobs.job_of(plan, path)
        packed = json.loads(json.dumps(_resolved(plan, job, {}, {}))) | {"git": {}, "packed_on": {}}
        there = bundle_worker.PackedJob(packed, {"cuda": None}).job
        assert there.inputs == job.inputs
        (travelled,) = (each for each in there.subject if isinstance(each, gans.Gans))
        assert (travelled.file(seed), travelled.stream(seed)) == (shared.file(seed), shared.stream(seed))
        assert travelled.spec == shared.spec
