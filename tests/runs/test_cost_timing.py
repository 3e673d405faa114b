"""Rehearsals: what they count, what they leave out and how they extrapolate, by a clock that the test turns."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest
import tiny
import torch

from clpapers.runs import cost_timing, learners
from clpapers.runs.cost_timing import FEW, Costs, Steps, rehearse
from clpapers.runs.learner import Learner, Observed
from clpapers.streams import orders


class Time:
    """A clock that only moves when it is told to."""

    def __init__(self):
        self.now = 0.0

    def process_time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    moved = Time()
    monkeypatch.setattr(cost_timing, "time", moved)
    return moved


def taking(clock, *, founding=0.0, change=0.0, step=lambda t: 0.0, test=0.0, item=0.0):
    """A learner, in place of whichever a cell names, for which time passes as said. `steps` are those it learns."""

    class Taking(Learner):
        steps: ClassVar[list[int]] = []

        def __init__(self, setting, **options):
            self.options = options
            super().__init__(setting)
            clock.now += founding
            self.steps.clear()

        def task_change(self, t):
            clock.now += change

        def observe(self, t, x, y):
            assert x.shape[:2] == y.shape
            self.steps.append(t)
            clock.now += step(t) * self.options.get("epochs", 1)
            return Observed()

        def prepare(self):
            clock.now += test * self.options.get("epochs", 1)

        def scores(self, x, tasks):
            clock.now += item * x.shape[1]
            return x.new_zeros(*x.shape[:2], self.classes)

    return Taking


def rehearsed(monkeypatch, learner, spec, data, streams, seconds=1.0) -> Costs:
    monkeypatch.setattr(learners, "create", lambda options, setting: learner(setting, **_options(options)))
    return rehearse(spec, data, streams, seconds)


def _options(options):
    return {key: value for key, value in options.items() if key != "name"}


def split_stream(data, seed=0):
    return orders.make(tiny.SPLIT, np.sort(data.train_y), seed)


def test_what_every_step_takes_is_found(monkeypatch, clock, data):
    """Founding, steps, tests and items take what they take, however few of them are tried."""
    learner = taking(clock, founding=7.0, step=lambda t: 0.5, test=0.25, item=0.125)
    found = rehearsed(monkeypatch, learner, tiny.cell("single", {}), data, {0: split_stream(data)}, seconds=0.1)
    assert (found.founding, found.step, found.test, found.item) == pytest.approx((7.0, 0.5, 0.25, 0.125))
    assert len(learner.steps) < found.steps


def test_tests_that_grow_with_the_tasks_are_found_task_by_task(monkeypatch, clock, data):
    """A column takes a second an item: answers need those up to the task's, a learning curve the learning one anew."""
    plain = taking(clock)

    class Growing(plain):
        def snapshot(self, task):
            return task

        def scores(self, x, tasks):
            clock.now += (1 + int(tasks.max())) * x.shape[1]
            return super().scores(x, tasks)

        def scores_of(self, snapshots, x):
            clock.now += (snapshots[0] + len(snapshots)) * x.shape[1]
            return x.new_zeros(len(snapshots), *x.shape[:2], self.classes)

    Growing.past_tasks_frozen = True
    order = tiny.DOMAINS | {"tasks": 9}
    spec = tiny.cell("prog_nn", {}, "mlp", oracle=tiny.CHUNKS, order=order)
    spec["evaluation"] |= {"shots": 3, "points": 1, "probes": 1}
    found = rehearsed(monkeypatch, Growing, spec, data, {0: orders.make(order, data.train_y, 0, 192)})
    items = len(data.test_y)
    curves = sum(task + 4 for task in range(9)) * items
    after = sum(task + 1 for k in range(9) for task in range(k, 9)) * items
    final = 9 * 9 * items  # in one batch
    assert found.items == (9 * 4 + 45 + 9) * items + 1
    assert found.item * found.items == pytest.approx(curves + after + final, rel=0.01)


def test_task_changes_are_shared_out_to_steps(monkeypatch, clock, data):
    spec = tiny.cell("ewc", {}, oracle=tiny.CHUNKS, order=tiny.SPLIT)
    found = rehearsed(monkeypatch, taking(clock, change=6.0), spec, data, {0: split_stream(data)})
    assert found.step * found.steps == pytest.approx(6.0)


