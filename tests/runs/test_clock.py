"""The time that counts as training."""

import pickle
import time

import pytest
import torch
from tiny import CHUNKS, CPU, DOMAINS, OPTIONS, SPLIT, cell

from clpapers.runs import loop
from clpapers.runs.clock import Clock
from clpapers.streams import orders

PASSES = """
    def {name}(self, *given):
        import time

        time.perf_counter.now += {seconds}
        return super().{name}(*given)
"""


class Time:
    """A time that passes when it is told to."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    passing = Time()
    monkeypatch.setattr(time, "perf_counter", passing)
    return passing


@pytest.fixture
def slow(written):
    """A learner whose methods take some seconds each."""
    return lambda like, **seconds: written(
        "".join(PASSES.format(name=name, seconds=each) for name, each in seconds.items()), like
    )


def test_a_stopped_clock_does_not_run_and_a_restored_one_goes_on_where_it_stopped(clock):
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
        saved = pickle.dumps(watch)
    assert (watch.seconds, watch.tested) == (4.5, 2)
    clock.now = 100.0
    again = pickle.loads(saved)
    clock.now = 104.0
    with again.stopped():
        assert (again.seconds, again.tested) == (4.5 + 4, 2)


def test_a_gpu_is_waited_for_where_the_clock_stops_and_goes_on_alone(monkeypatch):
    waits = []
    monkeypatch.setattr(torch.cuda, "synchronize", waits.append)
    watch = Clock(torch.device("cuda"))
    assert len(waits) == 1
    with watch.stopped():
        assert len(waits) == 2
    assert len(waits) == 3


def test_task_changes_and_steps_count_and_tests_do_not(data, clock, slow):
    """A step takes a second, a task change ten, a batch of tests a thousand; a stack's seeds share the time."""
    spec, seconds = cell("single", {}, "mlp", order=DOMAINS, oracle=CHUNKS), {}
    spec["learner"] = slow("single", observe=1, task_change=10, scores=1000)
    spec["evaluation"]["shots"] = 2
    streams = {seed: orders.make(DOMAINS, data.train_y, seed, 192) for seed in (0, 1)}
    results = loop.train(spec, data, streams, CPU, seconds)
    whole = results[0]["steps"] + 10 * 2
    tested = clock.now - whole
    assert seconds["training_seconds"] == {0: whole / 2, 1: whole / 2}
    assert seconds["testing_seconds"] == {0: tested / 2, 1: tested / 2}
    assert tested > 1000
    assert "seconds" not in str(results)


@pytest.mark.parametrize(
    ("learner", "trains", "times"),
    [
        ("offline", "optimize", 5),  # at 0, 50, 60, 100 and 120 items, though some of them are tested twice and thrice
        ("gdumb_retrained", "prepare", 8),  # for every test: three events, before and after two tasks, the final one
        ("vcl_coreset", "trained_on", 2),  # a task each: its copy answers the tests until the next one is learnt
    ],
)
def test_what_is_trained_for_a_test_counts(learner, trains, times, data, chunked, clock, slow):
    """A training for tests takes a hundred seconds, a batch of answers a thousand, a step none."""
    spec, seconds = cell(learner, OPTIONS[learner], "mlp", order=SPLIT, oracle=CHUNKS), {}
    spec["learner"] = slow(learner, **{trains: 100, "scores": 1000}) | OPTIONS[learner]
    spec["evaluation"] |= {"every": 50, "shots": 0, "points": 1}
    (result,) = loop.train(spec, data, {0: chunked[0]}, CPU, seconds)
    assert seconds["training_seconds"] == {0: 100 * times}
    assert clock.now == 100 * times + seconds["testing_seconds"][0]
    assert seconds["testing_seconds"][0] >= 1000 * len(result["events"]["time"])
