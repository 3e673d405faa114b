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
    for (x, y, *_), each in zip(make("some", spec, 3, 2).values(), (3, 2), strict=True):
        assert x.shape == (each * len(spec["classes"]), *spec["shape"])
        assert x.dtype == np.uint8
        assert (np.bincount(y) == each).all()


def test_equal_arguments_give_equal_bytes_and_names_do_not():
    one, two, other = (make(name, GREY, 4, 2)["train"].x.tobytes() for name in "aab")
    assert one == two != other


def test_train_and_test_share_no_image_and_use_the_grey_scale():
    train, test = (split.x for split in make("a", GREY, 20, 20).values())
    assert len({image.tobytes() for image in np.concatenate([train, test])}) == 400
    assert 100 < train.mean() < 155
    assert 20 < train.std() < 80
    assert np.isin(train, (0, 255)).mean() < 0.05


@pytest.mark.parametrize("spec", [COLOUR, GREY])
def test_a_small_net_learns_it_well_above_chance_but_not_wholly(spec):
    (x, y), (x_test, y_test) = ([torch.tensor(a) for a in split[:2]] for split in make("a", spec, 60, 30).values())
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


# --- frames of recordings ----------------------------------------------------------------------------------------

FILMED = made.entry((16, 16, 3), "abcdefghij", 1, 1, instances=3, test_set="categorization")


def nearest(x, others):
    """The nearest of `others` to each of `x`, by their pixels."""
    x, others = (images.reshape(len(images), -1).astype(np.float64) for images in (x, others))
    return (np.square(others).sum(1) - 2 * x @ others.T).argmin(1)


@pytest.mark.parametrize(("each", "sizes"), [(30, [10, 10, 10]), (20, [7, 7, 6]), (2, [1, 1])])
def test_instances_are_filmed_one_after_the_other(each, sizes):
    train, test = make("some", FILMED, each, 2).values()
    assert np.bincount(train.instance).tolist() == sizes * 10
    assert np.bincount(test.instance).tolist() == [2] * 10
    for instance in np.unique(train.instance):
        mine = train.instance == instance
        assert train.frame[mine].tolist() == list(range(mine.sum()))
        assert np.unique(train.y[mine]).tolist() == [instance // len(sizes)]


def test_a_frame_is_nearest_to_the_next_one():
    train = make("some", FILMED, 30, 2)["train"]
    x = train.x.reshape(300, -1).astype(np.float64)
    distance = np.square(x).sum(1) - 2 * x @ x.T
    np.fill_diagonal(distance, np.inf)
    closest = distance.argmin(1)
    assert (train.instance[closest] == train.instance).all()
    assert (np.abs(train.frame[closest] - train.frame) == 1).mean() > 0.9


@pytest.mark.parametrize(("test_set", "known"), [("demonstrator", True), ("categorization", False)])
def test_the_demonstrator_shows_a_known_object_and_categorization_a_new_one(test_set, known):
    """Another object or another hand is harder than the next frame, but no guess.

    Means over many frames, whose moves cancel, are nearest to the object's own.
    """
    train, test = make("some", FILMED | {"test_set": test_set}, 30, 10).values()
    assert 0.3 < (train.y[nearest(test.x, train.x)] == test.y).mean() < 0.9
    train, test = make("some", FILMED | {"test_set": test_set}, 600, 400).values()
    means = [np.stack([s.x[s.instance == i].mean(0) for i in range(s.instance.max() + 1)]) for s in (train, test)]
    first = (nearest(means[1], means[0]) == 3 * np.arange(10)).mean()
    assert (first > 0.45) == known
