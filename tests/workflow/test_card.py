"""A card's plan and share: what jobs ask of it, and what is said where a share does not suffice. No card is asked."""

import json
import re

import pytest
import torch
from world import SCALE

from clpapers import cli
from clpapers.runs import cards, loop

CARD = cards.Card("GPU-a", 80_000, 80_000)


def resources(said, rule):
    """The resources of a rule's first job in a dry run."""
    found = re.search(rf"^rule {rule}:.*?^    resources: ([^\n]*)$", said, re.MULTILINE | re.DOTALL)[1]
    return dict(entry.split("=", 1) for entry in found.split(", "))


def dry(project, *arguments):
    return project.build("all", "-n", "--profile", "profiles/gpu", *arguments)


def test_a_job_trains_all_seeds_and_none_asks_for_more_than_the_cards_have(project, command):
    project.edit(SCALE, "seeds_per_job: 1", "seeds_per_job: auto")
    said = dry(project)
    assert re.search(r"^train +2$", said, re.MULTILINE)
    assert resources(said, "train")["gpu_mem_mb"] == "12000"
    command("nvidia-smi", "#!/bin/sh\necho 'GPU-a, 24000, 24000, Disabled'\necho 'GPU-b, 16000, 16000, Disabled'\n")
    for given, expected in ((), "40000"), (("--resources", "gpu_mem_mb=9000"), "9000"):
        said = dry(project, "--attempt", "3", *given)  # of 192,000 MB; what bounds a job bounds how many run at once
        assert resources(said, "train")["gpu_mem_mb"] == expected


@pytest.fixture
def train(built, monkeypatch, capsys):
    """Trains a run of the finished project anew, on a share of a fake card, where memory suffices for no seed."""
    out = next(iter(built.runs("er")))
    monkeypatch.chdir(built.folder)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "a card")
    monkeypatch.setattr(loop, "train", lambda *given, **named: [{"seed": 0, "out_of_memory": True}])
    bounds = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", bounds.append)

    def trained(megabytes, share=None):
        monkeypatch.setattr(cards, "take", lambda asked: share)
        (built.folder / out).unlink()
        code = cli.main(["train", "--out", out, "--gpus", "1", "--gpu-mem-mb", str(megabytes)])
        result = json.loads(built.read(out))["seeds"] if (built.folder / out).exists() else None
        return code, result, capsys.readouterr().err, bounds

    return trained


def test_a_part_of_a_card_bounds_what_is_taken_and_is_told_where_it_does_not_suffice(train):
    code, result, said, bounds = train(40_600, cards.Share(CARD, 40_600))
    assert (code, result, bounds) == (2, None, [0.5])
    assert said.count("\n") == 1
    assert "40600 MB of the GPU's 80000 MB did not suffice" in said
    assert "--set-resources train:gpu_mem_mb=" in said


def test_a_card_that_others_use_is_not_blamed(train):
    code, result, said, _ = train(0, cards.Share(CARD._replace(free=30_000), 80_000))
    assert (code, result) == (2, None)
    assert "30000 of 80000 MB were free" in said


@pytest.mark.parametrize("share", [cards.Share(CARD, 80_000), None], ids=["a whole card", "unknown"])
def test_a_whole_card_that_does_not_suffice_is_a_result(train, share):
    code, result, _, bounds = train(0, share)
    assert (code, result, bounds) == (0, [{"seed": 0, "out_of_memory": True}], [])


def test_less_than_nothing_is_refused(train):
    code, result, said, _ = train(-1)
    assert (code, result, said.count("\n")) == (2, None, 1)
    assert "--gpu-mem-mb -1" in said


def test_on_a_cpu_no_card_is_looked_for(built, monkeypatch):
    monkeypatch.chdir(built.folder)
    monkeypatch.setattr(cards, "take", pytest.fail)
    out = next(iter(built.runs("er")))
    assert cli.main(["train", "--out", out, "--gpus", "0"]) == 0
