"""Our thin optimisers against PyTorch's classes."""

import subprocess
import sys

import pytest
import torch

from clpapers.runs.optimizers import OPTIMIZERS

THEIRS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in OPTIMIZERS), ("sgd", {"momentum": 0.9}), ("sgd", {"momentum": 0.5, "clip": 0.2})],
)
def test_takes_the_steps_of_pytorch(name, options):
    """With `clip`, after its clipping by value, which bounds some of these gradients."""
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Linear(3, 2, dtype=torch.float64) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    known, largest = dict(options), 0.0
    clip = known.pop("clip", torch.inf)
    mine, other = OPTIMIZERS[name](ours.parameters(), 0.03, **options), THEIRS[name](theirs.parameters(), 0.03, **known)
    for _ in range(5):
        x = torch.randn(4, 3, dtype=torch.float64)
        for net, optimizer in ((ours, mine), (theirs, other)):
            optimizer.zero_grad()
            net(x).square().sum().backward()
        largest = max(largest, *(p.grad.abs().max().item() for p in theirs.parameters()))
        torch.nn.utils.clip_grad_value_(theirs.parameters(), clip)
        mine.step()
        other.step()
    for p, q in zip(ours.parameters(), theirs.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-12, atol=1e-12)
    assert clip == torch.inf or largest > clip


def test_does_not_import_the_compiler():
    """What the file is for: two seconds a job."""
    code = """
import sys, torch
from clpapers.runs.optimizers import Adam
p = torch.zeros(2, requires_grad=True)
optimizer = Adam([p], 0.1)
p.sum().backward()
optimizer.step()
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
