"""What counts as training time."""

import time

import pytest
import torch
from tiny import CHUNKS, CPU, DOMAINS, OPTIONS, SPLIT, cell

from clpapers.runs import learners, loop
from clpapers.runs.clock import Clock
from clpapers.runs.learner import Setting
from clpapers.runs.learners.single import Single
from clpapers.streams import orders


class Time:
    """A time that passes when it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    passing = Time()
    monkeypatch.setattr(time, "perf_counter", passing)
    return passing


def test_a_stopped_clock_does_not_run(clock):
    watch = Clock(CPU)
    clock.now = 3.0
    with watch.stopped():
        assert watch.seconds == 3
        clock.now = 10.0
    clock.now = 10.5
    with watch.testing():
        assert watch.seconds == 3.5
        clock.now = 12.5
    clock.now = 13.5
    with watch.stopped():
        pass
    assert watch.seconds == 4.5
    assert watch.tested == 2


def test_a_gpu_is_waited_for_where_the_clock_stops_and_goes_on_alone(clock, monkeypatch):
    waits = []
    monkeypatch.setattr(torch.cuda, "synchronize", waits.append)
    watch = Clock(torch.device("cuda"))
    assert len(waits) == 1
    with watch.stopped():
        assert len(waits) == 2
    assert len(waits) == 3


def test_task_changes_and_steps_count_and_tests_do_not(data, clock, monkeypatch):
    """A step takes a second, a task change ten, a batch of tests a thousand; a stack's seeds share the time."""

    def slow(method, seconds):
        inner = getattr(Single, method)

        def later(self, *given):
            clock.now += seconds
            return inner(self, *given)

        monkeypatch.setattr(Single, method, later)

    slow("observe", 1)
    slow("task_change", 10)
    slow("scores", 1000)
    spec = cell("single", {}, "mlp", order=DOMAINS, oracle=CHUNKS)
    spec["evaluation"]["shots"] = 2
    streams = {seed: orders.make(DOMAINS, data.train_y, seed, 192) for seed in (0, 1)}
    seconds = {}
    results = loop.train(spec, data, streams, CPU, seconds)
    whole = results[0]["steps"] + 10 * 2
    tested = clock.now - whole
    assert seconds["training_seconds"] == {0: whole / 2, 1: whole / 2}
    assert seconds["testing_seconds"] == {0: tested / 2, 1: tested / 2}
    assert tested > 1000
    assert "seconds" not in str(results)


@pytest.mark.parametrize(
    ("learner", "training", "times"),
    [
        ("offline", "net", 5),  # at 0, 50, 60, 100 and 120 items, though some of them are tested twice and thrice
        ("gdumb_retrained", "prepare", 8),  # for every test: three events, before and after two tasks, the final one
        ("vcl_coreset", "trained_on", 2),  # a task each: its copy answers the tests until the next one is learnt
    ],
)
def test_what_is_trained_for_a_test_counts(learner, training, times, data, clock, monkeypatch):
    """A training for tests takes a hundred seconds, a batch of answers a thousand, a step none."""

    def slow(owner, method, seconds):
        inner = getattr(owner, method)

        def later(self, *given):
            clock.now += seconds
            return inner(self, *given)

        monkeypatch.setattr(owner, method, later)

    method = learners.find(learner)
    slow(Setting if learner == "offline" else method, training, 100)  # there, of each training's net
    slow(method, "scores", 1000)
    spec = cell(learner, OPTIONS[learner], "mlp", order=SPLIT, oracle=CHUNKS)
    spec["evaluation"] |= {"every": 50, "shots": 0, "points": 1}
    seconds = {}
    (result,) = loop.train(spec, data, {0: orders.make(SPLIT, data.train_y, 0)}, CPU, seconds)
    assert seconds["training_seconds"] == {0: 100 * times}
    assert clock.now == 100 * times + seconds["testing_seconds"][0]
    assert seconds["testing_seconds"][0] >= 1000 * len(result["events"]["time"])
