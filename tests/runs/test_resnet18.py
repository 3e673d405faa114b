"""The standard ResNet-18: torchvision's, layer for layer and number for number."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from clpapers.datasets._torchvision import module
from clpapers.runs import nets
from clpapers.runs.nets.stacked import stack

SPEC = {"name": "resnet18", "width": 64, "pool": True, "head": "linear", "weights": "imagenet"}


@pytest.fixture(scope="module")
def theirs():
    """Torchvision's, all of whose parameters and running statistics are its own."""
    torch.manual_seed(0)
    net = module("models").resnet18(weights=None, num_classes=10)
    for name, value in net.state_dict().items():
        if "bn" in name or "downsample.1" in name:
            value.copy_(torch.rand(value.shape) + 0.5)
    return net


def arrays(net):
    state = net.state_dict().items()
    return {k: v.numpy().copy() for k, v in state if not k.startswith("fc.") and v.is_floating_point()}


def test_it_is_torchvisions_from_its_weights_on(theirs):
    """Logits in both modes, with the running statistics that a pass leaves; features; gradients. Two seeds' differ in
    the head alone."""
    ours = stack(lambda: nets.build(SPEC, (3, 64, 64), 10, pretrained=arrays(theirs)), [0, 1])
    differing = {name for name, p in ours.named_parameters() if not torch.equal(p[0], p[1])}
    assert differing == {"net.head.weight", "net.head.bias"}
    with torch.no_grad():
        for name in ("weight", "bias"):
            head = getattr(ours.net.head, name)
            head.copy_(getattr(theirs.fc, name).expand_as(head))
    x = torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    for training in (False, True, False):
        ours.train(training)
        theirs.train(training)
        expected = theirs(x)
        for said in ours(x.expand(2, -1, -1, -1, -1)):
            torch.testing.assert_close(said, expected, rtol=1e-4, atol=1e-4)
    below = torch.nn.Sequential(*list(theirs.children())[:-1], torch.nn.Flatten())
    torch.testing.assert_close(ours.features(x[None].expand(2, -1, -1, -1, -1))[0], below(x), rtol=1e-4, atol=1e-5)
    y = torch.tensor([1, 2, 3, 4])
    F.cross_entropy(theirs(x), y).backward()
    F.cross_entropy(ours(x.expand(2, -1, -1, -1, -1)).flatten(0, 1), y.repeat(2), reduction="sum").div(4).backward()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad.expand_as(mine), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("layer2.0.downsample.0.weight", None),  # absent
        ("layer2.0.downsample.0.weight", np.zeros((128, 32, 1, 1), np.float32)),
        ("layer2.1.downsample.0.weight", np.zeros((128, 128, 1, 1), np.float32)),  # one too many
    ],
)
def test_weights_of_another_net_are_refused(theirs, name, given):
    others = {key: value for key, value in (arrays(theirs) | {name: given}).items() if value is not None}
    with pytest.raises(ValueError, match=r"of another net: see stage2\.[01]\.shortcut\.0\.weight"):
        nets.build(SPEC, (3, 32, 32), 10, pretrained=others)


@pytest.mark.parametrize(("pool", "sides"), [(True, [56, 28, 14, 7]), (False, [112, 56, 28, 14])])
def test_its_maps_and_its_size(pool, sides):
    spec = SPEC | {"pool": pool, "weights": "none"}
    described = nets.describe(spec, (3, 224, 224), 1000)
    stages = [layer["output"] for layer in described["layers"] if layer["block"].endswith("1.relu")]
    assert stages == [[64 * 2**i, side, side] for i, side in enumerate(sides)]
    assert described["parameters"] == 11_689_512  # as torchvision prints it
    assert ("MaxPooling2D(3, 2)" in [layer["layer"] for layer in described["layers"]]) == pool


def test_shortcuts_without_batch_norm_lose_its_parameters_and_nothing_else():
    """Of three 1×1 shortcuts, to 128, 256 and 512 maps, each map's factor and shift."""
    spec = SPEC | {"pool": False, "weights": "none"}
    plain = nets.describe(spec | {"shortcut_norm": False}, (3, 64, 64), 1000)
    assert plain["parameters"] == 11_689_512 - 2 * (128 + 256 + 512)
    net = nets.build(spec | {"shortcut_norm": False}, (3, 64, 64), 10)
    assert [type(layer).__name__ for layer in net.stage2[0].shortcut] == ["Conv2d"]
    assert len(net.stage2[1].shortcut) == 0
    x, block = torch.rand(2, 64, 8, 8), net.stage2[0].eval()
    convolved = F.conv2d(x, block.shortcut[0].weight, stride=2)
    torch.testing.assert_close(block(x), F.relu(block.residual(x) + convolved))
