"""The trial of a method from outside, before it trains: the contracts of every method, on a problem of seconds.

State outside the learner, as in a module's list or torch's own generator, is lost with a process. So a killed training
is resumed in a process that was forked before anything trained.
"""

import dataclasses
import functools
import inspect
import io
import json
import math
import os
import random
import signal
import site
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

import numpy as np
import torch

from clpapers.catalogue import methods
from clpapers.provenance import PACKAGE
from clpapers.runs import learners, loop, process
from clpapers.runs.checkpoint import Checkpoint
from clpapers.runs.contracts import Broken, location
from clpapers.runs.learner import Learner
from clpapers.runs.method import Method, OneSeed
from clpapers.runs.scenario import scenario
from clpapers.streams import orders
from clpapers.streams.stream import Stream

CPU, RESULT = torch.device("cpu"), "run.json"
T = TypeVar("T")
LONGEST = 60  # seconds of a step
CLASSES, SIDE, ITEMS = 4, 8, 15  # of the problem: its classes, pixels of a side at least, training items a class
# Parts of a cell that a method may need (`catalogue.Method.needs`), by name.
NETS: dict[str, dict] = {
    "mlp": {"hidden": [16]},
    "cnn": {"width": 3},
    "resnet18_reduced": {"width": 2, "head": "linear"},
    "exstream_mlp": {"hidden": [16, 12], "batch_norm": True, "dropout": 0.0},
}
TASKS: dict = {"tasks": 2, "length": None}
ORDERS: dict[str, dict] = {
    "split": TASKS,
    "permuted_pixels": TASKS,
    "random": {"length": None},
    "stf": {"mu_sigma": 0.05, "length": None},
}
ORACLES: dict[str, dict] = {"chunks": {}, "none": {}, "split": {"tasks": 2, "aligned": True}}


class Late(Exception):
    """A step that takes too long."""


@dataclasses.dataclass
class Problem:
    """A small problem for a method: its cell, data, and a stream a seed."""

    learner: type[Learner]
    spec: dict
    data: loop.Data
    streams: dict[int, Stream]

    def train(self, *seeds: int, saved: Checkpoint | None = None, course: type[loop.Course] = loop.Course) -> list[str]:
        """The result of each of some seeds, or of all.

        They form a stack where the learner allows it. saved: where to save half-way, or to go on from.
        """
        process.prepare(CPU, self.spec["precision"])
        data, spec, results = self.data, self.spec, []
        streams = (self.streams[seed] for seed in seeds or self.streams)
        each = [scenario(spec, stream, data.train_y, data.test_y, data.classes) for stream in streams]
        with redirect_stderr(io.StringIO()):  # a checkpoint's word is told as a contract
            for stack in [each] if self.learner.stackable else [[one] for one in each]:
                way = course(spec, data, stack, CPU, saved)
                for taken in _in_time(way.steps()):
                    if saved is not None and not saved.resumed and stack[0] is each[0] and taken == way.count // 2:
                        way.save(saved)
                results += way.results()
        return [json.dumps(result) for result in results]


def contracts(file: Path) -> Iterator[str]:
    """Try the method of a file; yields a line a contract that it keeps. Raises `Broken` for the first other."""
    _reading().watched = file
    try:
        yield from _contracts(file)
    finally:
        _reading().watched = None


def _contracts(file: Path) -> Iterator[str]:
    method = methods.read(file)
    learner = within(file, "reading it", lambda: learners.find(method.name, str(file)))
    _takes(file, learners.written(method.name, str(file)), method)
    options = {option: rules["default"] for option, rules in method.options.items()}
    spec = _cell(file, method.with_options(options), {"name": method.name, "file": str(file), **options})
    if spec is None:
        yield f"{file}: not tried: no small problem has what it needs"
        return
    data = _data(max(SIDE, method.image_sides * math.ceil(SIDE / method.image_sides)))
    pixels, classes = data.train_x[0].size, data.classes
    streams = {seed: orders.make(spec["order"], data.train_y, seed, pixels, None, classes) for seed in range(2)}
    problem = Problem(learner, spec, data, streams)
    source = "torch, NumPy and Python's random" if learner is OneSeed else "clpapers.randomness.generator"
    with (
        tempfile.TemporaryDirectory() as folder,
        process.Apart(lambda: _alone(file, problem)) as alone,
        process.Apart(lambda: _resumed(file, problem, Path(folder, RESULT))) as resumed,
    ):
        if learner.stackable:
            alone.begin()
        kept, before = Checkpoint(Path(folder, RESULT), {}), os.getcwd()
        first = within(file, "learning", lambda: problem.train(saved=kept))
        resumed.begin()
        if os.getcwd() != before:
            os.chdir(before)
            raise Broken(f"{file}: it changes the working folder; give functions whole paths instead")
        yield f"{file}: it learns {len(streams)} streams of {len(data.train_y)} items"
        steps = [step for each in first if (step := json.loads(each)["diverged"]) is not None]
        if steps:
            rate = spec["budget"]["learning_rate"]
            yield f"{file}: its loss is no finite number from step {min(steps)} on there, at a learning rate of {rate}"
        if within(file, "learning again", lambda: problem.train(course=_Twice)) != first:
            remedy = f"draw from {source} alone, keep its state in attributes of it, and learn in observe alone"
            raise Broken(f"{file}: trained again, and tested twice as often, it ends otherwise; {remedy}")
        yield f"{file}: twice the same bytes"
        if learner.stackable:
            if not all(_equal(json.loads(one), json.loads(other)) for one, other in zip(alone.result(), first)):
                remedy = 'keep the first axis apart, or declare "stackable": False'
                raise Broken(f"{file}: a seed depends on those beside it; {remedy}")
            yield f"{file}: a seed alone is as it is beside others"
        if kept.told:
            yield f"{file}: a killed run of it starts over: {kept.told}"
            return
        if resumed.result() != first:
            remedy = f"keep all that it needs in attributes of it, and draw from {source} alone"
            raise Broken(f"{file}: killed and gone on with in another process, it ends otherwise; {remedy}")
        yield f"{file}: killed and gone on with, it ends in the same bytes"


