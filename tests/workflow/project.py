"""A copy of the whole project in a folder of its own, small enough that a run takes seconds, and its two commands."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
LOOSE = ("LICENSE", "CITATION.cff", "README.md", "pyproject.toml", "requirements.lock")
PARTS = ("Snakefile", "rules", "workflow", "config", "profiles", "envs", "src", *LOOSE)
TIMEOUT = 300  # seconds; the machine may be busy

SETTINGS = """\
scale: mini
papers: [mini]
device: cpu
data_folder: data
downloads: downloads
"""

SCALE = """\
description: seconds, for the tests of the workflow
seeds: 0-1
seeds_per_job: 1
sources: stand_in
stand_ins:
  mnist: {train_per_class: 5, test_per_class: 2}
"""

PAPER = """\
paper: mini
title: A paper of two methods
defaults:
  order: {name: stf, mu_sigma: 0.05, length: 30}
  oracle: {name: none}
  restriction: {name: single_head}
  budget: {optimizer: sgd, learning_rate: 0.1, batch: 10, replay_batch: 10, memory: 10}
  scaling: symmetric
  evaluation: {points: 3, probes: 10, test: 20}
  precision: float32
datasets:
  mnist: {net: {name: mlp, hidden: [4]}}
  cifar10: {net: {name: cnn, width: 2}}
learners:
  er: {forward: separate}
  ace: {forward: separate}
targets:
  table1:
    title: Table 1
    caption: Both methods.
    section: "1"
    kind: table
    measure: learning
    render: results_table
    paired: true
    metrics: [final_accuracy, average_information_retention]
    names: {learner: Method, dataset: Data set, er: ER, ace: ACE, mnist: MNIST}
    grid: {dataset: [mnist], learner: [er, ace]}
  table2:
    title: Table 2
    caption: The net.
    section: "1"
    kind: table
    measure: architecture
    render: architecture_table
    nets: [cifar10]
  figure1:
    title: Figure 1
    caption: Two streams.
    section: "1"
    kind: figure
    measure: stream_classes
    render: class_frequency
    statistic: class_frequency
    chunks: 5
    streams:
      - {dataset: mnist, seed: 0}
      - {dataset: toy-13-17-10, order: {name: split, tasks: 3}, seed: 0}
"""

REPORTED = """\
paper,target,row,column,metric,value,spread,spread_kind,note
mini,table1,ER,MNIST,final_accuracy,80.1,0.5,ci95_halfwidth_20_runs,
"""


@dataclasses.dataclass
class Project:
    """One copy of the project."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, *, papers: bool = False) -> Project:
        """The working tree's code and configuration, with the paper `mini` and a scale for it.

        papers: keeps the real papers, too, which make each plan slower.
        """
        folder.mkdir(parents=True)
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(
                    source, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "outside")
                )
            else:
                shutil.copy2(source, folder / part)
        project = cls(folder)
        project.write("config/config.yaml", SETTINGS)
        project.write("config/scales/mini.yaml", SCALE)
        project.write("config/papers/mini.yaml", PAPER)
        project.write("config/reported/mini.csv", REPORTED)
        if not papers:
            for file in (folder / "config/papers").glob("[!m]*.yaml"):
                file.unlink()
            for scale in ("paper", "smoke"):
                whole = (folder / f"config/scales/{scale}.yaml").read_text(encoding="utf-8")
                project.write(f"config/scales/{scale}.yaml", whole.partition("papers:")[0])
            project.write("config/claims.yaml", "{}\n")
        return project

    def copy(self, folder: Path) -> Project:
        """An equal project elsewhere, times of modification and Snakemake's notes included."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder)

    # files

    def write(self, file: str, text: str) -> None:
        (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / file).write_text(text, encoding="utf-8")

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace `old`, which must be there, by `new`."""
        text = (self.folder / file).read_text(encoding="utf-8")
        assert old in text, f"{file} holds no {old!r}"
        self.write(file, text.replace(old, new, 1))

    def results(self) -> dict[str, bytes]:
        """The bytes of all results by path; records, logs and benchmarks, which tell of the run itself, left out."""
        files = (p for p in (self.folder / "results").rglob("[!.]*") if p.is_file() and not p.match("*.record.json"))
        paths = {str(path.relative_to(self.folder)): path for path in files}
        return {
            name: p.read_bytes()
            for name, p in paths.items()
            if not re.match(r"results/\w+/(logs/|benchmarks/|choices/|machine.json|absent.json)", name)
        }

    # commands

    def environment(self) -> dict[str, str]:
        """The environment of this process, with the project's code and its commands first."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return os.environ | {"PATH": path, "PYTHONPATH": str(self.folder / "src")}

    def _run(self, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
        )

    def clpapers(self, *arguments: str) -> subprocess.CompletedProcess:
        """`clpapers …`, whatever it says in `stdout`."""
        return self._run("clpapers.cli", *arguments)

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess:
        """`snakemake …`, whatever it says in `stdout`."""
        return self._run("snakemake", *arguments)

    def build(self) -> str:
        """Make all that is configured; what Snakemake says."""
        done = self.snakemake("all", "--cores", "2")
        assert done.returncode == 0, done.stdout
        return done.stdout

    def plan(self, *arguments: str) -> list[str]:
        """The first output of each job that Snakemake would run."""
        done = self.snakemake("-n", *arguments)
        assert done.returncode == 0, done.stdout
        return re.findall(r"^    output: ([^, \n]+)", done.stdout, re.MULTILINE)

    def stages(self, *arguments: str) -> dict[str, int]:
        """How many jobs of each stage Snakemake would run: stage is the third part of a result's path."""
        return dict(Counter(path.split("/")[2] for path in self.plan(*arguments)))

    def start(self, *arguments: str, said: Path | str = os.devnull) -> subprocess.Popen:
        """`snakemake …`, by default `all`, in the background, leading a process group; `said` has its words."""
        with open(said, "w") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", *(arguments or ["all"]), "--cores", "2"],
                cwd=self.folder,
                env=self.environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


def until(condition: Callable[[], object], running: subprocess.Popen) -> object:
    """Wait for `condition`; returns what it returned. `running` must not end before."""
    deadline = time.monotonic() + TIMEOUT
    while not (met := condition()):
        assert running.poll() is None, "it ended before the moment came"
        assert time.monotonic() < deadline, "the moment never came"
        time.sleep(0.01)
    return met


def processes(leader: subprocess.Popen, command: str) -> list[psutil.Process]:
    """The `clpapers <command>` processes under `leader`."""
    found = []
    for process in psutil.Process(leader.pid).children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if command in words and any(word.endswith("/clpapers") for word in words):
            found.append(process)
    return found


def servers(leader: subprocess.Popen) -> list[psutil.Process]:
    """The server of the jobs under `leader`, and then the children that do them."""
    found = []
    for process in psutil.Process(leader.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "clpapers.cli.server" in process.cmdline():
                found.append(process)
    return sorted(found, key=lambda each: each.pid)


def kill_group(leader: subprocess.Popen) -> None:
    """SIGKILL for a process and all of its group."""
    os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()
