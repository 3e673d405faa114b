"""Trains a list of jobs on a machine without a configuration, and ends in time with finished runs alone.

`clpapers pack` wrote the list. A job starts once its inputs are there, if it can end in time. Its expected duration
comes from finished jobs of its kind or, before any has finished, from its seconds on a core. A process trains one job
after another, so that a short one costs no start. On a card the processes share it by NVIDIA's MPS, if that is
installed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Collection
from pathlib import Path

from clpapers import machine
from clpapers.bundle import crate
from clpapers.provenance import PACKAGE, Refusal, record_path
from clpapers.runs import cards

NEEDED = ("torch", "numpy", "pandas", "scipy", "yaml")
WRITING = 8.0  # seconds to keep for the last crate
EVERY = 300.0  # seconds between two crates
FASTER = 25.0  # the least speed of a job that shares a card against a core, assumed until one of its kind has ended
STOPPED = "stopped at the end"  # the fault of a job that had begun
CARD, RESERVE = 3.0, 0.1  # gigabytes of a card for a job; the share of the card that none takes


def train(file: Path, out: Path, minutes: float, abreast: int | None = None, without: Collection[str] = ()) -> str:
    """Train the jobs of a list, in this folder, for some minutes; crates and a log go to `out`.

    abreast: processes at a time; as many as fit if None. without: words; jobs with one in their path are left out.
    Returns a line that counts them. Raises `Refusal` where the folder is not the list's, or a package is not there.
    """
    if file.resolve().parent != Path.cwd():
        raise Refusal(f"{file}: its paths begin in its folder; go there, and give the same command again")
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise Refusal(f"{file}: needs {', '.join(missing)}, which this Python does not have; install it")
    began = time.monotonic()
    jobs = [job for job in json.loads(file.read_text()) if not any(word in job["out"] for word in without)]
    out.mkdir(parents=True, exist_ok=True)
    site = _site()
    processes = abreast or _abreast(site)
    site |= {"mps": site["cuda"] is not None and processes > 1 and cards.start_mps(), "abreast": processes}
    print(json.dumps(site), flush=True)
    return _Schedule(jobs, out, began + 60 * minutes - WRITING, site).run()


def _site() -> dict:
    """The facts on this machine for records: card, its memory in gigabytes, CUDA, cuDNN and driver, or nulls.

    Another process looks them up, so that CUDA is not initialised here.
    """
    script = (
        "import json, torch; c = torch.cuda.is_available(); print(json.dumps({'torch': torch.__version__, 'cuda': "
        "torch.version.cuda if c else None, 'cudnn': torch.backends.cudnn.version() if c else None, "
        "'gigabytes': torch.cuda.get_device_properties(0).total_memory / 1e9 if c else None}))"
    )
    answer = subprocess.run([*_python(), "-c", script], capture_output=True, text=True, check=True)
    driver = None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    return json.loads(answer.stdout) | {"driver": driver, "python": platform.python_version()}


def _python() -> list[str]:
    return [sys.executable, *(["-S"] if sys.flags.no_site else [])]


def _abreast(site: dict) -> int:
    """How many processes fit: one a core, and on a card as many as its memory holds."""
    cores = machine.cores()
    return cores if site["cuda"] is None else max(1, min(cores, int(site["gigabytes"] * (1 - RESERVE) / CARD)))


def kind(job: dict) -> tuple:
    """The command, the learner, the net and the number of seeds: jobs that share them run at one rate here."""
    return job["command"], job["spec"]["learner"]["name"], json.dumps(job["spec"]["net"]), len(job["seeds"])


class _Schedule:
    """The state of a list at work; its threads, one a process, share it under a lock."""

    def __init__(self, jobs: list[dict], out: Path, deadline: float, site: dict):
        self.jobs, self.out, self.deadline, self.site = jobs, out, deadline, site
        self.waiting = [job for job in jobs if not _finished(job)]
        self.count, self.done, self.busy = len(self.waiting), 0, 0
        self.faults: list[str] = []
        self.ratios: dict[tuple, list[float]] = {}  # of kinds, seconds here over seconds of a core
        self.lock = threading.Lock()
        self.processes: set[subprocess.Popen] = set()
        self.began = time.monotonic()

    def run(self) -> str:
        """Work until no job remains that may still end in time; returns a line that counts the jobs."""
        threads = [threading.Thread(target=self.work, args=(n,), daemon=True) for n in range(self.site["abreast"])]
        for thread in threads:
            thread.start()
        packed = time.monotonic()
        while any(thread.is_alive() for thread in threads) and time.monotonic() < self.deadline:
            if time.monotonic() - packed > EVERY:
                self.pack()
                packed = time.monotonic()
            time.sleep(0.2)
        with self.lock:
            self.waiting.clear()
            for process in self.processes:
                process.kill()
        for thread in threads:  # each tells what was stopped
            thread.join(1.0)
        self.pack()
        stopped = self.faults.count(STOPPED)
        line = f"{self.done} of {self.count} jobs done, {len(self.faults) - stopped} failed, {stopped} {STOPPED}"
        self.say(line)
        return line

    def say(self, text: str) -> None:
        """Write a line with the seconds since the beginning to the log."""
        with (self.out / "log.txt").open("a") as file:
            file.write(f"{time.monotonic() - self.began:6.1f} s  {text}\n")

    def next(self) -> dict | None:
        """The first job that can start and is expected to end in time; None where there is none now."""
        remaining = self.deadline - time.monotonic()
        for job in self.waiting:
            if self.expected(job) < remaining and all(map(os.path.isfile, job["inputs"])):
                self.waiting.remove(job)
                return job
        return None

    def expected(self, job: dict) -> float:
        """Seconds that a job is expected to take here."""
        seconds = job["seconds"] or 60.0
        if ratios := self.ratios.get(kind(job)):
            return seconds * max(ratios[-5:])
        if self.site["cuda"] is None:
            return seconds
        return min(seconds / FASTER, (job["card_seconds"] or math.inf) * self.site["abreast"])

    def work(self, number: int) -> None:
        """Keep one process at work, one job after another."""
        process = None
        while time.monotonic() < self.deadline:
            with self.lock:
                job = self.next()
                if job is None and not self.busy:  # none is at work that another waits for
                    break
                self.busy += job is not None
            if job is None:
                time.sleep(0.2)
                continue
            if process is None or process.poll() is not None:
                process = self.start(number)
            seconds, fault = self.do(process, job)
            if fault != STOPPED:
                self.say(f"{seconds:6.1f} s  {job['out']}{fault and f': {fault}'}")
            with self.lock:
                self.busy -= 1
                if fault:
                    self.faults.append(fault)
                else:
                    self.done += 1
                    self.ratios.setdefault(kind(job), []).append(seconds / (job["seconds"] or 60.0))
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()

    def start(self, number: int) -> subprocess.Popen:
        """Start a process that trains (`cli.bundle_worker`)."""
        paths = [str(PACKAGE.parent.resolve()), os.environ.get("PYTHONPATH", "")]
        variables = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        variables |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        with (self.out / f"process-{number:02}.log").open("a") as log:
            process = subprocess.Popen(
                [*_python(), "-m", "clpapers.cli.bundle_worker", json.dumps(self.site)],
                env=os.environ | variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.processes.add(process)
        return process

    def do(self, process: subprocess.Popen, job: dict) -> tuple[float, str]:
        """Let a process do a job; returns the seconds that it took, and why it failed, if it did."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            seconds, fault = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            return 0.0, f"its process ended ({process.wait()})" if time.monotonic() < self.deadline else STOPPED
        return seconds, fault

    def pack(self) -> None:
        """Write the finished runs that no crate in `out` holds yet into the next one."""
        crates = sorted(self.out.glob("crate-*.zip"))
        packed = {name for file in crates for name in zipfile.ZipFile(file).namelist()}
        finished = (Path(job["out"]) for job in self.jobs if job["command"] == "train" and _finished(job))
        if runs := [run for run in finished if crate.name(run) not in packed]:
            crate.pack(self.out / f"crate-{len(crates) + 1:02}.zip", runs)


def _finished(job: dict) -> bool:
    """Whether a job's result and its record exist: the record is written last."""
    out = Path(job["out"])
    return out.is_file() and record_path(out).is_file()
