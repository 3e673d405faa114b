"""Parts of nets by hand; the least images and batches; inputs that enter several times; the ResNet upside down."""

import pytest
import torch

from clpapers.config.parts import NETS as DECLARED
from clpapers.runs import nets
from clpapers.runs.learners.gr import mirrored
from clpapers.runs.nets import cnn, heads, resnet18_reduced
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


def test_all_stages_but_the_first_halve_the_maps_and_double_their_number():
    x, shapes = torch.zeros(1, 3, 16, 16), []
    for stage in resnet18_reduced.stages(3).values():
        x = stage.eval()(x)
        shapes.append(tuple(x.shape[1:]))
    assert shapes == [(3, 16, 16), (6, 8, 8), (12, 4, 4), (24, 2, 2)]


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
