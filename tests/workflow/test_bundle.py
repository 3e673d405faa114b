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


def packed(project, folder, *options):
    done = project.clpapers("pack", "mini/table1", "--out", folder, *options)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_bundle_brings_the_bytes_that_training_here_makes(project, finished, node, tmp_path):
    told = packed(project, tmp_path / "bundle")
    assert "4 runs in 4 jobs" in told
    done = node(tmp_path / "bundle/run.py", "--minutes", "4", "--out", tmp_path / "out", "--abreast", "2")
    assert "4 of 4 jobs done, 0 failed" in done.stdout, done.stdout + done.stderr
    crate = tmp_path / "out/crate-01.zip"
    assert crate.stat().st_size < 15e6
    done = project.clpapers("import", crate)
    assert "4 runs imported" in done.stdout
    results = [path for path in (finished.folder / RUNS).rglob("seed*.json") if ".record" not in path.name]
    assert len(results) == 4
    for path in results:
        brought = project.folder / "results/mini/imported/mnist" / path.relative_to(finished.folder / RUNS)
        assert brought.read_bytes() == path.read_bytes()
    record = json.loads(brought.with_suffix(".record.json").read_text())
    assert record["hardware"]["abreast"] == 2
    assert record["packages"]["snakemake"] is None
    audit = project.clpapers("audit", "--scale", "mini")
    assert audit.returncode == 0, audit.stdout


def test_parts_may_arrive_while_it_works_and_a_damaged_one_is_not_taken(project, node, tmp_path):
    packed(project, tmp_path / "bundle", "--part-mb", "0.2")
    parts = json.loads((tmp_path / "bundle/parts.json").read_text())
    assert len(parts) > 1
    last = tmp_path / "bundle" / parts[-1]["name"]
    whole = last.read_bytes()
    last.write_bytes(whole[:-1] + b"x")
    done = node(tmp_path / "bundle/run.py", "--minutes", "0.4", "--out", tmp_path / "out")
    assert "4 jobs done" not in done.stdout
    last.write_bytes(whole)
    done = node(tmp_path / "bundle/run.py", "--minutes", "4", "--out", tmp_path / "out")
    assert "0 failed" in done.stdout, done.stdout + done.stderr
    with zipfile.ZipFile(tmp_path / "out/crate-01.zip") as crate:
        assert sum(re.search(r"/seed\d\.json$", name) is not None for name in crate.namelist()) == 4


def test_what_a_node_lacks_is_one_line(project, tmp_path):
    packed(project, tmp_path / "bundle")
    command = [sys.executable, "-S", tmp_path / "bundle/run.py", "--minutes", "1", "--out", tmp_path / "out"]
    done = subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("run.py: needs torch, numpy")
    assert done.stderr.count("\n") == 1
