"""The least image and the fewest items of a training batch, against what nets can be trained on."""

import pytest
import torch

from clpapers.config.parts import NETS as DECLARED
from clpapers.runs import nets
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


@pytest.mark.parametrize("net", NETS, ids=lambda net: "-".join(map(str, net.values())))
@pytest.mark.parametrize("shape", [(4, 4), (2, 3), (8, 8), (8, 9), (16, 16), (17, 16), (32, 32), (33, 2)])
def test_a_batch_of_one_trains_where_it_is_said_to(net, shape):
    if min(shape) < least_side(net):
        return
    built = nets.build(net, (1, *shape), 3).train()
    try:
        built(torch.rand(1, 1, *shape))
        trains = True
    except ValueError:  # "Expected more than 1 value per channel when training"
        trains = False
    assert trains == (fewest(net, (*shape, 1)) == 1)
    built(torch.rand(2, 1, *shape))


@pytest.mark.parametrize("net", NETS, ids=lambda net: "-".join(map(str, net.values())))
def test_a_net_takes_images_of_its_least_side_and_none_of_less(net):
    least = least_side(net)
    for shape in ((least, least), (least, 9), (9, least)):
        nets.build(net, (1, *shape), 3).train()(torch.rand(2, 1, *shape)).sum().backward()
    for shape in ((least - 1, 9), (9, least - 1)) if least > 1 else ():
        with pytest.raises(RuntimeError, match="too small"):
            nets.build(net, (1, *shape), 3).train()(torch.rand(2, 1, *shape))


def test_every_net_of_a_paper_is_tried_here():
    assert {net["name"] for net in NETS} == set(DECLARED)
