"""What a data set's file says of its images."""

import numpy as np

from clpapers.datasets.arrays import Split, save
from clpapers.datasets.header import image_shape


def test_the_header_tells_the_shape_of_the_training_images(tmp_path):
    train, test = (Split(np.zeros((n, 5, 7, 3), np.uint8), np.zeros(n, np.int64)) for n in (4, 2))
    save(tmp_path / "d.npz", {"train": train, "test": test}, ["a"])
    assert image_shape(tmp_path / "d.npz") == (5, 7, 3)


def test_features_are_images_of_one_pixel(tmp_path):
    train, test = (Split(np.zeros((n, 1, 1, 2048), np.float32), np.zeros(n, np.int64)) for n in (4, 2))
    save(tmp_path / "d.npz", {"train": train, "test": test}, ["a"])
    assert image_shape(tmp_path / "d.npz") == (1, 1, 2048)
