"""Batches of test items: so many that their maps stay in a CPU's cache, and all items once."""

import numpy as np
import pytest
import torch

from clpapers.runs.evaluation import answers
from clpapers.runs.images import Images


@pytest.mark.parametrize(
    ("side", "channels", "size"), [(28, 1, 391), (32, 3, 100), (64, 3, 25), (224, 3, 10), (2, 1, 500)]
)
def test_a_batch_has_as_many_values_whatever_the_images(side, channels, size):
    """100 × 32 × 32 × 3 = 307,200 values, but 10 to 500 images."""
    images = Images(np.zeros((1, side, side, channels), np.uint8), "unit", torch.device("cpu"), torch.float32)
    batches = list(answers._batches(images, 2 * size + 1))
    assert [each.stop - each.start for each in batches] == [size] * 3
    assert [each.start for each in batches] == [0, size, 2 * size]
