"""A job that has only a part of a GPU never says that a learner does not fit one; cards are fakes, training is too."""

import contextlib
import json

import pytest
import torch

from clpapers import cli
from clpapers.cli import commands
from clpapers.cli.job_context import JobContext, Refusal
from clpapers.runs import cards, loop

CARD = cards.Card("GPU-a", 80_000, 80_000)


def task(*arguments):
    """A task of the smallest path there is, with these arguments."""
    stream = "results/smoke/streams/toy-13-17-10/stf-0.15/seed0.npz"
    options = commands._parser().parse_args(["train", "--out", stream, *arguments])
    options.command = "stream"
    return JobContext(options)


@pytest.fixture
def train(built, monkeypatch):
    """Trains a run of the finished project anew, on a share of a fake GPU, where memory does not suffice for a seed."""
    (run,) = (built.folder / "results/mini/runs/mnist").glob("*/er-*/seed0.json")
    run = run.relative_to(built.folder)

    def trained(share):
        device = torch.device("cpu")
        monkeypatch.setattr(JobContext, "device", lambda task: (device, share))
        monkeypatch.setattr(loop, "train", lambda *given, **named: [{"seed": 0, "out_of_memory": True}])
        with contextlib.chdir(built.folder):
            run.unlink()
            code = cli.main(["train", "--out", str(run), "--gpus", "1", "--gpu-mem-mb", "12000"])
            return code, json.loads(run.read_text())["seeds"] if run.exists() else None

    return trained


def test_a_part_of_a_card_that_does_not_suffice_is_told_in_a_line(train, capsys):
    assert train(cards.Share(CARD, 12_000)) == (2, None)
    (line,) = capsys.readouterr().err.splitlines()
    assert "12000 MB of the GPU's 80000 MB did not suffice" in line
    assert "--set-resources train:gpu_mem_mb=48000" in line


def test_a_card_that_others_use_is_not_blamed(train, capsys):
    assert train(cards.Share(CARD._replace(free=30_000), 80_000)) == (2, None)
    assert "30000 of 80000 MB were free" in capsys.readouterr().err


@pytest.mark.parametrize("share", [cards.Share(CARD, 80_000), None], ids=["a whole card", "unknown"])
def test_a_whole_card_that_does_not_suffice_is_a_result(train, share):
    assert train(share) == (0, [{"seed": 0, "out_of_memory": True}])


def test_a_share_bounds_what_pytorch_takes(monkeypatch):
    told = []
    monkeypatch.setattr(cards, "take", lambda megabytes: cards.Share(CARD, megabytes or CARD.memory))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", told.append)
    for megabytes in (40_600, 0):
        assert task("--gpus", "1", "--gpu-mem-mb", str(megabytes)).device()[0].type == "cuda"
    assert told == [0.5]


def test_on_a_cpu_no_card_is_looked_for(monkeypatch):
    monkeypatch.setattr(cards, "take", pytest.fail)
    assert task().device() == (torch.device("cpu"), None)


def test_less_than_nothing_is_refused():
    with pytest.raises(Refusal, match="--gpu-mem-mb -1"):
        task("--gpus", "1", "--gpu-mem-mb", "-1").device()
