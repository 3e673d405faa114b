"""Our thin optimisers against PyTorch's classes."""

import subprocess
import sys

import pytest
import torch

from clpapers.runs.optimizers import OPTIMIZERS

THEIRS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.03),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.03),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_takes_the_steps_of_pytorch(name):
    torch.manual_seed(0)
    ours = torch.nn.Linear(3, 2, dtype=torch.float64)
    theirs = torch.nn.Linear(3, 2, dtype=torch.float64)
    theirs.load_state_dict(ours.state_dict())
    pairs = [(ours, OPTIMIZERS[name](ours.parameters(), 0.03)), (theirs, THEIRS[name](theirs.parameters()))]
    for _ in range(5):
        x = torch.randn(4, 3, dtype=torch.float64)
        for net, optimizer in pairs:
            optimizer.zero_grad()
            net(x).square().sum().backward()
            optimizer.step()
    for p, q in zip(ours.parameters(), theirs.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-12, atol=1e-12)


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
