"""Images by index, how they are scaled, batches of them as one, and their layout in memory."""

import numpy as np
import pytest
import torch
from tiny import CPU

from clpapers.datasets._torchvision import module
from clpapers.datasets.imagenet import NORMALISATION
from clpapers.runs.images import Images, joined
from clpapers.runs.memories import Memory


def test_batches_joined_are_those_of_cat_and_stay_channels_last():
    one, two = (torch.randn(2, n, 5, 4, 3).movedim(-1, -3) for n in (3, 7))
    both = joined(one, two)
    assert both.equal(torch.cat([one, two], dim=1))
    assert both.movedim(-3, -1).is_contiguous()


PIXELS, OTHERS = (np.random.default_rng(n).integers(0, [60, 200, 256], (n, 4, 5, 3)).astype(np.uint8) for n in (50, 9))


def imagenet(x):
    mean, deviation = (torch.tensor(each).view(3, 1, 1) for each in NORMALISATION)
    return (x / 255 - mean) / deviation


BY_HAND = {  # of x [N, C, H, W], and the training images
    "symmetric": lambda x, of: x / 127.5 - 1,
    "unit": lambda x, of: x / 255,
    "none": lambda x, of: x,
    "centred": lambda x, of: (x - of.mean(dim=0)) / 255,
    "standardised": lambda x, of: (
        (x - of.mean(dim=(0, 2, 3), keepdim=True)[0]) / of.std(dim=(0, 2, 3), correction=0, keepdim=True)[0]
    ),
    "imagenet": lambda x, of: imagenet(x),
}


@pytest.mark.parametrize("scaling", BY_HAND)
def test_images_of_training_and_of_a_test_are_scaled_by_the_same_numbers(scaling):
    found, of = Images(PIXELS, scaling, CPU, torch.float64), torch.from_numpy(PIXELS).double().movedim(-1, 1)
    torch.testing.assert_close(found(torch.arange(50)), BY_HAND[scaling](of, of))
    others = torch.from_numpy(OTHERS).double().movedim(-1, 1)
    torch.testing.assert_close(found.with_pixels(OTHERS)(torch.arange(9)), BY_HAND[scaling](others, of))


def test_imagenets_numbers_are_torchvisions():
    expected = module("models").ResNet18_Weights.IMAGENET1K_V1.transforms()
    assert (tuple(expected.mean), tuple(expected.std)) == NORMALISATION


def test_features_stay_as_they_are_and_count_four_bytes_a_number():
    features = np.random.default_rng(0).random((7, 1, 1, 5), dtype=np.float32)
    found = Images(features, "none", CPU, torch.float32)
    assert torch.equal(found(torch.arange(7))[..., 0, 0], torch.from_numpy(features[:, 0, 0]))
    items, labels = torch.arange(6)[None], torch.zeros((1, 6), dtype=torch.int64)
    assert Memory("reservoir", 3, found, items, labels, np.array([3, 6]), [0]).bytes_an_item == 20


def test_many_images_are_permuted_as_few():
    """Also where more than a block of them are gathered."""
    rng = np.random.default_rng(0)
    permutations = [np.stack([rng.permutation(60) for _ in range(2)]) for _ in range(2)]
    found, items = Images(PIXELS, "unit", CPU, torch.float64, permutations), torch.randint(100, (2, 5000))
    whole = found(items)
    assert all(torch.equal(whole[:, now], found(items[:, now])) for now in (slice(50), slice(4090, 4100)))
