"""Images by index, how they are scaled, batches of them as one, and their layout in memory."""

import numpy as np
import pytest
import torch
from tiny import CPU, OPTIONS, cell, setting

from clpapers.runs import images, learners
from clpapers.runs.images import Images, joined


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


def test_standardised_images_have_mean_0_and_deviation_1_in_each_channel():
    """And other images, those of a test, are scaled by the same numbers."""
    pixels = np.random.default_rng(0).integers(0, [60, 200, 256], (50, 4, 5, 3)).astype(np.uint8)
    found = Images(pixels, "standardised", CPU, torch.float64)
    x = found(torch.arange(50))
    torch.testing.assert_close(x.mean(dim=(0, 2, 3)), torch.zeros(3, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(x.std(dim=(0, 2, 3), correction=0), torch.ones(3, dtype=torch.float64))
    assert torch.equal(found.with_pixels(pixels[7:9])(torch.arange(2)), x[7:9])


def test_means_of_pixels_are_not_permuted_with_them():
    with pytest.raises(ValueError, match="scaling standardised: its means are not permuted"):
        Images(np.zeros((2, 2, 2, 1), np.uint8), "standardised", CPU, torch.float64, [np.eye(4)])
