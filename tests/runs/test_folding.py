"""Folded batch norm: a hand-computed value; the same answers as without; nothing is left behind."""

import contextlib

import pytest
import torch
from torch import nn

from clpapers.runs import nets
from clpapers.runs.nets.folding import folded
from clpapers.runs.nets.stacked import stack

REDUCED = {"name": "resnet18_reduced", "width": 20, "head": "linear"}
STANDARD = {"name": "resnet18", "width": 8, "pool": True, "head": "linear", "weights": "none"}


def test_a_value_by_hand():
    """(3·2 + 1 − 4) / √(8 + 1) · 6 + 5 = 11."""
    net = nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1, eps=1.0)).eval()
    values = {"0.weight": 2, "0.bias": 1, "1.running_mean": 4, "1.running_var": 8, "1.weight": 6, "1.bias": 5}
    for name, value in values.items():
        net.state_dict()[name].fill_(value)
    with folded(net):
        assert isinstance(net[1], nn.Identity)
        assert net(torch.full((1, 1, 1, 1), 3.0)).item() == pytest.approx(11)


@pytest.mark.parametrize("seeds", [[0], [0, 1]], ids=["one", "two"])
@pytest.mark.parametrize("net", [REDUCED, STANDARD], ids=lambda net: net["name"])
def test_answers_are_the_same_and_all_is_restored_even_after_an_error(net, seeds):
    """Batch norms have statistics and parameters of their own here; in training mode they stay."""
    made = stack(lambda: nets.build(net, (3, 32, 32), 5), seeds).double()
    torch.manual_seed(0)
    for name, value in made.state_dict().items():
        if value.is_floating_point():
            value.copy_(torch.rand_like(value) + 0.5 if "var" in name else value + 0.1 * torch.randn_like(value))
    x, parts = torch.randn(len(seeds), 7, 3, 32, 32, dtype=torch.double), list(made.modules())
    with folded(made.train()):
        assert list(made.modules()) == parts
    before = made.eval()(x)
    with contextlib.suppress(KeyError), folded(made):
        assert sum(isinstance(module, nn.Identity) for module in made.modules()) == 20
        torch.testing.assert_close(made(x), before)
        raise KeyError
    assert list(made.modules()) == parts
    assert torch.equal(made(x), before)
