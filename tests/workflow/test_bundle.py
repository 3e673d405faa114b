"""A bundle trains in another folder, without a network and with few packages, and brings back the same bytes."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow
ALLOWED = ("torch", "numpy", "pandas", "scipy", "pyyaml")  # and what they need themselves
RUNS = "results/mini/runs/mnist"


def needed(name):
    """The files and folders at the top of a package and of all that it needs."""
    found, queue, seen = set(), [name], set()
    while queue:
        each = queue.pop()
        if each in seen:
            continue
        seen.add(each)
        try:
            package = importlib.metadata.distribution(each)
        except importlib.metadata.PackageNotFoundError:
            continue
        found |= {
            package.locate_file(file.parts[0]) for file in package.files if file.parts[0] not in ("..", "__pycache__")
        }
        wanted = [text for text in package.requires or () if "extra ==" not in text]
        queue += [re.split(r"[\s<>=!~;\[(]", text)[0] for text in wanted]
    return found


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """The command of a Python that has few packages, in a name space without a network where the system allows one."""
    folder = tmp_path_factory.mktemp("node")
    for place in {each for name in ALLOWED for each in needed(name)}:
        (folder / Path(place).name).symlink_to(place)
    apart = ["unshare", "-rn"] if shutil.which("unshare") else []
    if apart and subprocess.run([*apart, "true"], capture_output=True).returncode:
        apart = []
    outside = ("PATH", "HOME", "TMPDIR", "LANG")
    environment = {key: os.environ[key] for key in outside if key in os.environ}

    def run(*arguments, cwd=folder):
        return subprocess.run(
            [*apart, sys.executable, "-S", *map(str, arguments)],
            cwd=cwd,
            env=environment | {"PYTHONPATH": os.pathsep.join(["src", str(folder)])},
            capture_output=True,
            text=True,
            timeout=300,
        )

    assert run("-c", "import snakemake").returncode != 0
    assert run("-c", "import tqdm").returncode != 0
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


def training(*options):
    return "-m", "clpapers.cli", "train", "--jobs", "jobs.json", "--out", "out", *options


def brought(out):
    """The names of the results in crates, sorted."""
    names = (name for file in out.glob("crate-*.zip") for name in zipfile.ZipFile(file).namelist())
    return sorted(name for name in names if re.search(r"/seed\d\.json$", name))


def test_a_bundle_brings_each_run_once_and_the_bytes_that_training_here_makes(home, finished, bundle, node):
    done = node(*training("--until", "4", "--abreast", "2", "--without", "/ace-"), cwd=bundle)
    assert "2 of 2 jobs done, 0 failed, 0 stopped" in done.stdout, done.stdout + done.stderr
    assert len(brought(bundle / "out")) == 2
    done = node(*training("--until", "4", "--abreast", "2"), cwd=bundle)  # the same goes on with what is left
    assert "2 of 2 jobs done, 0 failed, 0 stopped" in done.stdout, done.stdout + done.stderr
    assert len(brought(bundle / "out")) == len(set(brought(bundle / "out"))) == 4
    for number in ("01", "02"):
        done = home.clpapers("import", str(bundle / f"out/crate-{number}.zip"))
        assert "2 runs imported" in done.stdout, done.stdout
    for path in finished.runs():
        here = home.folder / path.replace("/runs/", "/imported/")
        assert here.read_bytes() == (finished.folder / path).read_bytes()
    record = json.loads(here.with_suffix(".record.json").read_text())
    assert record["hardware"]["abreast"] == 2
    assert record["packages"]["snakemake"] is None
    home.audit()


def test_what_a_node_lacks_is_one_line(bundle):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": "src"}
    command = [sys.executable, "-S", *training("--until", "1")]
    done = subprocess.run(command, cwd=bundle, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("clpapers: jobs.json: needs torch, numpy")
    assert done.stderr.count("\n") == 1
