"""A rehearsal: the real loop over a cell's stream, shortened, with most of its steps and test batches left out.

It tells a run's cost at a small part of that cost: CPU seconds of founding, of a step, of a test and of a test item.
A method from outside may rely on every step before. So its stream is shortened further, and its first steps are all
taken, until they have taken long enough.
"""

import contextlib
import copy
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch

from clpapers.catalogue import methods
from clpapers.runs import cuda_graphs, loop
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner, Observed
from clpapers.runs.scenario import Scenario
from clpapers.streams.stream import Stream

STEPS, LEAST = 300, 10_000  # a stream is cut down to so many steps of each task, but to no fewer items
ITEMS = 1300  # of a task, where a step is a whole task and its cost grows with the items
TEST_ITEMS = 500  # of a task: at least a batch as the loop has it
WHOLE = 6  # of a task, and six times as many at least, where all first steps are taken
MANY = 50  # tasks or task changes
SEGMENTS = 6  # the parts of a stream in which steps are taken
FEW = 3  # steps of a segment that are taken in any case, or one or two fewer where they take long
LONG = 10.0  # seconds of a rehearsal; one that is shorter is repeated with four repetitions, a longer one with two
EVENT = 5.0  # a step that takes so many times the median of its segment is something that happens once
APART = 0.005  # seconds: after a test or a test batch that took n times this, the next n are left out

T = TypeVar("T")


@dataclasses.dataclass
class Costs:
    """CPU seconds of a stack of seeds, and the size of the rehearsal.

    founding: all before the first step.
    step: a step, with its share of task changes.
    test: to prepare a test.
    item: to test an item.
    repeated: for each option that repeats work, by how many seconds each repetition lengthens a step and a test; `step`
        and `test` are without.
    seeds: of the stack.
    steps, tests, items: of the shortened stream.
    taken: the share of these steps that were not left out.
    """

    founding: float
    step: float
    test: float
    item: float
    repeated: dict[str, tuple[float, float]]
    seeds: int
    steps: int
    tests: int
    items: int
    taken: float


def rehearse(cell: dict, data: loop.Data, streams: dict[int, Stream], seconds: float = 3.0) -> Costs:
    """Rehearse the first stack that a cell's seeds form, on a CPU.

    seconds: how long to take steps, roughly; in each segment a few are taken, however long they last. A method from
    outside takes one at least. For each option that repeats work (`Method.repeats`) there is another rehearsal. The
    other arguments are as of `loop.train`.
    """
    method, began = methods.method_of(cell["learner"]), time.process_time()
    cell, streams, share = _cut(cell, streams)
    options = cell["learner"]
    repeats = [path for path in method.repeats if _get(options, path) is not None]
    for path in repeats:
        _put(options, path, 1)
    found = _once(cell, data, streams, seconds, share)
    more = 2 if time.process_time() - began > LONG else 4
    if method.grows and found.taken < 1 and "file" not in options:
        less = _once(cell, data, streams, seconds / 3, share)
        beyond = (1 - found.taken) / max(found.taken - less.taken, 1 / found.steps)
        for key in ("step", "test", "item"):
            value = getattr(found, key)
            setattr(found, key, max(value + beyond * (value - getattr(less, key)), value))
    for path in repeats:
        _put(options, path, more)
        longer = _once(cell, data, streams, seconds, share)
        _put(options, path, 1)
        step, test = (max(getattr(longer, key) - getattr(found, key), 0.0) / (more - 1) for key in ("step", "test"))
        found.repeated[path] = step, test
    found.step = max(found.step - sum(step for step, _ in found.repeated.values()), 0.0)
    found.test = max(found.test - sum(test for _, test in found.repeated.values()), 0.0)
    return found


