"""Stand-ins: shaped like the real set, deterministic, and of a difficulty at which methods can differ."""

import numpy as np
import official_formats as made
import pytest
import torch

from clpapers.datasets.standin import make

COLOUR = made.entry((32, 32, 3), "abcdefghij", 1, 1)
GREY = made.entry((28, 28, 1), "abcdefghij", 1, 1)


@pytest.mark.parametrize("spec", [COLOUR, GREY, made.entry((64, 64, 3), map(str, range(20)), 1, 1)])
def test_shape_balance_and_sizes(spec):
    splits = make("some", spec, 3, 2)
    for split, each in (("train", 3), ("test", 2)):
        x, y, *_ = splits[split]
        assert x.shape == (each * len(spec["classes"]), *spec["shape"])
        assert x.dtype == np.uint8
        assert (np.bincount(y) == each).all()


def test_equal_arguments_give_equal_bytes_and_names_do_not():
    one, two, other = make("a", GREY, 4, 2), make("a", GREY, 4, 2), make("b", GREY, 4, 2)
    assert one["train"].x.tobytes() == two["train"].x.tobytes()
    assert one["train"].x.tobytes() != other["train"].x.tobytes()


def test_train_and_test_share_no_image_and_use_the_grey_scale():
    splits = make("a", GREY, 20, 20)
    images = [{image.tobytes() for image in splits[split].x} for split in ("train", "test")]
    assert len(images[0]) == 200
    assert not images[0] & images[1]
    x = splits["train"].x
    assert 100 < x.mean() < 155
    assert 20 < x.std() < 80
    assert np.isin(x, (0, 255)).mean() < 0.05


@pytest.mark.parametrize("spec", [COLOUR, GREY])
def test_a_small_net_learns_it_well_above_chance_but_not_wholly(spec):
    splits = make("a", spec, 60, 30)
    x, y = (torch.tensor(a) for a in splits["train"][:2])
    x_test, y_test = (torch.tensor(a) for a in splits["test"][:2])
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a net this small gains nothing from more
    net = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(x[0].numel(), 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
    )
    optimiser = torch.optim.SGD(net.parameters(), 0.05)
    for _ in range(6):
        for batch in torch.randperm(len(y)).split(10):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(x[batch] / 255 - 0.5), y[batch]).backward()
            optimiser.step()
    accuracy = (net(x_test / 255 - 0.5).argmax(1) == y_test).float().mean().item()
    assert 0.3 < accuracy < 0.9
