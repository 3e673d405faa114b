"""Batches of images as one."""

import torch

from clpapers.runs.images import joined


def test_batches_joined_are_those_of_cat_and_stay_channels_last():
    one, two = (torch.randn(2, n, 5, 4, 3).movedim(-1, -3) for n in (3, 7))
    both = joined(one, two)
    assert both.equal(torch.cat([one, two], dim=1))
    assert both.movedim(-3, -1).is_contiguous()
