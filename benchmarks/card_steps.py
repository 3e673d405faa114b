"""Steps on a GPU, on noise: times by net, precision and stack, by graphs and not; launches, waits, processes abreast.

    python benchmarks/card_steps.py [SECTION …] [--minutes 4] [--out DIR] [--rehearse]

A section is a name in `SECTIONS`; they run in that sequence, all by default. Each number is printed as it is measured.
A failure is printed too, and the next one goes on. None begins after `--minutes`. `--out` takes them as JSON.
`--rehearse` goes through all sections with few steps, on a CPU too. It needs this folder, PyTorch, NumPy and their
dependencies.
"""

import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import numpy as np
import torch

from clpapers.runs import learners, loop, process
from clpapers.runs.cuda_graphs import SWITCH, Steps, recorders
from clpapers.runs.images import Images
from clpapers.runs.scenario import scenario
from clpapers.streams.orders import NO_TRANSFORMS
from clpapers.streams.stream import Stream

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NETS = {  # net, images, classes, batch
    "R20": ({"name": "resnet18_reduced", "width": 20, "head": "linear"}, (32, 32, 3), 10, 10),
    "MLP": ({"name": "mlp", "hidden": [256, 256]}, (28, 28, 1), 10, 10),
    "R18": (
        {"name": "resnet18", "width": 64, "pool": False, "head": "linear", "weights": "none"},
        (32, 32, 3),
        100,
        10,
    ),
    "R64": ({"name": "resnet18_reduced", "width": 64, "head": "linear"}, (32, 32, 3), 100, 128),
}
LEARNERS = {
    "single": {},
    "er": {"forward": "joint"},
    "mir": {"candidates": 50, "forward": "joint"},
    "gmed": {"decay": 0.0, "sign": "paper", "forward": "joint", "alpha": 0.2, "beta": 0.001},
    "ace": {"forward": "joint"},
    "cbrs": {"replay": "uniform", "forward": "joint"},
    "gdumb": {"memory_batch": 10},
    "ewc": {"strength": 1.0, "gamma": 0.9, "fisher": "last_batch", "normalise": False, "half": True},
    "si": {"strength": 0.1, "damping": 0.1, "gradient": "whole", "clip": False},
    "mas": {"strength": 0.1, "per": "batch", "reset": True},
    "rwalk": {"strength": 0.1, "damping": 0.001, "interval": 10, "decay": 0.9, "published": False},
    "a_gem": {"write": "uniform"},
}
OF_TASKS = {"ewc", "si", "mas", "rwalk", "a_gem"}
CHANGE = 10  # the step before which the task changes, for them
WARM, TURNS, TURN = 20, 5, 0.1  # steps beforehand; turns of so many seconds, whose median counts
ITEMS, MEMORY = 2000, 500

began = time.monotonic()
given = argparse.Namespace(rehearse=False, minutes=4.0)
found: dict[str, object] = {}


def say(label: str, value: object) -> None:
    """Print a number and keep it."""
    found[label] = value
    print(f"{time.monotonic() - began:6.1f} s  {label}: {value}", flush=True)


def late() -> bool:
    """Whether nothing more is to begin."""
    return time.monotonic() - began > 60 * given.minutes


def attempt(label: str, measure: Callable, *told: object, **options: object) -> object:
    """The result of `measure` for these arguments, printed; None where it fails or it is late."""
    if late():
        print("  late  ", label, flush=True)
        return None
    try:
        value = measure(*told, **options)
    except Exception as error:
        say(label, f"FAILED {type(error).__name__}: {str(error)[:200]}")
        traceback.print_exc(limit=-3)
        return None
    finally:
        if DEVICE.type == "cuda":
            torch.cuda.empty_cache()
    say(label, value)
    return value


def wait() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


class Course:
    """Steps of a stack on noise, in turn: `step()` takes the next one."""

    def __init__(self, net: str, learner: str, seeds: int = 1, precision: str = "float32", *, graphs: bool, steps: int):
        spec, shape, classes, batch = NETS[net]
        spec = spec | ({"width": 2} if given.rehearse and "width" in spec else {})
        cell = {
            "dataset": "noise",
            "order": {"name": "random", "length": None},
            "oracle": {"name": "chunks" if learner in OF_TASKS else "none"},
            "restriction": {"train": "none"},
            "learner": {"name": learner} | LEARNERS[learner],
            "net": spec,
            "budget": {
                "optimizer": "sgd",
                "learning_rate": 0.01,
                "batch": batch,
                "replay_batch": 256 if learner == "a_gem" else 10,
                "memory": MEMORY,
            },
            "scaling": "symmetric",
            "evaluation": {"points": 1, "probes": 1, "test": None, "oracles": {}},
            "precision": precision,
        }
        rng = np.random.default_rng(0)
        x, y = rng.integers(0, 256, (ITEMS, *shape), dtype=np.uint8), rng.integers(0, classes, ITEMS)
        n, edges = steps * batch, np.array([CHANGE * batch] if learner in OF_TASKS else [], dtype=np.int64)
        streams = [
            Stream(rng.integers(0, ITEMS, n), np.arange(n) / n, np.empty((0, 4)), edges, NO_TRANSFORMS, seed)
            for seed in range(seeds)
        ]
        process.prepare(DEVICE, precision)
        images = Images(x, cell["scaling"], DEVICE, torch.float32)
        gone = [scenario(cell, each, y, y[:1], classes) for each in streams]
        setting = loop.setting_of(cell, loop.Data(x, y, x[:1], y[:1], classes), gone, images)
        self.learner, self.changes, self.t = learners.create(cell["learner"], setting), gone[0].changes, 0
        self.take = Steps(self.learner, self.changes, recorders(DEVICE) if graphs else None)
        self.steps = len(setting.ends)

    def step(self) -> object:
        t = self.t
        if t == self.steps:
            raise IndexError(f"there are {t} steps")
        if self.changes[t]:
            self.learner.task_change(t)
        self.t += 1
        return self.take(t)

    def go(self, count: int) -> float:
        """Take some steps; returns milliseconds a step."""
        wait()
        start = time.perf_counter()
        for _ in range(count):
            self.step()
        wait()
        return (time.perf_counter() - start) / count * 1e3


