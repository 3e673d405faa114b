"""The tiny world of the tests: a paper of two methods on a stand-in of MNIST, in a copy of the project of its own.

`config/` holds what that paper adds to the project's files. A build of it takes seconds; one is made a session.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import fcntl
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
HERE = Path(__file__).parent
PAPER = "config/papers/mini.yaml"
SCALE = "config/scales/mini.yaml"
TABLE = "results/mini/targets/mini/table1.csv"
METRICS = "results/mini/metrics/mini/table1.csv"
DATA = "results/mini/datasets/mnist.npz"
STREAM = "results/mini/streams/mnist/stf-0.05-n30/seed0.npz"
INDEX = "results/mini/runs/index.csv"
LOOSE = ("LICENSE", "CITATION.cff", "README.md", "pyproject.toml", "requirements.lock", ".gitignore")
PARTS = ("Snakefile", "rules", "workflow", "config", "profiles", "envs", "src", *LOOSE)
TIMEOUT = 300  # seconds; the machine may be busy


def git(*arguments: str, folder: Path = Path()) -> str:
    """The words of `git …`, in a folder."""
    author = {f"GIT_{who}_{what}": "test@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | author, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def once(folder: Path, make: Callable[[Path], object]) -> Path:
    """The folder, which the first of pytest-xdist's workers that asks for it makes."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(begun := folder.with_suffix(".begun"), ignore_errors=True)
            make(begun)
            begun.rename(folder)
    return folder


@dataclasses.dataclass
class Project:
    """One copy of the project."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, *, papers: bool = False) -> Project:
        """The working tree's code and configuration under git, with the paper `mini` and a scale for it.

        papers: keeps the real papers, too, which make each plan slower.
        """
        folder.mkdir(parents=True)
        left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "outside")
        for part in PARTS:
            copy = {"ignore": left_out} if (ROOT / part).is_dir() else {}
            (shutil.copytree if copy else shutil.copy2)(ROOT / part, folder / part, **copy)
        project = cls(folder)
        claims = (folder / "config/claims.yaml").read_bytes()
        shutil.copytree(HERE / "config", folder / "config", dirs_exist_ok=True)
        if papers:
            (folder / "config/claims.yaml").write_bytes(claims)
        else:
            for file in (folder / "config/papers").glob("[!m]*.yaml"):
                file.unlink()
            for scale in ("paper", "smoke"):
                whole = (folder / f"config/scales/{scale}.yaml").read_text(encoding="utf-8")
                project.write(f"config/scales/{scale}.yaml", whole.partition("papers:")[0])
        git("init", "--quiet", "--template=", folder=folder)
        project.commit()
        git("gc", "--quiet", folder=folder)  # one file instead of hundreds to copy
        return project

    def copy(self, folder: Path) -> Project:
        """An equal project elsewhere, times of modification and Snakemake's notes included."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder)

    def commit(self) -> None:
        """Leave nothing that git would call an edit."""
        git("add", ".", folder=self.folder)
        git("commit", "--quiet", "--message", "As it is", folder=self.folder)

    # files

    def write(self, file: str, text: str) -> None:
        (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / file).write_text(text, encoding="utf-8")

    def read(self, file: str) -> str:
        return (self.folder / file).read_text(encoding="utf-8")

    def edit(self, file: str, *changes: str) -> None:
        """Replace the first of each two texts, which must be there, by the second."""
        text = self.read(file)
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in text, f"{file} holds no {old!r}"
            text = text.replace(old, new, 1)
        self.write(file, text)

    def results(self) -> dict[str, bytes]:
        """The bytes of all results by path; records, logs and benchmarks, which tell of the run itself, left out."""
        files = (p for p in (self.folder / "results").rglob("[!.]*") if p.is_file() and not p.match("*.record.json"))
        paths = {str(path.relative_to(self.folder)): path for path in files}
        return {
            name: p.read_bytes()
            for name, p in paths.items()
            if not re.match(r"results/\w+/(logs/|benchmarks/|choices/|machine.json|absent.json)", name)
        }

    def runs(self, learner: str = "*") -> dict[str, int]:
        """The result files of runs on MNIST, sorted, with their times of modification."""
        files = sorted((self.folder / "results/mini/runs/mnist").glob(f"*/{learner}-*/seed*.json"))
        return {str(p.relative_to(self.folder)): p.stat().st_mtime_ns for p in files if not p.match("*.record.json")}

    def notes(self, folder: str) -> dict[str, Path]:
        """Snakemake's notes on files, below a folder: the note's file by the path that it is of."""
        files = [path for path in (self.folder / folder).rglob("*") if path.is_file()]
        names = [
            "".join(each.removeprefix("@") for each in path.relative_to(self.folder / folder).parts) for path in files
        ]
        return {base64.b64decode(name).decode(): path for name, path in zip(names, files)}

    # commands

    def environment(self) -> dict[str, str]:
        """The environment of this process, with the project's code and its commands first."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return os.environ | {"PATH": path, "PYTHONPATH": str(self.folder / "src")}

    def python(self, *command: str) -> subprocess.CompletedProcess:
        """`python -m …`, whatever it says in `stdout`."""
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
        return self.python("clpapers.cli", *arguments)

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess:
        return self.python("snakemake", *arguments)

    def build(self, *arguments: str) -> str:
        """Make targets, by default all that is configured; what Snakemake says."""
        done = self.snakemake("--cores", "2", *(arguments or ["all"]))
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

    def audit(self, *names: str) -> str:
        """The audit's words on results in which nothing is wrong."""
        done = self.clpapers("audit", "--scale", "mini", *names)
        assert done.returncode == 0, done.stdout
        return done.stdout

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


def refusal(said: str) -> str:
    """The one line that tells what is wrong; there must be one, and no traceback."""
    assert "Traceback" not in said, said
    (line,) = (line for line in said.splitlines() if line.startswith("clpapers: "))
    return line.removeprefix("clpapers: ")


def until(condition: Callable[[], object], running: subprocess.Popen) -> object:
    """Wait for `condition`; returns what it returned. `running` must not end before."""
    deadline = time.monotonic() + TIMEOUT
    while not (met := condition()):
        assert running.poll() is None, "it ended before the moment came"
        assert time.monotonic() < deadline, "the moment never came"
        time.sleep(0.01)
    return met


def processes(leader: subprocess.Popen, command: str) -> list[psutil.Process]:
    """The processes under `leader` with this word in their command, by number: `train` has the runs' fronts."""
    found = []
    for process in psutil.Process(leader.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if command in words and (command.startswith("clpapers.") or any(w.endswith("/clpapers") for w in words)):
                found.append(process)
    return sorted(found, key=lambda each: each.pid)


def kill_group(leader: subprocess.Popen) -> None:
    """SIGKILL for a process and all of its group."""
    os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()
