"""The doctor sees each fault of a machine, says what to do about it, and fits on a screen; machines here are fakes."""

import contextlib
import copy
import json
import os
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from clpapers import cli, provenance
from clpapers.builds import doctor
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers

ROOT = Path(__file__).parents[2]
SCALES = ("smoke", "paper")
GB = 10**9


@pytest.fixture(scope="module")
def plans():
    """The project's own plans, by scale, and one whose sources are any, stand-ins included."""
    with contextlib.chdir(ROOT):
        made = {scale: Plan(scale, all_papers()) for scale in SCALES}
    made["any"] = copy.copy(made["paper"])
    made["any"].settings = made["smoke"].settings | {"sources": "any"}
    return made


class Machine:
    """A machine, of which a test may change commands, packages, GPUs, free bytes and a folder that is read-only."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.patch, self.fetch = folder, monkeypatch, []
        self.has(1000 * GB)
        self.fix(None)
        self.commands, self.packages = folder / "bin", folder / "site"
        self.commands.mkdir()
        for name in ("npm", "apt-get", "nvidia-smi"):
            (self.commands / name).touch(mode=0o755)
        self.package("mine", "1.0")
        monkeypatch.setenv("PATH", str(self.commands))
        monkeypatch.syspath_prepend(self.packages)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=self.free))
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != self.fixed)

    def package(self, name, version):
        """Install a version of a package, of which requirements.lock has 1.0."""
        (self.packages / f"{name}.dist-info").mkdir(parents=True, exist_ok=True)
        (self.packages / f"{name}.dist-info/METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        (self.folder / "requirements.lock").write_text(f"{name}==1.0\n")

    def broken(self, name, fault):
        """Let the import of a package end with an error."""
        (self.packages / f"{name}.py").write_text(f"raise {fault!r}")
        self.patch.delitem(sys.modules, name, raising=False)

    def gpus(self, *names):
        cuda = SimpleNamespace(
            is_available=lambda: bool(names),
            device_count=lambda: len(names),
            get_device_properties=lambda number: SimpleNamespace(name=names[number], total_memory=80 * GB),
        )
        torch = SimpleNamespace(__version__="2.13.0", get_num_threads=lambda: 2, cuda=cuda)
        self.patch.setitem(sys.modules, "torch", torch)
        self.patch.setitem(sys.modules, "torchvision", torch)

    def lacks(self, command):
        (self.commands / command).unlink()

    def has(self, free):
        self.free = free

    def fix(self, name=""):
        """Let nobody write to a folder."""
        self.fixed = None if name is None else self.folder / name


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A sound machine with a large empty disk, and its working folder."""
    monkeypatch.chdir(tmp_path)
    return Machine(tmp_path, monkeypatch)


def examine(plan, fetch=()):
    return doctor.report(plan, Path("data"), Path("downloads"), fetch)


def line(text, start):
    """The one line, wrapped or not, whose finding begins so: its mark and all of it."""
    items = text.replace("\n     ", " ").splitlines()
    (found,) = (each.strip() for each in items if each[5:].startswith(start))
    return found.split(maxsplit=1)


def plan_of(**changes):
    """A plan of one data set, of 15 images of 12 bytes, and nothing else."""
    spec = {"shape": [2, 2, 3], "train": 10, "test": 5, "classes": ["a", "b"], "sources": []}
    target = SimpleNamespace(spec={}, cells=(), selections=(), streams=(("set", {}, 0), ("toy-1-2", {}, 0)))
    plan = {"scale": "own", "cuda": False, "settings": {"sources": "real"}, "scale_file": "config/scales/own.yaml"}
    plan |= {"targets": {"p/t": target}, "datasets": {"set": spec}, "weights": {}, "cells": {}}
    return SimpleNamespace(**(plan | changes))


# --- the whole page ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
def test_on_a_sound_machine_only_what_nobody_serves_is_told_and_nothing_is_in_the_way(plans, scale):
    text, fit = examine(plans[scale])
    assert fit
    assert "  NO" not in text
    assert ("icubworld: no source serves it; a build leaves it out" in text) == (scale == "paper")


@pytest.mark.parametrize("scale", SCALES)
def test_it_fits_on_a_screen_however_bad_it_is(plans, scale, machine):
    examine(plans[scale])  # which may import torchvision
    machine.has(0)
    machine.fix()
    machine.package("mine", "3.0")
    machine.broken("torch", ImportError("lib.so: cannot open shared object file " * 5))
    machine.patch.setenv("PATH", "")
    plan = copy.copy(plans[scale])
    plan.cuda = True
    text, fit = examine(plan)
    assert not fit
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("  NO") >= 5


def test_the_exit_code_says_whether_a_build_would_go_through(machine, capsys):
    for folder in ("config", "workflow"):
        shutil.copytree(ROOT / folder, folder)
    assert cli.main(["doctor", "--scale", "smoke"]) == 0
    assert "nothing in the way" in capsys.readouterr().out
    machine.has(0)
    assert cli.main(["doctor", "--scale", "smoke"]) == 1
    assert "1 in the way of a build (NO)" in capsys.readouterr().out


# --- findings ------------------------------------------------------------------------------------------------


def make(*files, text=""):
    for file in map(Path, files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def build(standin):
    """Make the data set of `plan_of`."""
    path = Path("results/own/datasets/set.npz")
    facts = {"source": "npm", "owner": "someone", "licence": "some", "proof": "none", "sha256": {}, "partial": False}
    with provenance.recording("datasets", [path], [], "c0de") as record:
        provenance.write_text(path, "")
        record["data"] = {"set": facts | {"standin": standin}}


def try_in_vain(hours):
    """Note that some hours ago MNIST could not be had."""
    tried = {"time": time.time() - 3600 * hours, "data_folder": "data", "remedy": "nobody serves it"}
    make("results/paper/absent.json", text=json.dumps({"mnist": tried}))


FINDINGS = yaml.safe_load(Path(__file__).with_name("findings.yaml").read_text())


@pytest.mark.parametrize("case", FINDINGS, ids=lambda case: f"{case.get('change', 'sound')}: {case['start']}")
def test_a_finding_has_its_mark_and_its_remedy(plans, machine, case):
    plan = case.get("plan", {})
    plan = plans[plan] if isinstance(plan, str) else plan_of(**plan)
    eval(case.get("change", "None"), globals() | {"it": machine})
    text, fit = examine(plan, machine.fetch)
    mark, said = line(text.replace(str(machine.folder), "HERE"), case["start"])
    assert (mark, fit) == (case["mark"], mark != "NO")
    assert case["said"] in said


def test_the_estimate_is_of_arrays_and_runs_yet_to_come():
    assert doctor.estimate(plan_of()) == (12 * 15, 12 * 15)
    sizes = {"sources": "stand_in", "stand_ins": {"set": {"train_per_class": 3, "test_per_class": 1}}}
    assert doctor.estimate(plan_of(settings=sizes)) == (12 * 2 * 4, 0)
    assert doctor.estimate(plan_of(), {"set": "put it there"}) == (0, 0)
    runs = plan_of(cells={"one": 1, "two": 2}, results=lambda cell: ["file"] * cell)
    assert doctor.estimate(runs) == (12 * 15 + 3 * doctor.PER_RUN, 12 * 15)
