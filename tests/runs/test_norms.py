"""The fewest items of a training batch, against what nets can be trained on."""

import pytest
import torch

from clpapers.runs import nets
from clpapers.runs.norms import fewest

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
    if net["name"] == "cnn" and min(shape) < 4:
        return  # it halves the sides twice
    built = nets.build(net, (1, *shape), 3).train()
    try:
        built(torch.rand(1, 1, *shape))
        trains = True
    except ValueError:  # "Expected more than 1 value per channel when training"
        trains = False
    assert trains == (fewest(net, (*shape, 1)) == 1)
    built(torch.rand(2, 1, *shape))