def _cut(cell: dict, streams: dict[int, Stream]) -> tuple[dict, dict[int, Stream], float]:
    """A cell with fewer test items and its streams with fewer steps of each task.

    Where a step is a whole task and options count its items, steps are shortened instead, and the options with them:
    to a share of the items, which is returned.
    """
    method, cell, first = methods.method_of(cell["learner"]), copy.deepcopy(cell), next(iter(streams.values()))
    options, evaluation, batch = cell["learner"], cell["evaluation"], cell["budget"]["batch"]
    chunks, n, share = len(first.boundaries) + 1, len(first.indices), 1.0
    few = TEST_ITEMS * (1 if len(first.transforms) else min(chunks, MANY))
    evaluation["test"] = few if evaluation["test"] is None else min(evaluation["test"], few)
    if "file" in options and batch != "task":
        part = min(WHOLE * max(chunks, WHOLE) * batch / n, 1.0)
    elif batch != "task":
        part = min(max(STEPS * chunks * batch, LEAST) / n, 1.0)
    else:
        part = share = min(ITEMS * chunks / n, 1.0) if method.counts_items else 1.0
        for key in {*method.measures} & {*evaluation} if method.counts_items else ():  # items followed along a step
            evaluation[key] = max(round(evaluation[key] * share), 1)
    for path in method.counts_items:
        _put(options, path, max(round(_get(options, path) * share), 1) if batch == "task" else 2 * batch)
    return cell, {seed: _shortened(stream, part) for seed, stream in streams.items()}, share


def _once(cell: dict, data: loop.Data, streams: dict[int, Stream], seconds: float, share: float) -> Costs:
    began = time.process_time()
    data, stacks = loop.stacks(cell, data, streams, torch.device("cpu"))
    course = Rehearsal(cell, data, stacks[0], seconds)
    one = course.rehearsed
    for taken in course.steps():
        if one.all_first and one.steps.taken > seconds and taken < course.count:
            course.test_at_the_end()
            break
    ended = time.process_time()
    between = ended - one.founded - one.steps.taken - one.changing - one.testing
    return Costs(
        founding=one.founded - began,
        step=(one.steps.total() / course.count + (one.changing + between) / course.run.step) / share,
        test=one.mean_test(),
        item=_share(one.answering(), one.items) + _share(one.around, one.around_of),
        repeated={},
        seeds=len(stacks[0]),
        steps=course.count,
        tests=len(one.at),
        items=one.items,
        taken=sum(map(len, one.steps.spent.values())) / course.count,
    )


class Rehearsal(loop.Course):
    """A course whose learner is `rehearsed`, and whose test images are blank where a test is left out."""

    rehearsed: "Rehearsed"

    def __init__(self, cell: dict, data: loop.Data, scenarios: Sequence[Scenario], seconds: float):
        self.seconds = seconds
        super().__init__(cell, data, scenarios, torch.device("cpu"))

    def learner(self) -> Learner:
        method, ends = methods.method_of(self.cell["learner"]), self.setting.ends
        chunk = self.scenarios[0].stream.chunk[ends - 1]
        all_first = "file" in self.cell["learner"]
        self.rehearsed = Rehearsed(
            super().learner(), chunk, self.seconds, method.past_tasks_frozen, all_first=all_first
        )
        return self.rehearsed  # type: ignore[return-value]  # which stands in for one

    def tested(self, images: Images) -> Images:
        return _Sparing(images, self.rehearsed)

    def test_at_the_end(self) -> None:
        """Take the last step's tests after an earlier one."""
        self.rehearsed.t = self.count - 1
        self.evaluation.take(self.count - 1, self.run.clock)


def _share(amount: float, count: int) -> float:
    return amount / max(count, 1)


class _Sparing(Images):
    """Images that are zeros in a test that is left out."""

    def __init__(self, images: Images, rehearsed: "Rehearsed"):
        vars(self).update(vars(images))
        self.rehearsed = rehearsed

    def __call__(self, items: torch.Tensor) -> torch.Tensor:
        if self.rehearsed.taken:
            return super().__call__(items)
        return torch.zeros((), dtype=self.dtype).expand(*items.shape, *self.shape)


def _shortened(stream: Stream, share: float) -> Stream:
    """A stream of a share of each chunk's items, evenly spaced."""
    edges = [0, *stream.boundaries.tolist(), len(stream.indices)]
    parts = [np.linspace(a, b, max(round((b - a) * share), 1), endpoint=False, dtype=int) for a, b in pairwise(edges)]
    kept, boundaries = np.concatenate(parts), np.cumsum([len(part) for part in parts])[:-1]
    times = stream.timestamps[kept]
    return dataclasses.replace(stream, indices=stream.indices[kept], timestamps=times, boundaries=boundaries)


def _get(options: dict, path: str) -> Any:
    value: Any = options
    for part in path.split("."):
        value = value.get(part)
    return value


