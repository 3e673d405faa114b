"""Every profile is one that the installed Snakemake understands; no cluster and no GPU is asked."""

import importlib.util
import json
import re
import subprocess
import sys

import pytest
import yaml
from world import ROOT, TABLE

PROFILES = sorted(path.parent.name for path in (ROOT / "profiles").glob("*/config.yaml"))


def dry(project, profile, *arguments):
    """The words of a dry run with a profile; skipped where the profile's executor is not installed."""
    settings = yaml.safe_load((ROOT / "profiles" / profile / "config.yaml").read_text())
    plugin = f"snakemake_executor_plugin_{settings.get('executor', 'local').replace('-', '_')}"
    if "executor" in settings and importlib.util.find_spec(plugin) is None:
        pytest.skip(f"{plugin} is not installed")
    where = [] if "executor" in settings else ["--cores", "2"]
    done = project.snakemake("all", "-n", "--profile", f"profiles/{profile}", *where, *arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("profile", PROFILES)
def test_a_dry_run_goes_through(profile, pristine):
    assert re.search(r"^train +4$", dry(pristine, profile), re.MULTILINE)


# --- Kubernetes ----------------------------------------------------------------------------------------------


KUBECTL = """\
#!{python}
import os, subprocess, sys, yaml
from pathlib import Path

jobs = Path("{jobs}")
if sys.argv[1] == "create":
    text = sys.stdin.read()
    job = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"][0]
    name = f"clpapers-{{len(list(jobs.glob('*.yaml')))}}"
    (jobs / f"{{name}}.yaml").write_text(text)
    subprocess.Popen(
        ["sh", "-c", '"$@"; echo $? > "$0"', jobs / name, *job["command"]],
        cwd=job["workingDir"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )
    print(f"job.batch/{{name}}")
elif sys.argv[1] == "get":
    ended = jobs / sys.argv[3].removeprefix("job.batch/")
    code = ended.read_text().strip() if ended.exists() else ""
    print("/" if not code else "1/" if code == "0" else "/1", end="")
"""


def test_a_job_goes_through_kubernetes(project, command, tmp_path):
    """As far as a `kubectl` goes that runs on this machine what it is told to run on another."""
    dry(project, "kubernetes")
    command("kubectl", KUBECTL.format(python=sys.executable, jobs=tmp_path))
    stream = "results/mini/streams/toy-13-17-10/split-3/seed0.npz"
    quick = ["--latency-wait", "5", "--seconds-between-status-checks", "1"]
    done = project.snakemake(stream, "--profile", "profiles/kubernetes", *quick)
    assert done.returncode == 0, done.stdout
    assert (project.folder / stream).is_file()
    (manifest,) = tmp_path.glob("*.yaml")
    (container,) = yaml.safe_load(manifest.read_text())["spec"]["template"]["spec"]["containers"]
    assert container["workingDir"] == str(project.folder)
    assert container["resources"]["limits"] == {"memory": "1000M", "nvidia.com/gpu": 0}
    done = project.snakemake(TABLE, "--profile", "profiles/kubernetes", *quick, "--config", "hours=0")
    assert done.returncode == 0, done.stdout
    (choice,) = (project.folder / "results/mini/choices").glob("*.json")  # which the jobs learn from their commands
    record = json.loads((project.folder / TABLE).with_suffix(".record.json").read_text())
    assert record["choice"] == str(choice.relative_to(project.folder))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("printf 1/", "success"),
        ("printf /1", "failed"),
        ("printf /", "running"),
        ("true", "failed"),
        ("exit 1", "running"),
    ],
)
def test_what_kubernetes_says_of_a_job(answer, expected, command):
    command("kubectl", f"#!/bin/sh\n{answer}\n")
    status = ROOT / "profiles/kubernetes/status"
    assert subprocess.run([status, "job.batch/a"], capture_output=True, text=True).stdout == f"{expected}\n"
