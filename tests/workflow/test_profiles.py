"""Every profile is one that the installed Snakemake understands; no cluster and no GPU is asked."""

import importlib.util
import os
import re

import pytest
import yaml
from project import ROOT

PROFILES = sorted(path.parent.name for path in (ROOT / "profiles").glob("*/config.yaml"))
TWO_CARDS = "#!/bin/sh\necho 'GPU-a, 24000, 24000'\necho 'GPU-b, 16000, 16000'\n"


def dry(project, profile, *arguments):
    """What a dry run with a profile says; skipped where the profile's executor is not installed."""
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


def resources(said, rule):
    """The resources of a rule's first job."""
    found = re.search(rf"^rule {rule}:.*?^    resources: ([^\n]*)$", said, re.MULTILINE | re.DOTALL)[1]
    return dict(entry.split("=", 1) for entry in found.split(", "))


def test_jobs_on_a_gpu_say_how_much_of_it_they_take(pristine):
    assert resources(dry(pristine, "gpu"), "train")["gpu_mem_mb"] == "12000"
    assert resources(dry(pristine, "gpu", "--set-resources", "train:gpu_mem_mb=30000"), "train")["gpu_mem_mb"] == "30000"


def test_all_seeds_of_a_cell_are_one_job_on_a_gpu(project):
    project.edit("config/scales/mini.yaml", "seeds_per_job: 1", "seeds_per_job: auto")
    assert re.search(r"^train +2$", dry(project, "gpu"), re.MULTILINE)


def test_the_cards_memory_bounds_how_many_run_at_once(pristine, tmp_path, monkeypatch):
    command = tmp_path / "nvidia-smi"
    command.write_text(TWO_CARDS)
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert re.search(r"^Provided resources: .*gpu_mem_mb=40000", dry(pristine, "gpu"), re.MULTILINE)
    said = dry(pristine, "gpu", "--resources", "gpu_mem_mb=9000")
    assert re.search(r"^Provided resources: .*gpu_mem_mb=9000", said, re.MULTILINE)
