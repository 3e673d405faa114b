"""Images by index, batches of them as one, and their layout in memory."""

import pytest
import torch
from tiny import CPU, OPTIONS, cell, setting

from clpapers.runs import images, learners
from clpapers.runs.images import joined


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
@pytest.mark.parametrize("learner", ["er", "gmed"])
def test_both_layouts_teach_the_same(learner, seeds, net, steps, data, streams, monkeypatch):
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

    torch.testing.assert_close(losses(True), losses(False), rtol=1e-12, atol=1e-12)
