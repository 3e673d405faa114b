"""Whether seeds are stacked: on a CPU measured on the learner itself, on a GPU by the net's width."""

import time
from itertools import accumulate, cycle

import pytest
import torch
from tiny import OPTIONS, cell

from clpapers.runs import loop, stacking


def test_the_gain_is_the_ratio_of_what_both_take(monkeypatch):
    """By a clock on which seeds one after the other take 10 s, their stack 4 s, and what is between the turns 1 s."""
    clock = accumulate(cycle([1, 10, 4]))
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    assert stacking.gain() == 2.5


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
