"""How nets begin, where that is not PyTorch's way."""

import math

import pytest
import torch
from torch import nn

from clpapers.runs import nets
from clpapers.runs.nets.inits import draw_truncated

MLP = {"name": "mlp", "hidden": [300, 200]}
RESNET = {"name": "resnet18_reduced", "width": 8, "head": "linear"}


def built(spec, seed=0):
    torch.manual_seed(seed)
    return nets.build(spec, (3, 16, 16), 10)


def xavier(layer):
    return math.sqrt(6 / sum(layer.weight.shape))


def side(layer):
    return 1 / math.sqrt(layer.kernel_size[0] * layer.in_channels)


def fan_out(layer):
    return math.sqrt(2 / (layer.kernel_size[0] ** 2 * layer.out_channels))


@pytest.mark.parametrize(
    ("spec", "kind", "deviation", "largest", "bias"),
    [
        (MLP | {"init": "truncated_normal"}, nn.Linear, lambda _: 0.088, lambda _: 0.2, 0.1),  # cut at two deviations
        (MLP | {"init": "xavier"}, nn.Linear, lambda layer: xavier(layer) / math.sqrt(3), xavier, 0),
        (RESNET | {"init": "uniform_side"}, nn.Conv2d, lambda layer: side(layer) / math.sqrt(3), side, None),
        (RESNET | {"width": 16, "init": "fan_out"}, nn.Conv2d, fan_out, lambda _: math.inf, None),
    ],
    ids=lambda given: given["init"] if isinstance(given, dict) else "",
)
def test_weights_have_the_spread_of_their_rule_and_other_layers_that_of_pytorch(spec, kind, deviation, largest, bias):
    net = built(spec)
    drawn = [layer for layer in net.modules() if isinstance(layer, kind)]
    assert len(drawn) >= 3
    for layer in drawn:
        weight = layer.weight
        assert weight.std().item() == pytest.approx(deviation(layer), rel=5 / math.sqrt(2 * weight.numel()))
        assert weight.abs().max() <= largest(layer)
        assert (weight.abs().max() > 2 * deviation(layer)) == (spec["init"] in ("fan_out", "truncated_normal"))
        assert bias is None or (layer.bias == bias).all()
    if kind is nn.Conv2d:
        assert net.head.weight.abs().max() <= 1 / math.sqrt(net.head.in_features)


def test_what_lies_beyond_two_deviations_is_drawn_again_in_its_place():
    """By hand, of the second and third draw of the same generator; the last digits are the processor's."""
    torch.manual_seed(0)
    first, again = torch.empty(2, 40).normal_(std=0.1), torch.empty(2, 40).normal_(std=0.1)
    beyond = first.abs() > 0.2
    assert beyond.nonzero().tolist() == [[0, 7], [1, 5], [1, 19], [1, 29]]
    torch.manual_seed(0)
    draw_truncated(drawn := torch.empty(2, 40), 0.1)
    assert torch.equal(drawn, torch.where(beyond, again, first))
    assert drawn[1, 4:6].tolist() == pytest.approx([0.0522860475, 0.1164783463], abs=1e-7)


def test_running_statistics_begin_at_zero_and_all_else_alike_and_a_batch_is_a_tenth_of_them():
    net, usual = built(RESNET | {"init": "uniform_side_zero"}), built(RESNET | {"init": "uniform_side"})
    norms = [layer for layer in net.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert norms
    assert not any(norm.running_mean.any() or norm.running_var.any() for norm in norms)
    for mine, other in zip(net.parameters(), usual.parameters(), strict=True):
        assert torch.equal(mine, other)
    x = torch.randn(20, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    maps = net.train().stem[0](x)
    net(x)
    assert torch.allclose(net.stem[1].running_var, maps.var(dim=(0, 2, 3)) / 10)
    assert torch.allclose(net.stem[1].running_mean, maps.mean(dim=(0, 2, 3)) / 10, atol=1e-6)


def test_only_the_factors_of_batch_norm_are_uniform():
    net, usual = built(RESNET | {"init": "uniform_gamma"}), built(RESNET)
    drawn = []
    for mine, other in zip(net.modules(), usual.modules(), strict=True):
        if isinstance(mine, nn.BatchNorm2d):
            drawn.append(mine.weight)
            assert not mine.bias.any()
        elif isinstance(mine, (nn.Conv2d, nn.Linear)):
            assert torch.equal(mine.weight, other.weight)
    drawn = torch.cat(drawn)
    assert 0 <= drawn.min() < 0.05
    assert 0.95 < drawn.max() <= 1
    assert drawn.mean().item() == pytest.approx(0.5, abs=4 / math.sqrt(12 * len(drawn)))


def test_epsilon_is_that_of_every_batch_norm_and_else_pytorchs():
    x = torch.randn(3, 3, 16, 16)
    said = {epsilon: built(RESNET | given).eval()(x) for epsilon, given in ((1e-3, {"epsilon": 1e-3}), (1e-5, {}))}
    for epsilon, answers in said.items():
        net = built(RESNET | {"init": "pytorch"}).eval()
        for layer in net.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.eps = epsilon
        torch.testing.assert_close(answers, net(x))
    assert not torch.allclose(*said.values(), atol=1e-6)
