"""A card's plan and share: what jobs ask of it, and what is said where a share does not suffice. No card is asked."""

import json
import re

import pytest
import torch
from world import SCALE

from clpapers import cli
from clpapers.runs import loop


@pytest.fixture
def cards(command):
    """Has `nvidia-smi` tell of cards, each by its name, its memory and what is free of it."""

    def told(*lines):
        command("nvidia-smi", f"#!/bin/sh\nprintf '%s, Disabled\\n' {' '.join(map(repr, lines))}\n" if lines else "no")

    return told


def test_a_job_trains_all_seeds_and_none_asks_for_more_than_the_cards_have(project, cards):
    project.edit(SCALE, "seeds_per_job: 1", "seeds_per_job: auto")

    def asked(*arguments):
        said = project.build("all", "-n", "--profile", "profiles/gpu", *arguments)
        assert re.search(r"^train +2$", said, re.MULTILINE)
        resources = re.search(r"^rule train:.*?^    resources: ([^\n]*)$", said, re.MULTILINE | re.DOTALL)[1]
        return dict(entry.split("=", 1) for entry in resources.split(", "))["gpu_mem_mb"]

    cards()
    assert asked() == "12000"
    cards("GPU-a, 24000, 24000", "GPU-b, 16000, 16000")
    assert asked("--attempt", "3") == "40000"  # of 192,000 MB
    assert asked("--attempt", "3", "--resources", "gpu_mem_mb=9000") == "9000"  # which bounds a job, too


WHOLE = [{"seed": 0, "out_of_memory": True}]


@pytest.mark.parametrize(
    ("free", "asked", "result", "bounds", "told"),
    [
        (80_000, 40_600, None, [0.5], "40600 MB of the GPU's 80000 MB did not suffice.*--set-resources train:gpu_mem_"),
        (30_000, 0, None, [], r"30000 of 80000 MB were free"),  # others use it
        (80_000, 0, WHOLE, [], ""),  # a whole card: that is a result
        (None, 0, WHOLE, [], ""),  # an unknown one
        (80_000, -1, None, [], "--gpu-mem-mb -1"),
    ],
)
def test_a_share_that_does_not_suffice_is_told_and_a_whole_card_is_a_result(
    free, asked, result, bounds, told, built, cards, tmp_path, monkeypatch, capsys
):
    """A run of the finished project is trained anew on a made-up card, where memory suffices for no seed."""
    cards(*([f"GPU-a, 80000, {free}"] if free else []))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # where jobs that share a card know of each other
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "a card")
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", (bounded := []).append)
    monkeypatch.setattr(loop, "train", lambda *given, **named: WHOLE)
    out = next(iter(built.runs("er")))
    monkeypatch.chdir(built.folder)
    (built.folder / out).unlink()
    code = cli.main(["train", "--out", out, "--gpus", "1", "--gpu-mem-mb", str(asked)])
    said = capsys.readouterr().err
    assert (code, bounded) == (2 if result is None else 0, bounds)
    assert re.search(told, said)
    if result is None:
        assert said.count("\n") == 1
        assert not (built.folder / out).exists()
    else:
        assert json.loads(built.read(out))["seeds"] == result


def test_on_a_cpu_no_card_is_looked_for(built, command, tmp_path, monkeypatch):
    command("nvidia-smi", f"#!/bin/sh\ntouch {tmp_path}/looked\n")
    monkeypatch.chdir(built.folder)
    assert cli.main(["train", "--out", next(iter(built.runs("er"))), "--gpus", "0"]) == 0
    assert not (tmp_path / "looked").exists()