def _alone(file: Path, problem: Problem) -> list[str]:
    """The result of each seed alone."""
    return within(file, "learning one seed", lambda: [problem.train(seed)[0] for seed in problem.streams])


def _resumed(file: Path, problem: Problem, result: Path) -> list[str]:
    """The results of a training that goes on from its checkpoint, whatever the state of the process is."""
    torch.rand(1), np.random.rand(1), random.random()
    return within(file, "going on after a kill", lambda: problem.train(saved=Checkpoint(result, {})))


def within(file: Path, doing: str, work: Callable[[], T]) -> T:
    """Do `work`; raises its error as one line, with the last line of the method's file in its traceback.

    Where that has none, the error is of how the method's class was made.
    """
    try:
        return work()
    except Broken:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == file]
        reason = str(error).partition("\n")[0] or f"in {frames[-1].name} of {Path(frames[-1].filename).name}"
        line, owner = getattr(error, "lineno", None) or (lines or [None])[-1], getattr(error, "obj", None)
        if isinstance(owner, Learner):
            kind = type(owner)
            line = line or inspect.getsourcelines(kind.__init__ if "__init__" in vars(kind) else kind)[1]
            if not hasattr(owner, "setting"):
                reason += "; call super().__init__(setting) first"
        raise Broken(f"{file}:{line or 1}: {doing}: {type(error).__name__}: {reason}") from None


def _in_time(steps: Iterable[T]) -> Iterator[T]:
    """The steps of a training. Raises `Broken`, with the place at which it is, for one that takes too long."""

    def late(number: int, frame: FrameType | None) -> NoReturn:
        raise Late(f"a step has not ended within {LONGEST} s; end it, or shorten it")

    signal.signal(signal.SIGALRM, late)
    try:
        signal.alarm(LONGEST)
        for taken in steps:
            yield taken
            signal.alarm(LONGEST)
    finally:
        signal.alarm(0)