def test_repetitions_lengthen_steps_and_tests(monkeypatch, clock, data):
    """Of an option that repeats work little is tried, and what each repetition takes is told."""
    spec = tiny.cell("offline", tiny.OPTIONS["offline"] | {"epochs": 50})
    learner = taking(clock, step=lambda t: 0.5, test=2.0)
    found = rehearsed(monkeypatch, learner, spec, data, {0: split_stream(data)})
    assert found.repeated == {"epochs": (pytest.approx(0.5), pytest.approx(2.0))}
    assert (found.step, found.test) == (pytest.approx(0), pytest.approx(0))


def test_all_tasks_are_gone_through(monkeypatch, clock, data):
    """Of each task the first steps are learnt and, where they are quick, the last one."""
    learner, stream = taking(clock, step=lambda t: 0.01), split_stream(data)
    found = rehearsed(monkeypatch, learner, tiny.cell("single", {}, "mlp", batch=1), data, {0: stream}, seconds=0.05)
    first = [0, int(stream.boundaries[0])]
    wanted = {t for start in first for t in range(start, start + FEW)} | {first[1] - 1, found.steps - 1}
    assert set(learner.steps) == wanted


@pytest.mark.parametrize("tasks", [1, 4, 20])
@pytest.mark.parametrize("length", [10, 1000])
def test_growth_along_the_stream_is_kept(tasks, length):
    """Steps that grow linearly from task to task are added up exactly, whichever tasks were measured."""
    chunk = np.repeat(np.arange(tasks), length)
    steps = Steps(chunk, seconds=1.0)
    for t in range(len(chunk)):
        if steps.takes(t):
            steps.note(t, 3.0 + chunk[t])
    assert steps.total() == pytest.approx((3.0 + chunk).sum())


def test_what_happens_once_is_not_multiplied():
    """A step that takes much longer than its neighbours is counted as the one that it is."""
    steps = Steps(np.zeros(6000, dtype=int), seconds=60.0)
    for t in range(6000):
        if steps.takes(t):
            steps.note(t, 100.0 if t == 2 else 1.0)
    assert steps.total() == pytest.approx(6000 + 99, abs=1.5)


@pytest.mark.parametrize(("name", "options"), tiny.VARIANTS)
def test_every_declared_learner_can_be_rehearsed(data, name, options):
    """Whatever a learner does in steps that are left out, what its run takes is a number and not negative."""
    method = tiny.METHODS[name].with_options(options)
    oracle = tiny.CHUNKS if {"changes", "tasks"} & set(method.uses) else tiny.NONE
    spec = tiny.cell(name, options, "mlp", oracle=oracle, order=tiny.SPLIT)
    found = rehearse(spec, data, {0: split_stream(data)}, seconds=0.01)
    assert min(dataclasses.astuple(found)[:4]) >= 0
    assert all(np.isfinite(dataclasses.astuple(found)[:4]))
    assert set(found.repeated) == set(method.repeats)
    assert torch.get_num_threads() == 1


MINE = """
import torch
from clpapers import Learner, Observed

DECLARATION = {"options": {}, "uses": ["changes"]}


class Mine(Learner):
    def __init__(self, setting):
        super().__init__(setting)
        self.seen = []

    def observe(self, t, x, y):
        assert t == len(self.seen)
        self.seen.append(self.seen[t // 2] if self.seen else y)
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.step(loss)
        return Observed(loss, logits)
"""


@pytest.mark.parametrize("seconds", [0.0, 30.0])
def test_a_method_from_outside_takes_whole_first_steps(seconds, data, tmp_path):
    """One that counts its steps, or reads what it kept of earlier ones, is measured; a long step is the only one."""
    file = tmp_path / f"counting{int(seconds)}.py"
    file.write_text(MINE)
    spec = tiny.cell("single", {}, "mlp", oracle=tiny.CHUNKS, order=tiny.SPLIT)
    spec["learner"] = {"name": file.stem, "file": str(file)}
    found = rehearse(spec, data, {0: split_stream(data)}, seconds)
    assert found.taken * found.steps == (1 if not seconds else found.steps)
    assert min(found.step, found.test, found.item) > 0
