"""A bundle trains in another folder, without a network and with few packages, and brings back the same bytes."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata

import pytest

pytestmark = pytest.mark.workflow
ALLOWED = {"torch", "jinja2", "numpy", "pandas", "scipy", "pyyaml"}  # torch needs Jinja2
RUNS = "results/mini/runs/mnist"


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Trains on a node whose Python has few packages, without a network where the system allows such a name space."""
    without = tmp_path_factory.mktemp("node")
    of_project = (re.split("[<>=]", each)[0] for each in metadata.requires("clpapers") if "extra ==" not in each)
    for name in {*of_project, "PIL"} - ALLOWED:
        (without / f"{name.replace('-', '_')}.py").write_text("raise ImportError(__name__)\n")
    apart = ["unshare", "-rn"] if shutil.which("unshare") else []
    if apart and subprocess.run([*apart, "true"], capture_output=True).returncode:
        apart = []
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "TMPDIR", "LANG")}
    environment["PYTHONPATH"] = f"src{os.pathsep}{without}"

    def run(folder, *options, flags=()):
        training = ["-m", "clpapers.cli", "train", "--jobs", "jobs.json", "--out", "out", *options]
        command = [*apart, sys.executable, *flags, *training]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)

    return run


@pytest.fixture(scope="module")
def home(pristine, tmp_path_factory):
    """A project that has packed a bundle of its table."""
    project = pristine.copy(tmp_path_factory.mktemp("home") / "project")
    done = project.clpapers("pack", "mini/table1", "--out", "bundle.tgz", "--stack", "1")
    assert "bundle.tgz: 4 runs in 4 jobs" in done.stdout, done.stdout
    return project


@pytest.fixture(scope="module")
def bundle(home, tmp_path_factory):
    """The folder of the bundle, unpacked elsewhere."""
    with tarfile.open(home.folder / "bundle.tgz") as tar:
        assert not any(info.uname or info.uid for info in tar)
        tar.extractall(away := tmp_path_factory.mktemp("away"), filter="data")
    return away / "bundle"


def brought(out):
    """The names of the results in crates, sorted."""
    names = (name for file in out.glob("crate-*.zip") for name in zipfile.ZipFile(file).namelist())
    return sorted(name for name in names if re.search(r"/seed\d\.json$", name))


def test_a_bundle_brings_each_run_once_and_the_bytes_that_training_here_makes(home, finished, bundle, train):
    for without, runs in ((["--without", "/ace-"], 2), ([], 4)):  # the same goes on with what is left
        done = train(bundle, "--until", "4", "--abreast", "2", *without)
        assert "2 of 2 jobs done, 0 failed, 0 stopped" in done.stdout, done.stdout + done.stderr
        assert len(brought(bundle / "out")) == len(set(brought(bundle / "out"))) == runs
    for number in ("01", "02"):
        done = home.clpapers("import", str(bundle / f"out/crate-{number}.zip"))
        assert "2 runs imported" in done.stdout, done.stdout
    for path in finished.runs():
        here = home.folder / path.replace("/runs/", "/imported/")
        assert here.read_bytes() == (finished.folder / path).read_bytes()
    record = json.loads(here.with_suffix(".record.json").read_text())
    assert record["hardware"]["abreast"] == 2
    home.audit()


def test_what_a_node_lacks_is_one_line(bundle, train):
    done = train(bundle, "--until", "1", flags=["-S"])
    assert done.returncode == 2
    assert done.stderr.startswith("clpapers: jobs.json: needs torch, numpy")
    assert done.stderr.count("\n") == 1
