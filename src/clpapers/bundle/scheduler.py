"""Keeps a machine busy with a bundle's jobs, and ends in time with finished runs alone.

A job starts once its inputs have arrived, if it can end in time. Its expected duration comes from finished jobs of its
kind or, before any has finished, from its seconds on a core. A process trains one job after another, so that a short
one costs no start. On a card the processes share it by NVIDIA's MPS, if that is installed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from clpapers.bundle import crate, packing
from clpapers.provenance import record_path
from clpapers.runs import cards

LARGEST = 14e6  # bytes of a crate
WRITING = 8.0  # seconds to keep for the last crates
FASTER = 25.0  # the least speed of a job that shares a card against a core, assumed until one of its kind has ended
EVERY = 40.0  # seconds between two crates
STOPPED = "stopped at the end"  # the fault of a job that had begun
DATA = Path("data")  # pieces of data sets, below it at their paths
CARD, RESERVE = 3.0, 0.1  # gigabytes of a card for a job; the share of the card that none takes


class Parts(Protocol):
    """The parts of a bundle, as `bundle.run` unpacks them."""

    def unpack(self) -> bool: ...

    @property
    def complete(self) -> bool: ...


def train(parts: Parts, out: Path, deadline: float, abreast: int | None, without: Collection[str] = ()) -> None:
    """Train the jobs of parts, in this folder, until the deadline (`time.monotonic`); crates and times go to `out`.

    abreast: processes at a time; as many as fit if None. without: words; jobs with one in their path are left out.
    """
    site = _site()
    processes = abreast or _abreast(site)
    site |= {"mps": site["cuda"] is not None and processes > 1 and cards.start_mps(), "abreast": processes}
    print(json.dumps(site), flush=True)
    _Schedule(parts, out, deadline, processes, site, without).run()


def _site() -> dict:
    """The facts on this machine for records: card, its memory in gigabytes, CUDA, cuDNN and driver, or nulls.

    Another process looks them up, so that CUDA is not initialised here.
    """
    script = (
        "import json, torch; c = torch.cuda.is_available(); print(json.dumps({'torch': torch.__version__, 'cuda': "
        "torch.version.cuda if c else None, 'cudnn': torch.backends.cudnn.version() if c else None, "
        "'gigabytes': torch.cuda.get_device_properties(0).total_memory / 1e9 if c else None}))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    driver = None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    return json.loads(answer.stdout) | {"driver": driver, "python": platform.python_version()}


def _abreast(site: dict) -> int:
    """How many processes fit: one a core, and on a card as many as its memory holds."""
    cores = len(os.sched_getaffinity(0))
    return cores if site["cuda"] is None else max(1, min(cores, int(site["gigabytes"] * (1 - RESERVE) / CARD)))


def kind(job: dict) -> tuple[str, str, int]:
    """The learner, the net and the number of seeds: jobs that share them run at one rate here."""
    return (
        job["spec"].get("learner", {}).get("name", job["command"]),
        json.dumps(job["spec"].get("net")),
        len(job["seeds"]),
    )


class _Schedule:
    """The state of a bundle at work; its threads, one a process, share it under a lock."""

    def __init__(
        self, parts: Parts, out: Path, deadline: float, abreast: int, site: dict, without: Collection[str] = ()
    ):
        self.parts, self.out, self.deadline, self.abreast, self.site = parts, out, deadline - WRITING, abreast, site
        jobs = json.loads(Path("jobs.json").read_text())
        requested = [job for job in jobs if not any(word in job["out"] for word in without)]
        self.waiting: list[dict] = [job for job in requested if not _finished(job)]
        self.jobs = len(self.waiting)
        self.ratios: dict[tuple, list[float]] = {}  # of kinds, seconds here over seconds of a core
        self.answers: list[dict] = []
        self.done = [job for job in jobs if _finished(job)]
        self.lock = threading.Lock()
        self.processes: set[subprocess.Popen] = set()
        self.settled = False
        self.busy, self.packed = 0, dict[int, int]()  # packed: how many runs each crate has
        self.began = time.monotonic()

    def run(self) -> None:
        """Work until no job remains that may still end in time."""
        threads = [threading.Thread(target=self.work, args=(n,), daemon=True) for n in range(self.abreast)]
        for thread in threads:
            thread.start()
        written = time.monotonic()
        while any(thread.is_alive() for thread in threads) and time.monotonic() < self.deadline:
            if self.parts.unpack():
                self.say("a part has arrived")
            self.assemble()
            self.settled = self.parts.complete  # from here on only jobs make what others wait for
            if time.monotonic() - written > EVERY:
                self.write()
                written = time.monotonic()
            time.sleep(0.5)
        with self.lock:
            self.waiting.clear()
            for process in self.processes:
                process.kill()
        self.write()
        faults = [answer["fault"] for answer in self.answers if answer["fault"]]
        done, stopped = len(self.answers) - len(faults), faults.count(STOPPED)
        self.say(f"{done} of {self.jobs} jobs done, {len(faults) - stopped} failed, {stopped} {STOPPED}")

    def say(self, text: str) -> None:
        """Write a line with the seconds since the beginning to the terminal and to a file."""
        line = f"{time.monotonic() - self.began:6.1f} s  {text}"
        print(line, flush=True)
        with (self.out / "log.txt").open("a") as file:
            file.write(line + "\n")

    def assemble(self) -> None:
        """Join the files of arrays whose pieces have all arrived."""
        for form in DATA.rglob(packing.FORM):
            file = Path(*form.parent.parts[1:])
            if file.is_file():
                continue
            if not all((form.parent / name).is_file() for name in json.loads(form.read_text())["pieces"]):
                continue
            packing.join(functools.partial(_read, form.parent), file)
            if file.parts[2] != "streams":
                self.say(f"{file} is there")

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
        ratios = self.ratios.get(kind(job))
        if ratios:
            return seconds * max(ratios[-5:])
        if self.site["cuda"] is None:
            return seconds
        return min(seconds / FASTER, (job.get("card_seconds") or math.inf) * self.abreast)

    def work(self, number: int) -> None:
        """Run one process at a time, and its jobs one after another."""
        process = None
        while True:
            with self.lock:
                job = self.next()
                self.busy += job is not None
                idle = not self.waiting or (self.settled and not self.busy)
            if job is None:
                if idle or time.monotonic() > self.deadline:
                    break
                time.sleep(0.2)
                continue
            if process is None or process.poll() is not None:
                process = self.start(number)
            answer = self.do(process, job)
            with self.lock:
                self.busy -= 1
                facts = {"kind": kind(job)[0], "seeds": len(job["seeds"]), "core": job["seconds"]}
                self.answers.append(answer | facts)
                if not answer["fault"]:
                    self.done.append(job)
                    self.ratios.setdefault(kind(job), []).append(answer["seconds"] / (job["seconds"] or 60.0))
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()

    def start(self, number: int) -> subprocess.Popen:
        """Start a process that trains (`cli.errands`)."""
        paths = [str(Path.cwd() / "src"), os.environ.get("PYTHONPATH", ""), str(Path.cwd() / "site")]
        variables = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        variables |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        flags = ["-S"] if sys.flags.no_site else []
        with (self.out / f"process-{number:02}.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, *flags, "-m", "clpapers.cli.errands", json.dumps(self.site)],
                env=os.environ | variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.processes.add(process)
        return process

    def do(self, process: subprocess.Popen, job: dict) -> dict:
        """Let a process do a job; returns its answer, or that it ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            fault = f"its process ended ({process.wait()})" if time.monotonic() < self.deadline else STOPPED
            answer = {"out": job["out"], "fault": fault, "seconds": 0.0}
        if answer["fault"] != STOPPED:
            fault = f": {answer['fault']}" if answer["fault"] else ""
            self.say(f"{answer['seconds']:6.1f} s  {answer['out']}{fault}")
        return answer

    def write(self) -> None:
        """Write the finished runs into crates; a full one stays as it is."""
        with self.lock:
            runs = [Path(job["out"]) for job in self.done if job["command"] == "train"]
            times = {"site": self.site, "jobs": list(self.answers), "seconds": time.monotonic() - self.began}
        (self.out / "times.json").write_text(json.dumps(times))
        bins: list[list[Path]] = [[]]
        filled = 0.0
        for run in runs:
            size = sum(map(len, crate.contents(run).values())) / 3  # zipped, runs are a third or less
            if filled + size > LARGEST and bins[-1]:
                bins, filled = [*bins, []], 0.0
            bins[-1].append(run)
            filled += size
        for i, each in enumerate(bins, 1):
            if each and self.packed.get(i) != len(each):
                crate.pack(self.out / f"crate-{i:02}.zip", each)
                self.packed[i] = len(each)


def _read(folder: Path, name: str) -> bytes:
    return (folder / name).read_bytes()


def _finished(job: dict) -> bool:
    """Whether a job's result and its record exist: the record is written last."""
    out = Path(job["out"])
    return out.is_file() and record_path(out).is_file()
