"""Rehearsals: what they count, what they leave out and how they extrapolate, by a clock that the test turns."""

import dataclasses
import time
from typing import ClassVar

import numpy as np
import pytest
import tiny
import torch

from clpapers.runs import learners
from clpapers.runs.cost_timing import FEW, Steps, rehearse
from clpapers.runs.learner import Learner, Observed
from clpapers.streams import orders


class Time:
    """A clock that only moves when it is told to."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def rehearsed(monkeypatch, data):
    """Rehearse a cell with a learner, in place of the one that it names, for which time passes as said."""
    clock = Time()
    monkeypatch.setattr(time, "process_time", clock)

    def of(spec, stream, *, like=Learner, seconds=1.0, founding=0.0, change=0.0, step=0.0, test=0.0, column=0.0):
        class Taking(like):
            steps: ClassVar[list[int]] = []

            def __init__(self, setting, epochs=1):
                self.epochs = epochs
                super().__init__(setting)
                clock.now += founding
                self.steps.clear()

            def task_change(self, t):
                clock.now += change

            def observe(self, t, x, y):
                assert x.shape[:2] == y.shape
                self.steps.append(t)
                clock.now += step * self.epochs
                return Observed()

            def prepare(self):
                clock.now += test * self.epochs

            def scores(self, x, tasks):
                clock.now += column * x.shape[1] * (1 + int(tasks.max()) if self.past_tasks_frozen else 1)
                return x.new_zeros(*x.shape[:2], self.classes)

            def scores_of(self, snapshots, x):
                clock.now += column * (snapshots[0] + len(snapshots)) * x.shape[1]
                return x.new_zeros(len(snapshots), *x.shape[:2], self.classes)

        repeats = {"epochs"} & set(spec["learner"])
        create = lambda options, setting: Taking(setting, **{key: options[key] for key in repeats})  # noqa: E731
        monkeypatch.setattr(learners, "create", create)
        return rehearse(spec, data, {0: stream}, seconds), Taking.steps

    return of


class Growing(Learner):
    """One whose tests take a column for each task."""

    past_tasks_frozen = True

    def snapshot(self, task):
        return task


@pytest.fixture(scope="module")
def split(data):
    return orders.make(tiny.SPLIT, data.train_y, 0)


def test_what_every_step_takes_is_found(rehearsed, split):
    """Founding, steps, tests and items take what they take, however few of them are tried."""
    taken = {"founding": 7.0, "step": 0.5, "test": 0.25, "column": 0.125}
    found, steps = rehearsed(tiny.cell("single", {}), split, seconds=0.1, **taken)
    assert (found.founding, found.step, found.test, found.item) == pytest.approx((7.0, 0.5, 0.25, 0.125))
    assert len(steps) < found.steps


def test_tests_that_grow_with_the_tasks_are_found_task_by_task(rehearsed, data):
    """A column takes a second an item: answers need those up to the task's, a learning curve the learning one anew."""
    order = tiny.DOMAINS | {"tasks": 9}
    spec = tiny.cell("prog_nn", {}, "mlp", oracle=tiny.CHUNKS, order=order)
    spec["evaluation"] |= {"shots": 3, "points": 1, "probes": 1}
    found, _ = rehearsed(spec, orders.make(order, data.train_y, 0, 192), like=Growing, column=1.0)
    items = len(data.test_y)
    curves = sum(task + 4 for task in range(9)) * items
    after = sum(task + 1 for k in range(9) for task in range(k, 9)) * items
    final = 9 * 9 * items  # in one batch
    assert found.items == (9 * 4 + 45 + 9) * items + 1
    assert found.item * found.items == pytest.approx(curves + after + final, rel=0.01)


def test_task_changes_are_shared_out_to_steps(rehearsed, split):
    found, _ = rehearsed(tiny.cell("ewc", {}, oracle=tiny.CHUNKS, order=tiny.SPLIT), split, change=6.0)
    assert found.step * found.steps == pytest.approx(6.0)


def test_repetitions_lengthen_steps_and_tests(rehearsed, split):
    """Few repetitions are tried, and the time of each is told."""
    spec = tiny.cell("offline", tiny.OPTIONS["offline"] | {"epochs": 50})
    found, _ = rehearsed(spec, split, step=0.5, test=2.0)
    assert found.repeated == {"epochs": (pytest.approx(0.5), pytest.approx(2.0))}
    assert (found.step, found.test) == (pytest.approx(0), pytest.approx(0))


def test_all_tasks_are_gone_through(rehearsed, split):
    """The first steps of each task are learnt and, where they are quick, the last one."""
    found, steps = rehearsed(tiny.cell("single", {}, "mlp", batch=1), split, step=0.01, seconds=0.05)
    second = int(split.boundaries[0])
    wanted = {t for start in (0, second) for t in range(start, start + FEW)} | {second - 1, found.steps - 1}
    assert set(steps) == wanted


@pytest.mark.parametrize(
    ("tasks", "length", "taken"),
    [(tasks, length, lambda t, chunk: 3.0 + chunk) for tasks in (1, 4, 20) for length in (10, 1000)]
    + [(1, 6000, lambda t, chunk: 100.0 if t == 2 else 1.0)],
)
def test_growth_along_the_stream_is_kept_and_what_happens_once_is_not_multiplied(tasks, length, taken):
    """Steps that grow linearly from task to task are added up exactly, whichever tasks were measured."""
    chunk = np.repeat(np.arange(tasks), length)
    steps = Steps(chunk, seconds=60.0)
    for t in range(len(chunk)):
        if steps.takes(t):
            steps.note(t, taken(t, chunk[t]))
    assert steps.total() == pytest.approx(sum(taken(t, chunk[t]) for t in range(len(chunk))), rel=2e-4)


@pytest.mark.parametrize(("name", "options"), tiny.VARIANTS)
def test_every_declared_learner_can_be_rehearsed(data, split, name, options):
    """Whatever a learner does in steps that are left out, what its run takes is a number and not negative."""
    method = tiny.METHODS[name].with_options(options)
    oracle = tiny.CHUNKS if {"changes", "tasks"} & set(method.uses) else tiny.NONE
    spec = tiny.cell(name, options, "mlp", oracle=oracle, order=tiny.SPLIT)
    found = rehearse(spec, data, {0: split}, seconds=0.01)
    assert all(0 <= each < np.inf for each in dataclasses.astuple(found)[:4])
    assert set(found.repeated) == set(method.repeats)
    assert torch.get_num_threads() == 1


COUNTS = """
    seen = ()

    def observe(self, t, x, y):
        assert t == len(self.seen)
        self.seen = *self.seen, self.seen[t // 2] if self.seen else y
        return super().observe(t, x, y)


DECLARATION = {"options": {}}
"""


@pytest.mark.parametrize("seconds", [0.0, 30.0])
def test_a_method_from_outside_takes_whole_first_steps(seconds, data, split, written):
    """One that counts its steps, or reads what it kept of earlier ones, is measured; a long step is the only one."""
    spec = tiny.cell("single", {}, "mlp", oracle=tiny.CHUNKS, order=tiny.SPLIT) | {"learner": written(COUNTS)}
    found = rehearse(spec, data, {0: split}, seconds)
    assert found.taken * found.steps == (1 if not seconds else found.steps)
    assert min(found.step, found.test, found.item) > 0
