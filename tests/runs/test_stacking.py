"""Whether seeds are stacked on a CPU: measured on the learner itself, and followed by the loop."""

import pytest
import torch
from test_loop import assert_same
from tiny import CPU, OPTIONS, cell

from clpapers.runs import loop, stacking


def test_the_gain_is_the_ratio_of_what_both_take(monkeypatch):
    """By a clock that only steps turn: one of a seed takes 2 s, one of the stack 5 s, of five seeds."""
    now = [0.0]

    def steps(size):
        while True:
            now[0] += 2.0 if size == 1 else 5.0
            yield

    monkeypatch.setattr(stacking, "_steps", steps)
    monkeypatch.setattr(stacking.time, "process_time", lambda: now[0])
    assert stacking.gain() == 2.0


def test_both_are_long_enough_and_of_the_sizes_that_are_compared():
    for size in (1, stacking.SEEDS):
        steps = stacking._steps(size)
        for _ in range((1 + stacking.TURNS) * stacking.STEPS * stacking.SEEDS // size):
            next(steps)


@pytest.mark.parametrize(
    ("net", "precision", "expected"),
    [
        ({"name": "mlp", "hidden": [256, 256]}, "float32", True),
        ({"name": "resnet18_reduced", "width": 20}, "float32", True),
        ({"name": "resnet18_reduced", "width": 64}, "float32", False),
        ({"name": "resnet18_reduced", "width": 64}, "tf32", True),
    ],
)
def test_a_gpu_stacks_narrow_nets(net, precision, expected):
    assert loop.gains_on_gpu({"net": net, "precision": precision}) is expected


@pytest.mark.parametrize(
    ("learner", "net", "batch", "device", "expected"),
    [
        ("er", "mlp", 32, "cpu", True),
        ("er", "mlp", 33, "cpu", False),
        ("single", "mlp", "task", "cpu", False),
        ("er", "cnn", 5, "cpu", False),
        ("er", "mlp", 5, "cuda", False),  # there they are
        ("bartmap", "mlp", 1, "cpu", False),  # which has no stack
        ("random", "mlp", 5, "cpu", False),  # which has no net
    ],
)
def test_machines_decide_of_mlps_with_small_batches(learner, net, batch, device, expected):
    spec = cell(learner, OPTIONS[learner], net, batch=5)
    spec["budget"]["batch"] = batch
    assert loop.undecided(spec, torch.device(device)) is expected


@pytest.mark.parametrize("learner", ["er", "random"])
def test_without_stacking_seeds_are_trained_apart_and_end_the_same(learner, data, streams, monkeypatch):
    spec = cell(learner, OPTIONS[learner], "mlp")
    stacks, train_stack = [], loop._train_stack
    monkeypatch.setattr(
        loop, "_train_stack", lambda *given: (stacks.append([c.seed for c in given[2]]), train_stack(*given))[1]
    )
    apart, together = (loop.train(spec, data, streams, CPU, stacking=flag) for flag in (False, True))
    whole = [sorted(streams)]
    assert stacks == [*([[seed] for seed in streams] if learner == "er" else whole), *whole]
    for one, other in zip(apart, together, strict=True):
        assert_same(one, other)
