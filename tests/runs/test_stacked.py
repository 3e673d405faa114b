"""A stack is its S nets side by side: outputs, gradients and running statistics, whatever the architecture."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from tiny import NETS

from clpapers.runs import nets
from clpapers.runs.nets.stacked import stack

SEEDS = [3, 1, 4]
TABLES = list(torch.rand(3, 4, 6, generator=torch.Generator().manual_seed(0)))  # each seed's classes are others


def built(spec, table):
    return nets.build(spec, (3, 8, 8), 4, attributes=table)


def singles(spec, seeds=SEEDS):
    modules = []
    for seed, table in zip(seeds, TABLES):
        torch.manual_seed(seed)
        modules.append(built(spec, table).double())
    return modules


def stacked(spec, seeds=SEEDS):
    return stack(lambda table: built(spec, table), seeds, TABLES[: len(seeds)]).double()


def tracked(net):
    return [b for b in net.buffers() if b.is_floating_point()]


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("seeds", [SEEDS, SEEDS[:1]])
def test_equals_single_nets(net, seeds):
    x = torch.randn(len(seeds), 5, 3, 8, 8, dtype=torch.float64)
    y = torch.randint(0, 4, (len(seeds), 5))
    together, alone = stacked(NETS[net], seeds), singles(NETS[net], seeds)
    logits = together(x)
    assert logits.shape == (len(seeds), 5, 4)
    F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum").backward()
    for s, module in enumerate(alone):
        single = module(x[s])
        torch.testing.assert_close(logits[s], single)
        F.cross_entropy(single, y[s], reduction="sum").backward()
        for packed, parameter in zip(together.parameters(), module.parameters(), strict=True):
            torch.testing.assert_close(packed.grad.view(len(seeds), *parameter.shape)[s], parameter.grad)
        for packed, buffer in zip(tracked(together), tracked(module), strict=True):
            torch.testing.assert_close(packed.view(len(seeds), *buffer.shape)[s], buffer)
    together.eval()
    for s, module in enumerate(alone):
        torch.testing.assert_close(together(x)[s], module.eval()(x[s]))


def test_leaves_the_global_random_state_alone():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    stacked(NETS["mlp"])
    assert torch.rand(1) == expected


@pytest.mark.parametrize("seeds", [SEEDS, SEEDS[:1]])
def test_untracked_passes_leave_running_statistics(seeds):
    net = stacked(NETS["resnet"], seeds)
    before = [b.clone() for b in net.buffers()]
    x = torch.randn(len(seeds), 5, 3, 8, 8, dtype=torch.float64)
    with net.untracked():
        quiet = net(x)
    assert all(torch.equal(b, a) for b, a in zip(before, net.buffers()))
    torch.testing.assert_close(net(x), quiet)
    assert not any(torch.equal(b, a) for b, a in zip(before, net.buffers()))


def test_table_2_architectures():
    """stf, Table 2: the widths and heads as printed."""
    cnn = nets.describe({"name": "cnn", "width": 32}, (1, 28, 28), 47)
    convolutions = [layer["layer"].split(",  ")[0] for layer in cnn["layers"] if "Conv2D" in layer["layer"]]
    assert [c[: c.index(")") + 1] for c in convolutions] == [
        "Conv2D(1, 32)",
        "Conv2D(32, 32)",
        "Conv2D(32, 64)",
        "Conv2D(64, 64)",
    ]
    assert cnn["layers"][-1]["layer"] == "Linear(64, 47)"
    # by hand: 9·1·32+32 + 64 + 9·32·32+32 + 64 + 9·32·64+64 + 128 + 9·64·64+64 + 128 + 64·47+47
    assert cnn["parameters"] == 320 + 64 + 9248 + 64 + 18496 + 128 + 36928 + 128 + 3055
    resnet = nets.describe({"name": "resnet18_reduced", "width": 20, "head": "linear"}, (3, 64, 64), 200)
    assert resnet["layers"][-1]["layer"] == "Linear(160, 200)"
    assert sum("Conv2D" in layer["layer"] for layer in resnet["layers"]) == 1 + 16 + 3
    stages = [layer["output"] for layer in resnet["layers"] if layer["block"].endswith("1.relu")]
    assert stages == [[20, 64, 64], [40, 32, 32], [80, 16, 16], [160, 8, 8]]


@pytest.mark.slow
def test_narrow_nets_do_not_corrupt_memory():
    """Channels-last maps of few channels crash a strided 1×1 convolution, and would take this process along."""
    script = """
import torch
from clpapers.runs import nets
from clpapers.runs.nets.stacked import stack
torch.set_num_threads(1)
net = stack(lambda: nets.build({"name": "resnet18_reduced", "width": 2, "head": "linear"}, (3, 32, 32), 10), [1])
for _ in range(15):
    net(torch.randn(1, 10, 32, 32, 3).movedim(-1, -3)).sum().backward()
"""
    subprocess.run([sys.executable, "-c", script], check=True)
