"""A bundle trains in another folder, without a network and with few packages, and brings back the same bytes."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
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
    environment = {key: os.environ[key] for key in outside if key in os.environ} | {"PYTHONPATH": str(folder)}

    def run(*arguments):
        return subprocess.run(
            [*apart, sys.executable, "-S", *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    assert run("-c", "import snakemake").returncode != 0
    assert run("-c", "import tqdm").returncode != 0
    return run


@pytest.fixture(scope="module")
def home(pristine, tmp_path_factory):
    """A project that has packed a bundle of its table, in several parts."""
    project = pristine.copy(tmp_path_factory.mktemp("home") / "project")
    done = project.clpapers("pack", "mini/table1", "--out", "bundle", "--part-mb", "0.2", "--stack", "1")
    assert done.returncode == 0, done.stdout
    assert "4 runs in 4 jobs" in done.stdout
    return project


@pytest.fixture
def bundle(home, tmp_path):
    """A copy of the bundle, elsewhere."""
    shutil.copytree(home.folder / "bundle", tmp_path / "bundle")
    assert len(list((tmp_path / "bundle").glob("part-*.zip"))) > 1
    return tmp_path / "bundle"


def brought(out):
    """The names of the results in a crate."""
    with zipfile.ZipFile(out / "crate-01.zip") as crate:
        return [name for name in crate.namelist() if re.search(r"/seed\d\.json$", name)]


def test_a_bundle_brings_the_bytes_that_training_here_makes(home, finished, bundle, node, tmp_path):
    done = node(bundle / "run.py", "--minutes", "4", "--out", tmp_path / "out", "--abreast", "2")
    assert "4 of 4 jobs done, 0 failed, 0 stopped" in done.stdout, done.stdout + done.stderr
    assert (tmp_path / "out/crate-01.zip").stat().st_size < 15e6
    done = home.clpapers("import", str(tmp_path / "out/crate-01.zip"))
    assert "4 runs imported" in done.stdout
    results = [path for path in (finished.folder / RUNS).rglob("seed*.json") if ".record" not in path.name]
    assert len(results) == 4
    for path in results:
        here = home.folder / "results/mini/imported/mnist" / path.relative_to(finished.folder / RUNS)
        assert here.read_bytes() == path.read_bytes()
    record = json.loads(here.with_suffix(".record.json").read_text())
    assert record["hardware"]["abreast"] == 2
    assert record["packages"]["snakemake"] is None
    audit = home.clpapers("audit", "--scale", "mini")
    assert audit.returncode == 0, audit.stdout


def test_a_damaged_part_is_not_taken_and_the_same_command_goes_on_when_it_is_whole(bundle, node, tmp_path):
    last = max(bundle.glob("part-*.zip"))
    whole = last.read_bytes()
    last.write_bytes(whole[:-1] + b"x")
    done = node(bundle / "run.py", "--minutes", "0.5", "--out", tmp_path / "out")
    assert "4 of 4 jobs done" not in done.stdout
    last.write_bytes(whole)
    done = node(bundle / "run.py", "--minutes", "4", "--out", tmp_path / "out")
    assert "0 failed" in done.stdout, done.stdout + done.stderr
    assert len(brought(tmp_path / "out")) == 4


def test_what_a_node_lacks_is_one_line(bundle, tmp_path):
    command = [sys.executable, "-S", bundle / "run.py", "--minutes", "1", "--out", tmp_path / "out"]
    done = subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("run.py: needs torch, numpy")
    assert done.stderr.count("\n") == 1
