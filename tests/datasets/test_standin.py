"""Stand-ins: shaped like the real set, deterministic, and of a difficulty at which methods can differ."""

import numpy as np
import official_formats as made
import pytest
import torch
from sklearn.linear_model import Ridge
from torch import nn

from clpapers.datasets.standin import attributes, make

COLOUR = made.entry((32, 32, 3), "abcdefghij", 1, 1)
GREY = made.entry((28, 28, 1), "abcdefghij", 1, 1)


@pytest.mark.parametrize("spec", [COLOUR, GREY, made.entry((64, 64, 3), map(str, range(20)), 1, 1)])
def test_shape_balance_and_sizes(spec):
    for (x, y, *_), each in zip(make("some", spec, 3, 2).values(), (3, 2), strict=True):
        assert x.shape == (each * len(spec["classes"]), *spec["shape"])
        assert x.dtype == np.uint8
        assert (np.bincount(y) == each).all()


def test_equal_arguments_give_equal_bytes_and_names_do_not_and_splits_share_no_image():
    one, two, other = (make(name, GREY, 20, 20) for name in "aab")
    images = np.concatenate([one["train"].x, one["test"].x])
    assert images.tobytes() == np.concatenate([two["train"].x, two["test"].x]).tobytes()
    assert len({image.tobytes() for image in [*images, *other["train"].x]}) == 600
    assert 100 < images.mean() < 155
    assert 20 < images.std() < 80
    assert np.isin(images, (0, 255)).mean() < 0.05


def flat(split):
    return split.x.reshape(len(split.x), -1) / np.float32(255) - 0.5, split.y


@pytest.mark.parametrize("spec", [COLOUR, GREY])
def test_a_small_net_learns_it_well_above_chance_but_not_wholly(spec):
    (x, y), (x_test, y_test) = (map(torch.tensor, flat(split)) for split in make("a", spec, 60, 30).values())
    torch.manual_seed(0)
    torch.set_num_threads(1)  # a net this small gains nothing from more
    net = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, 10))
    optimiser = torch.optim.SGD(net.parameters(), 0.05)
    for _ in range(6):
        for batch in torch.randperm(len(y)).split(10):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
            optimiser.step()
    assert 0.3 < (net(x_test).argmax(1) == y_test).float().mean() < 0.9


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


# --- attributes of classes ---------------------------------------------------------------------------------------


def test_attributes_are_sparse_and_none_where_the_real_set_has_none():
    wide = attributes("some", made.entry((6, 6, 3), map(str, range(30)), 1, 1, attributes=40))
    np.testing.assert_allclose(np.linalg.norm(wide, axis=1), 1, rtol=1e-6)
    assert ((wide > 0).sum(1) == 6).all()  # 15 % of 40
    assert (wide >= 0).all()
    assert attributes("some", GREY) is None


def test_attributes_tell_what_classes_never_seen_look_like():
    """Attributes regressed on the pixels of 45 classes name the images of 15 others, far more often than chance."""
    spec = made.entry((12, 12, 3), map(str, range(60)), 1, 1, attributes=12)
    table = attributes("some", spec)
    (x, y), (x_new, y_new) = map(flat, make("some", spec, 20, 4).values())
    seen, centre = y < 45, table.mean(0)
    told = Ridge(30).fit(x[seen], (table - centre)[y[seen]]).predict(x_new[y_new >= 45]) @ (table - centre)[45:].T
    assert (told.argmax(1) == y_new[y_new >= 45] - 45).mean() > 3 / 15