def _put(options: dict, path: str, value: object) -> None:
    *above, last = path.split(".")
    functools.reduce(dict.__getitem__, above, options)[last] = value


class Steps:
    """Chooses the steps to take, and estimates the cost of all.

    A segment is a task, or a part of the stream where there is one task or very many. The first steps of a segment are
    taken, and the last one; where this takes too long, of some segments only, evenly spaced.

    Parameters
    ----------
    chunk: int64 [T], ascending, the chunk of the stream that each step lies in.
    seconds: how long to take steps.
    """

    def __init__(self, chunk: np.ndarray, seconds: float):
        segment = np.unique(chunk, return_inverse=True)[1]
        if not 0 < segment[-1] < MANY:
            segment = np.arange(len(chunk)) * min(SEGMENTS, len(chunk)) // len(chunk)
        self.segment, self.sizes = segment, np.bincount(segment)
        self.starts = np.cumsum(self.sizes) - self.sizes
        count = len(self.sizes)
        chosen = np.unique(np.linspace(0, count - 1, min(SEGMENTS, count)).round().astype(int))
        self.spent: dict[int, list[float]] = {int(k): [] for k in chosen}  # seconds of steps, by segment
        self.seconds, self.allowed, self.taken = seconds, seconds / count, 0.0

    def takes(self, t: int) -> bool:
        """Whether step t is taken."""
        k = int(self.segment[t])
        place = t - self.starts[k]
        if not place and self.taken < self.allowed * k:
            self.spent.setdefault(k, [])
        if k not in self.spent:
            return False
        spent = self.spent[k]
        took = sum(spent)
        if place == self.sizes[k] - 1:
            return not place or took <= 5 * self.seconds
        few = FEW - (took > self.seconds) - (took > 5 * self.seconds)
        return len(spent) == place and (place < few or took < self.allowed)

    def note(self, t: int, seconds: float) -> None:
        """Note how long step t took."""
        self.spent[int(self.segment[t])].append(seconds)
        self.taken += seconds

    def total(self) -> float:
        """Seconds of all steps; a step's, and what happens once, are linear between the segments that were measured."""
        means, once = [], []
        measured = sorted(k for k, each in self.spent.items() if each)
        for k in measured:
            spent = np.array(self.spent[k])
            special = spent > EVENT * np.median(spent) if len(spent) < self.sizes[k] else np.zeros(len(spent), bool)
            ordinary = spent[~special]
            means.append(ordinary[1:].mean() if FEW < len(ordinary) < self.sizes[k] else ordinary.mean())
            once.append(spent[special].sum())
        segments = np.arange(len(self.sizes))
        return float(np.interp(segments, measured, means) @ self.sizes + np.interp(segments, measured, once).sum())