def milliseconds(net: str, learner: str, seeds: int = 1, precision: str = "float32", *, graphs: bool) -> float:
    """The median milliseconds of a step."""
    warm, turn = (12, 0.0) if given.rehearse else (WARM, TURN)
    steps = warm + TURNS * 2 if given.rehearse else 2500
    course = Course(net, learner, seeds, precision, graphs=graphs, steps=steps)
    course.go(warm - 2)
    count = min(max(int(turn / course.go(2) * 1e3), 2), (steps - warm) // TURNS)
    return round(statistics.median(course.go(count) for _ in range(TURNS)), 4)


def pair(net: str, learner: str, seeds: int = 1, precision: str = "float32") -> None:
    """A step without graphs and with."""
    name = f"ms a step, {net} {learner} {precision} S={seeds}"
    eager = attempt(f"{name}, eager", milliseconds, net, learner, seeds, precision, graphs=False)
    graph = attempt(f"{name}, graph", milliseconds, net, learner, seeds, precision, graphs=True)
    if eager and graph:
        say(f"{name}, factor", round(eager / graph, 2))


def steps() -> None:
    """Nets and learners, one seed, eager against graph."""
    for net, learner in (("R20", "er"), ("MLP", "er"), ("R20", "mir"), ("R20", "gmed"), ("R64", "single")):
        pair(net, learner)
    pair("R20", "er", precision="tf32")
    pair("R64", "single", precision="tf32")
    for net, learner in (("R18", "er"), ("R20", "ewc"), ("R20", "a_gem"), ("MLP", "ewc"), ("MLP", "a_gem")):
        pair(net, learner)
    for learner in ("single", "ace", "cbrs", "gdumb", "si", "mas", "rwalk"):
        pair("R20", learner)


def bits() -> None:
    """Whether parameters are the same bits after steps with graphs and without."""

    def same(net: str, learner: str) -> bool:
        count, ends = 16 if given.rehearse else 60, []
        for graphs in (False, True):
            course = Course(net, learner, graphs=graphs, steps=count)
            course.go(count)
            ends.append([value.clone() for value in course.learner.net.state_dict().values()])
        return all(one.equal(other) for one, other in zip(*ends))

    of_replay = [("R20", learner) for learner in ("er", "mir", "gmed")]
    for net, learner in (*of_replay, *((net, each) for net in ("R20", "MLP") for each in sorted(OF_TASKS))):
        attempt(f"same bits, {net} {learner}", same, net, learner)


def stacks() -> None:
    """A stack's step against the steps of its seeds one after the other, with graphs."""
    sizes = (("MLP", "er", (5, 20)), ("R20", "er", (5, 20)), ("R64", "single", (3,)), ("R18", "er", (3,)))
    for precision in ("float32", "tf32"):
        for net, learner, seeds in sizes:
            name = f"ms a step, {net} {learner} {precision}"
            alone = attempt(f"{name}, S=1", milliseconds, net, learner, 1, precision, graphs=True)
            for s in seeds:
                whole = attempt(f"{name}, the stack of {s}", milliseconds, net, learner, s, precision, graphs=True)
                if alone and whole:
                    say(f"{name}, gain of the stack of {s}", round(s * alone / whole, 2))


def launches() -> None:
    """Kernels and copies a step, their time, and steps that wait for the GPU, by learner, without graphs."""
    from torch.profiler import ProfilerActivity, profile

    def launches_of(learner: str) -> str:
        course = Course("R20", learner, graphs=False, steps=60)
        course.go(30 if DEVICE.type == "cuda" else 12)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            if DEVICE.type == "cuda":
                torch.cuda.set_sync_debug_mode("warn")
            try:
                for _ in range(5):
                    course.step()
            finally:
                if DEVICE.type == "cuda":
                    torch.cuda.set_sync_debug_mode("default")
        waits = collections.Counter(
            f"{Path(each.filename).name}:{each.lineno}" for each in told if "synchroniz" in str(each.message)
        )
        kind = ProfilerActivity.CUDA if DEVICE.type == "cuda" else ProfilerActivity.CPU
        with profile(activities=[kind]) as profiled:
            course.go(5)
        wanted = torch.autograd.DeviceType.CUDA if DEVICE.type == "cuda" else torch.autograd.DeviceType.CPU
        events = [each for each in profiled.events() if each.device_type == wanted]
        busy = sum(getattr(each, "device_time", 0) or 0 for each in events) / 5e3
        return f"{len(events) / 5:.0f} kernels and copies, {busy:.2f} ms; waits in five steps: {dict(waits)}"

    for learner in LEARNERS:
        attempt(f"a step, R20 {learner}", launches_of, learner)


def work(learner: str, net: str, seeds: int, seconds: float, start: float) -> None:
    """One of several processes: steps a second, of all its seeds, from a moment on."""
    course = Course(net, learner, seeds, graphs=os.environ.get(SWITCH) != "0", steps=60_000 if net == "MLP" else 8_000)
    course.go(2 if given.rehearse else WARM)
    while time.time() < start:
        time.sleep(0.002)
    count, until = 0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        course.go(1 if given.rehearse else 10)
        count += 1 if given.rehearse else 10
    print(json.dumps(count * seeds / (time.perf_counter() - until + seconds)))


def abreast(learner: str, net: str, count: int, seeds: int, graphs: bool, environment: dict) -> str:
    """Steps a second of some processes side by side."""
    seconds = 0.5 if given.rehearse else 3.0
    start = time.time() + (15 if given.rehearse else 11 + 0.4 * count)
    told = [sys.executable, __file__, "--worker", learner, net, str(seeds), str(seconds), str(start)]
    told += ["--rehearse"] if given.rehearse else []
    environment = environment | {SWITCH: "1" if graphs else "0"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    jobs = [subprocess.Popen(told, env=environment, **pipes) for _ in range(count)]
    rates, errors = [], []
    for job in jobs:
        try:
            out, error = job.communicate(timeout=60 if given.rehearse else 45)
        except subprocess.TimeoutExpired:
            job.kill()
            out, error = "", "too late"
        rates += [float(out.strip().splitlines()[-1])] if job.returncode == 0 and out.strip() else []
        errors += [error[-200:]] if len(rates) + len(errors) < jobs.index(job) + 1 else []
    return f"{sum(rates):.0f} ({len(rates)} of {count} processes)" + (f" {errors[0]}" if errors else "")


def processes(environment: dict, name: str, cases: Sequence) -> None:
    """Steps a second of all seeds, by the number of processes."""
    for learner, net, count, seeds, graphs in cases[: 1 if given.rehearse else None]:
        label = f"steps a second, {name}, {count} × {net} {learner} S={seeds}, {'graph' if graphs else 'eager'}"
        attempt(label, abreast, learner, net, count, seeds, graphs, environment)


def mps() -> None:
    """Processes that share the card by MPS."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        daemon = "nvidia-cuda-mps-control"
        try:
            subprocess.run([daemon, "-d"], env=environment, check=True, capture_output=True, timeout=20)
        except (OSError, subprocess.SubprocessError) as error:
            say("MPS", f"FAILED {error}")
            if not given.rehearse:
                return
        try:
            cases = [("er", "R20", 12, 1, True), ("er", "R20", 4, 1, True), ("er", "R20", 4, 5, True)]
            processes(environment, "MPS", [*cases, ("er", "MLP", 12, 1, True), ("er", "R20", 12, 1, False)])
        finally:
            if found.get("MPS") is None:
                subprocess.run([daemon], input="quit\n", env=environment, text=True, timeout=30, check=False)


def turns() -> None:
    """Processes that take turns on the card."""
    processes(dict(os.environ), "turns", [("er", "R20", count, 1, True) for count in (4, 1)])


SECTIONS = {each.__name__: each for each in (bits, steps, stacks, launches, mps, turns)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--worker", nargs=5, metavar=("LEARNER", "NET", "SEEDS", "SECONDS", "START"))
    parser.parse_args(namespace=given)
    if unknown := {*given.sections} - {*SECTIONS}:
        parser.error(f"{', '.join(sorted(unknown))}: no section; there are {', '.join(SECTIONS)}")
    if given.worker:
        learner, net, seeds, seconds, start = given.worker
        work(learner, net, int(seeds), float(seconds), float(start))
        return
    card = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "none"
    say("card", card)
    say("versions", {"torch": torch.__version__, "CUDA": torch.version.cuda, "cuDNN": torch.backends.cudnn.version()})
    for name in given.sections or SECTIONS:
        try:
            SECTIONS[name]()
        except Exception as error:
            say(name, f"FAILED {type(error).__name__}: {error}")
        if given.out:
            given.out.mkdir(parents=True, exist_ok=True)
            (given.out / "card_steps.json").write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
