"""Parts of nets by hand; the least images and batches; copied inputs; the ResNet upside down; how nets begin."""

import math

import pytest
import torch
from torch import nn

from clpapers.config.parts import NETS as DECLARED
from clpapers.runs import nets
from clpapers.runs.learners.gr import mirrored
from clpapers.runs.nets import cnn, heads
from clpapers.runs.nets.inits import draw_truncated
from clpapers.runs.nets.stacked import stack
from clpapers.runs.norms import fewest, least_side

NETS = [
    {"name": "mlp", "hidden": [4]},
    {"name": "exstream_mlp", "hidden": [4], "batch_norm": True, "dropout": 0.0},
    {"name": "exstream_mlp", "hidden": [4], "batch_norm": False, "dropout": 0.0},
    {"name": "cnn", "width": 2},
    {"name": "resnet18_reduced", "width": 2, "head": "linear"},
    {"name": "resnet18", "width": 2, "pool": True, "head": "linear", "weights": "none"},
    {"name": "resnet18", "width": 2, "pool": False, "head": "linear", "weights": "none"},
]


# --- parts -----------------------------------------------------------------------------------------------


def test_a_cosine_head_is_ten_cosines_whatever_the_lengths():
    """(3, 4) is 0.6 along the first axis and 0.8 along the second; weights of length 5 and 2."""
    head = heads.CosineLinear(2, 2)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[5.0, 0.0], [0.0, 2.0]]))
        torch.testing.assert_close(head(torch.tensor([[3.0, 4.0], [30.0, 40.0]])), torch.tensor([[6.0, 8.0]] * 2))


def test_a_block_ends_with_the_largest_of_each_two_by_two():
    torch.manual_seed(0)
    block, x = cnn.conv_block(2, 3).eval(), torch.rand(1, 2, 4, 4)
    before = block[:-1](x)
    expected = [[before[0, :, i : i + 2, j : j + 2].amax(dim=(1, 2)) for j in (0, 2)] for i in (0, 2)]
    torch.testing.assert_close(block(x)[0], torch.stack([torch.stack(row, dim=1) for row in expected], dim=1))


# --- a perceptron whose inputs enter several times -----------------------------------------------------------


def test_a_copied_pixel_counts_by_the_sum_of_its_weights():
    """By hand, weights 1 to 6: 1·(1 + 2 + 3) + 2·(4 + 5 + 6) = 36; of another seed 2·6 + 1·15 = 27."""
    net = stack(lambda: nets.build({"name": "mlp", "hidden": [], "copies": 3}, (1, 1, 2), 1), [0, 1])
    with torch.no_grad():
        weight, bias = net.parameters()
        weight.copy_(torch.arange(1.0, 7.0))
        bias.zero_()
        assert net(torch.tensor([[1.0, 2.0], [2.0, 1.0]]).view(2, 1, 1, 1, 2)).flatten().tolist() == [36, 27]


def test_copies_are_of_images_alone():
    """Of three copies the first layer is that of an image with three channels; a decoder does not copy its latent."""
    given = {"name": "mlp", "hidden": [5, 4]}
    copied, coloured = nets.build(given | {"copies": 3}, (1, 28, 28), 10), nets.build(given, (3, 28, 28), 10)
    assert [p.shape for p in copied.parameters()] == [p.shape for p in coloured.parameters()]
    assert mirrored(given | {"copies": 3}, (1, 28, 28)) == {"name": "mlp", "hidden": [4, 5]}


# --- the least image and the fewest items of a training batch -------------------------------------------------

OF_EVERY_NET = pytest.mark.parametrize("net", NETS, ids=lambda net: "-".join(map(str, net.values())))


@OF_EVERY_NET
def test_a_batch_of_one_trains_where_it_is_said_to(net):
    for shape in [(4, 4), (2, 3), (8, 8), (8, 9), (16, 16), (17, 16), (32, 32), (33, 2)]:
        if min(shape) < least_side(net):
            continue
        built = nets.build(net, (1, *shape), 3).train()
        try:
            built(torch.rand(1, 1, *shape))
            trains = True
        except ValueError:  # "Expected more than 1 value per channel when training"
            trains = False
        assert trains == (fewest(net, (*shape, 1)) == 1)
        built(torch.rand(2, 1, *shape))


@OF_EVERY_NET
def test_a_net_takes_images_of_its_least_side_and_none_of_less(net):
    least = least_side(net)
    for shape in ((least, least), (least, 9), (9, least)):
        nets.build(net, (1, *shape), 3).train()(torch.rand(2, 1, *shape)).sum().backward()
    for shape in ((least - 1, 9), (9, least - 1)) if least > 1 else ():
        with pytest.raises(RuntimeError, match="too small"):
            nets.build(net, (1, *shape), 3).train()(torch.rand(2, 1, *shape))


def test_every_net_of_a_paper_is_tried_here():
    assert {net["name"] for net in NETS} == set(DECLARED)


# --- the ResNet upside down ----------------------------------------------------------------------------------


def decoder(image, width=2):
    classes = image[0] * image[1] * image[2]
    return nets.build({"name": "resnet_decoder", "width": width, "image": image}, (6, 1, 1), classes)


@pytest.mark.parametrize("image", [[3, 32, 32], [1, 28, 28], [3, 8, 8], [2, 7, 12]])
def test_a_decoder_makes_images_that_are_other_ones_at_each_place(image):
    torch.manual_seed(0)
    made = decoder(image, width=8).eval()(torch.randn(5, 6, 1, 1))
    assert made.shape == (5, *image)
    assert (made.std(dim=0) > 0).all()
    assert (made.std(dim=(2, 3)) > 0).all()


def test_its_maps_are_as_large_as_those_of_the_resnet():
    """Side and number of channels of each stage, against those of the encoder it mirrors."""
    image, sides = (3, 28, 28), {}
    resnet = nets.build({"name": "resnet18_reduced", "width": 4, "head": "linear"}, image, 6)
    for net, part, x in ((decoder(list(image), 4), 0, torch.randn(2, 6, 1, 1)), (resnet, 1, torch.randn(2, *image))):
        sizes = sides[part] = {}
        for i in (1, 2, 3, 4):
            block = net.get_submodule(f"stage{i}.{part}")
            block.register_forward_hook(lambda m, _, y, i=i, sizes=sizes: sizes.update({i: tuple(y.shape[1:])}))
        net(x)
    assert sides[0] == sides[1] == {1: (4, 28, 28), 2: (8, 14, 14), 3: (16, 7, 7), 4: (32, 4, 4)}


# --- how nets begin, where that is not PyTorch's way ---------------------------------------------------------

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
