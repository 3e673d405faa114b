"""The trial of a method from outside, before it trains: the contracts of every method, on a problem of seconds.

State outside the learner, as in a module's list or torch's own generator, is lost with a process. So a killed training
is resumed in a process that was forked before anything trained.
"""

import dataclasses
import inspect
import io
import json
import math
import random
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from clpapers.catalogue import methods
from clpapers.provenance import Refusal
from clpapers.runs import learners, loop, process
from clpapers.runs.checkpoint import Checkpoint
from clpapers.runs.learner import Learner, Observed
from clpapers.runs.scenario import scenario
from clpapers.streams import orders
from clpapers.streams.stream import Stream

CPU, RESULT = torch.device("cpu"), "run.json"
T = TypeVar("T")
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


class Broken(Refusal):
    """A method breaks a contract; one line: file, line, fault, remedy."""


@dataclasses.dataclass
class Problem:
    """A small problem for a method: its cell, data, and a stream a seed."""

    learner: type[Learner]
    spec: dict
    data: loop.Data
    streams: dict[int, Stream]

    def train(self, *seeds: int, kept: Checkpoint | None = None) -> list[str]:
        """The result of each of some seeds, or of all.

        They form a stack where the learner allows it. kept: where to save half-way, or to go on from.
        """
        process.prepare(CPU, self.spec["precision"])
        data, spec, results = self.data, self.spec, []
        streams = (self.streams[seed] for seed in seeds or self.streams)
        each = [scenario(spec, stream, data.train_y, data.test_y, data.classes) for stream in streams]
        with redirect_stderr(io.StringIO()):  # a checkpoint's word is told as a contract
            for stack in [each] if self.learner.stackable else [[one] for one in each]:
                course = loop.Course(spec, data, stack, CPU, kept)
                for taken in course.steps():
                    if kept is not None and not kept.resumed and stack[0] is each[0] and taken == course.count // 2:
                        course.save(kept)
                results += course.results()
        return [json.dumps(result) for result in results]


def contracts(file: Path) -> Iterator[str]:
    """Try the method of a file; yields a line a contract that it keeps. Raises `Broken` for the first other."""
    method = methods.read(file)
    learner = within(file, "reading it", lambda: learners.find(method.name, str(file)))
    _takes(file, learner, method)
    options = {option: rules["default"] for option, rules in method.options.items()}
    spec = _cell(file, method.with_options(options), {"name": method.name, "file": str(file), **options})
    if spec is None:
        yield f"{file}: not tried: no small problem has what it needs"
        return
    data = _data(max(SIDE, method.image_sides * math.ceil(SIDE / method.image_sides)))
    pixels, classes = data.train_x[0].size, data.classes
    streams = {seed: orders.make(spec["order"], data.train_y, seed, pixels, None, classes) for seed in range(2)}
    problem = Problem(learner, spec, data, streams)
    with (
        tempfile.TemporaryDirectory() as folder,
        process.Apart(lambda: _alone(file, problem)) as alone,
        process.Apart(lambda: _resumed(file, problem, Path(folder, RESULT))) as resumed,
    ):
        if learner.stackable:
            alone.begin()
        kept = Checkpoint(Path(folder, RESULT), {})
        with _answering(file, learner, data.classes):
            first = within(file, "learning", lambda: problem.train(kept=kept))
        resumed.begin()
        yield f"{file}: it learns {len(streams)} streams of {len(data.train_y)} items"
        steps = [step for each in first if (step := json.loads(each)["diverged"]) is not None]
        if steps:
            rate = spec["budget"]["learning_rate"]
            yield f"{file}: its loss is no finite number from step {min(steps)} on there, at a learning rate of {rate}"
        if within(file, "learning again", problem.train) != first:
            raise Broken(
                f"{file}: twice trained alike, it ends otherwise; draw from clpapers.randomness.generator alone"
            )
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
            remedy = "keep all that it needs in attributes of it, and draw from clpapers.randomness.generator alone"
            raise Broken(f"{file}: killed and gone on with in another process, it ends otherwise; {remedy}")
        yield f"{file}: killed and gone on with, it ends in the same bytes"


def _alone(file: Path, problem: Problem) -> list[str]:
    """The result of each seed alone."""
    return within(file, "learning one seed", lambda: [problem.train(seed)[0] for seed in problem.streams])


def _resumed(file: Path, problem: Problem, result: Path) -> list[str]:
    """The results of a training that goes on from its checkpoint, whatever the state of the process is."""
    torch.rand(1), np.random.rand(1), random.random()
    return within(file, "going on after a kill", lambda: problem.train(kept=Checkpoint(result, {})))


def within(file: Path, doing: str, work: Callable[[], T]) -> T:
    """Do `work`; raises its error as one line, with the last line of the method's file in its traceback.

    Where that has none, the error is of how the method's class was made.
    """
    try:
        return work()
    except Broken:
        raise
    except Exception as error:
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


@contextmanager
def _answering(file: Path, learner: type[Learner], classes: int) -> Iterator[None]:
    """Inside, a step that answers with anything but an `Observed` of the right shapes is refused."""
    observe = learner.observe
    if observe is Learner.observe:
        line = inspect.getsourcelines(learner)[1]
        raise Broken(f"{file}:{line}: {learner.__name__} has no observe; write observe(self, t, x, y), one step")
    where = f"{file}:{observe.__code__.co_firstlineno}: observe returns"

    def checked(self: Learner, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        observed = observe(self, t, x, y)
        if not isinstance(observed, tuple) or len(observed) != len(Observed._fields):
            raise Broken(f"{where} {type(observed).__name__}; return Observed(loss, logits)")
        shapes = (len(self.setting.seeds),), None if y is None else (*y.shape, classes)
        for name, given, shape in zip(Observed._fields, observed, shapes):
            if given is not None and (not isinstance(given, torch.Tensor) or given.shape != shape):
                found = list(given.shape) if isinstance(given, torch.Tensor) else type(given).__name__
                wanted = f"{list(shape)} or None" if shape else "None"
                raise Broken(f"{where} {name} of {found}; there are {len(self.setting.seeds)} seeds, return {wanted}")
        return observed

    learner.observe = checked  # type: ignore[method-assign]
    try:
        yield
    finally:
        learner.observe = observe  # type: ignore[method-assign]


def _takes(file: Path, learner: type[Learner], method: methods.Method) -> None:
    """Refuse a class that does not take its declared options by name, or that requires others."""
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
    oracle = "chunks" if {"changes", "tasks"} & {*method.uses} else "none"
    spec: dict = {
        "dataset": "tiny",
        "order": {"name": "split"},
        "oracle": {"name": oracle},
        "restriction": {"train": "none"},
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
