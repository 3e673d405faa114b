"""Images by index, how they are scaled, batches of them as one, and their layout in memory."""

import numpy as np
import pytest
import torch
from tiny import CPU, OPTIONS, cell, setting

from clpapers.datasets._torchvision import module
from clpapers.datasets.imagenet import NORMALISATION
from clpapers.runs import images, learners
from clpapers.runs.images import Images, joined
from clpapers.runs.memories import Memory


def test_batches_joined_are_those_of_cat_and_stay_channels_last():
    one, two = (torch.randn(2, n, 5, 4, 3).movedim(-1, -3) for n in (3, 7))
    both = joined(one, two)
    assert both.equal(torch.cat([one, two], dim=1))
    assert both.movedim(-3, -1).is_contiguous()


def test_a_cpu_takes_channels_last_and_a_gpu_in_tf32(monkeypatch):
    gpu = torch.device("cuda")
    assert images.channels_last(CPU)
    for tf32 in (False, True):
        monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", tf32)
        assert images.channels_last(gpu) is tf32


@pytest.mark.parametrize(("net", "steps"), [("cnn", 4), ("resnet", 2)])  # rounding grows step by step
@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize(("learner", "within"), [("er", 1e-12), ("gmed", 1e-10)])  # an edit of pixels widens rounding
def test_both_layouts_teach_the_same(learner, within, seeds, net, steps, data, streams, monkeypatch):
    spec = cell(learner, OPTIONS[learner] | {"forward": "joint"}, net)

    def losses(last):
        monkeypatch.setattr(images, "channels_last", lambda device: last)
        given = setting(spec, data, {seed: streams[seed] for seed in range(seeds)})
        made = learners.create(spec["learner"], given)
        found = []
        for t in range(steps):
            x = given.images(given.items[:, given.step(t)])
            assert x.movedim(-3, -1).is_contiguous() is last
            assert x.is_contiguous() is not last
            found.append(made.observe(t, x, given.labels[:, given.step(t)]).loss.detach())
        return torch.stack(found)

    torch.testing.assert_close(losses(True), losses(False), rtol=within, atol=within)


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