class _Twice(loop.Course):
    """A course on which each test batch is asked about twice, and beside other images; other answers are refused."""

    def learner(self) -> Learner:
        learner = super().learner()
        ask = learner.scores
        answering = type(learner.method).predict if isinstance(learner, OneSeed) else type(learner).scores

        def twice(x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
            first, again = (ask(each, tasks) for each in (x.clone(), x))
            if not torch.equal(first.nan_to_num(nan=0.5), again.nan_to_num(nan=0.5)):
                fault = f"asked twice, {answering.__name__} answers otherwise"
                raise Broken(f"{location(answering)}: {fault}; learn in observe, and let a test change nothing")
            half = x.shape[1] // 2
            others = x.clone()  # of one memory format, so that draws like it are alike
            others[:, half:].neg_()
            beside = ask(others, tasks)[:, :half]
            if not torch.allclose(beside, again[:, :half], rtol=1e-6, equal_nan=True):
                fault = f"{answering.__name__} answers an image otherwise beside other images"
                raise Broken(f"{location(answering)}: {fault}; let a score depend on its own image alone")
            return again

        learner.scores = twice  # type: ignore[method-assign]
        return learner


class _Reading:
    """Refuses files that the code of a method opens to read, except files of installed packages and of the system.

    A method's file is copied without its neighbours. `watched` is the file that is tried, if one is.
    """

    watched: Path | None = None
    others = sys.prefix, sys.base_prefix, site.getusersitepackages(), str(PACKAGE), "/proc", "/sys", "/dev", "/etc"

    def __call__(self, event: str, args: tuple) -> None:
        """An audit hook of Python."""
        file = self.watched
        if event != "open" or file is None or not isinstance(args[0], str) or "r" not in (args[1] or ""):
            return
        opened, frame = Path(args[0]).absolute(), inspect.currentframe()
        while frame is not None and frame.f_code.co_filename != str(file):
            frame = frame.f_back
        if frame is None or opened == file or any(map(opened.is_relative_to, self.others)):
            return
        if opened.is_relative_to(file.parent) or opened.suffix not in (".py", ".pyc"):
            remedy = "the file is copied alone: put what it needs into it, or into an installed package"
            raise Broken(f"{file}:{frame.f_lineno}: it reads {opened}; {remedy}")


@functools.cache
def _reading() -> _Reading:
    """The one hook, which no process can remove again."""
    sys.addaudithook(hook := _Reading())
    return hook


def _takes(file: Path, learner: type[Learner] | type[Method], method: methods.Method) -> None:
    """Refuse a class without a step, one that does not take its options by name, and one that requires others."""
    if learner.observe in (Learner.observe, Method.observe):
        form = "self, x, y" if issubclass(learner, Method) else "self, t, x, y"
        line = inspect.getsourcelines(learner)[1]
        raise Broken(f"{file}:{line}: {learner.__name__} has no observe; write observe({form}), one step")
    given = inspect.signature(learner.__init__).parameters.values()
    named = {each.name for each in given if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)}
    needed = {each.name for each in given if each.kind == each.KEYWORD_ONLY and each.default is each.empty}
    line = inspect.getsourcelines(learner)[1]
    for option in sorted(needed - method.options.keys()):
        raise Broken(f"{file}:{line}: {learner.__name__} takes {option!r}, which its declaration has not; add it there")
    if any(each.kind == each.VAR_KEYWORD for each in given):
        return
    for option in sorted(method.options.keys() - named):
        raise Broken(f"{file}:{line}: {learner.__name__} does not take {option!r}, which is declared; take it by name")
    if issubclass(learner, Method):
        return
    if learner.task_change is not Learner.task_change and "changes" not in method.uses and not _silent(learner):
        raise Broken(
            f'{file}:{line}: {learner.__name__} has a task_change that is never called; declare "uses": ["changes"]'
        )


def _silent(learner: type[Learner]) -> bool:
    """Whether a class's `task_change` does nothing, as in the file that `clpapers new method` writes."""
    code = learner.task_change.__code__
    return not code.co_names and set(code.co_consts) <= {None, learner.task_change.__doc__}


def _cell(file: Path, method: methods.Method, learner: dict) -> dict | None:
    """A small cell that meets the method's needs; None where there is none."""
    oracle = "chunks" if {"changes", "tasks", "competing"} & {*method.uses} else "none"
    spec: dict = {
        "dataset": "tiny",
        "order": {"name": "split"},
        "oracle": {"name": oracle},
        "restriction": {"train": "oracle" if "competing" in method.uses else "none"},
        "learner": learner,
        "net": {"name": "mlp"},
        "budget": {"optimizer": "sgd", "learning_rate": 0.1, "batch": 5, "replay_batch": 4, "memory": 20},
        "scaling": "symmetric",
        "evaluation": {"points": 2, "probes": 10, "test": None, "oracles": {}},
        "precision": "float64",
    }
    for key, values in method.needs.items():
        part, _, option = key.partition(".")
        supported = {"net": NETS, "order": ORDERS, "oracle": ORACLES}.get(part, {}) if option == "name" else {}
        fit = [value for value in values if not supported or value in supported]
        if not fit:
            return None
        if option:
            spec[part] = spec[part] | {option: fit[0]}
        else:
            spec[part] = fit[0]
    for part, supported in (("net", NETS), ("order", ORDERS), ("oracle", ORACLES)):
        spec[part] = supported[spec[part]["name"]] | spec[part]
    if spec["order"]["name"] not in ("split", "permuted_pixels") and spec["oracle"]["name"] == "chunks":
        spec["oracle"] = {"name": "none"}
    if spec["oracle"]["name"] == "none":
        spec["restriction"] = {"train": "none"}
    return spec


def _data(side: int) -> loop.Data:
    """Four classes of noisy colour prototypes, sorted by label."""
    rng = np.random.default_rng(0)
    prototypes = rng.integers(40, 215, (CLASSES, side, side, 3))

    def split(per_class: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.repeat(np.arange(CLASSES), per_class)
        return (prototypes[y] + rng.normal(0, 30, (len(y), side, side, 3))).clip(0, 255).astype(np.uint8), y

    return loop.Data(*split(ITEMS), *split(6), classes=CLASSES)


def _equal(one: dict, other: dict) -> bool:
    """Whether two results of a seed are equal but for the last digits of losses, and for what follows a divergence."""
    online, until = [each.pop("online") for each in (one, other)], one["diverged"]
    first, second = (np.array((each["loss"] or [])[:until], dtype=float) for each in online)
    losses = len(first) == len(second) and np.allclose(first, second, rtol=1e-5)
    answers = [each["correct"] and each["correct"][:until] for each in online]
    rest = one == other if until is None else one["diverged"] == other["diverged"]
    return bool(losses and answers[0] == answers[1] and rest)