class Rehearsed:
    """A learner as the loop sees it in a rehearsal: it leaves steps and tests out, and notes the time of the others.

    It answers zeros to a test batch that it leaves out.

    Parameters
    ----------
    chunk, seconds: as of `Steps`.
    by_task: whether tests take longer, task by task; then batches of some tasks, the first and the last, are taken in
        any case.
    all_first: whether all steps are taken.
    """

    uses_batch = False  # a batch is gathered here, where its step is taken

    def __init__(
        self, learner: Learner, chunk: np.ndarray, seconds: float, by_task: bool = False, *, all_first: bool = False
    ):
        self.learner, self.steps, self.by_task, self.all_first = learner, Steps(chunk, seconds), by_task, all_first
        self.whole = all_first or learner.setting.budget["batch"] == "task"  # each step needs those before
        self.often = np.count_nonzero(learner.setting.changes) > MANY  # then a change is a part of the step
        self.changed = self.changing = self.testing = self.around = self.spent = 0.0  # seconds; spent: of answers
        self.items = self.around_of = self.tests_out = 0
        self.answers: dict[str, dict[int, Answers]] = {}  # of each kind of answer, by task
        self.tasks = {round(part * (learner.setting.task_count - 1) / 4) for part in range(5)} if by_task else set()
        self.at: list[int] = []  # of each test the last step before it
        self.prepared: dict[int, float] = {}  # of tests that are taken, by their number, seconds
        self.t = -1
        self.taken = False
        if hasattr(learner, "uncertainty"):
            self.uncertainty = lambda x: self._answer((0, x.shape[1]), x.shape[:2], learner.uncertainty, x)
        self.founded = time.process_time()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)

    def task_change(self, t: int) -> None:
        if not self.often:
            self.changing += _timed(self.learner.task_change, t)[0]
        elif self.all_first or self.steps.takes(t):
            self.changed = _timed(self.learner.task_change, t)[0]

    def observe(self, t: int, x: torch.Tensor | None, y: torch.Tensor | None) -> Observed:
        self.t = t
        if not (self.whole or self.steps.takes(t)):
            self.learner.mark_taken(t)
            return Observed()
        self.steps.spent.setdefault(int(self.steps.segment[t]), [])
        seconds, _ = _timed(self._learn, t)
        self.steps.note(t, seconds + self.changed)
        self.changed = 0.0
        return Observed()

    def _learn(self, t: int) -> None:
        cuda_graphs.observe(self.learner, t)

    def prepare(self) -> None:
        self.at.append(self.t)
        self.tests_out -= 1
        self.taken = self.tests_out < 0 or self.t == len(self.setting.ends) - 1
        if self.taken:
            self.preparing = _timed(self.learner.prepare)[0]

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        if not self.taken:
            began = time.process_time()
            yield
            self.testing += time.process_time() - began
            return
        began, within, items = time.process_time(), self.spent, self.items
        with self.learner.evaluation():
            entered = time.process_time()
            yield
            left = time.process_time()
        ended = time.process_time()
        self.around += left - entered - (self.spent - within)
        self.around_of += self.items - items
        self.prepared[len(self.at) - 1] = self.preparing + ended - left + entered - began
        self.testing += self.preparing + ended - began
        self.tests_out = int((self.preparing + ended - began) / APART) + len(self.at) % 2

    def mean_test(self) -> float:
        """Seconds to prepare a test, linear in the steps between those that were taken."""
        taken = [self.at[number] for number in self.prepared]
        return float(np.mean(np.interp(self.at, taken, list(self.prepared.values()))))

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        self.items += x.shape[1]
        task = int(tasks.max()) if self.by_task else 0
        return self._answer((task, x.shape[1]), (*x.shape[:2], self.classes), self.learner.scores, x, tasks)

    def snapshot(self, task: int) -> object | None:
        self.task = task
        with self.learner.evaluation() if self.by_task and not self.taken else contextlib.nullcontext():
            return self.learner.snapshot(task)

    def scores_of(self, snapshots: Sequence[object], x: torch.Tensor) -> torch.Tensor:
        count = len(snapshots) * x.shape[1]
        self.items += count
        shape = (len(snapshots), *x.shape[:2], self.classes)
        return self._answer((self.task, count), shape, self.learner.scores_of, snapshots, x)

    def _answer(
        self, key: tuple[int, int], shape: tuple[int, ...], function: Callable[..., torch.Tensor], *given: object
    ) -> torch.Tensor:
        """A function's answer to a test batch, timed; zeros of its shape where it is left out.

        key: the task, and the number of items a seed.
        """
        task, count = key
        answers = self.answers.setdefault(function.__name__, {}).setdefault(task, Answers())
        answers.asked += count
        answers.out -= 1
        if not (answers.out < 0 if self.taken else task in self.tasks and not answers.answered):
            return torch.zeros(shape, device=self.setting.labels.device)
        with contextlib.nullcontext() if self.taken else self.learner.evaluation():
            seconds, answer = _timed(function, *given)
        answers.seconds += seconds
        answers.answered += count
        answers.out = int(seconds / APART)
        self.spent += seconds
        return answer

    def answering(self) -> float:
        """Seconds of all answers, linear in the tasks between those with a batch that was taken."""
        found = 0.0
        for of_task in self.answers.values():
            timed = sorted(task for task, each in of_task.items() if each.answered)
            means = [of_task[task].seconds / of_task[task].answered for task in timed]
            found += sum(np.interp(task, timed, means) * each.asked for task, each in of_task.items())
        return found


@dataclasses.dataclass
class Answers:
    """Numbers of test items: those asked about and those whose answers were timed; and the seconds of these.

    out: batches to leave out yet.
    """

    asked: int = 0
    answered: int = 0
    seconds: float = 0.0
    out: int = 0


def _timed(function: Callable[..., T], *given: object) -> tuple[float, T]:
    """CPU seconds of a call, and its result."""
    began = time.process_time()
    found = function(*given)
    return time.process_time() - began, found
