"""Canonical order, checksum and the .npz file."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clpapers.datasets.arrays import Split, canonical, checksum, instances, labels, load, save, table_checksum
from clpapers.datasets.header import image_shape


def some(n=40, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    return Split(rng.integers(0, 256, (n, 3, 2, 1), dtype=np.uint8), rng.integers(0, classes, n))


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_order_is_by_label_then_by_sha256_of_the_pixels_whatever_their_layout_in_memory(layout):
    x, y, *_ = some()
    expected = sorted(range(len(y)), key=lambda i: (y[i], hashlib.sha256(x[i].tobytes()).hexdigest()))
    found = canonical(Split(layout(x), y))
    np.testing.assert_array_equal(found.x, x[expected])
    np.testing.assert_array_equal(found.y, y[expected])
    assert checksum(found) == checksum(Split(layout(x[expected]), y[expected]))


@pytest.mark.parametrize("recorded", [False, True])
def test_checksums_worked_by_hand(recorded):
    columns = [[0, 1], [2, 0], [0, 3]][: 3 if recorded else 1]  # labels, instances, frames
    line = b"uint8 [2, 1, 1, 1] int64 [2]" + b" int64 [2] int64 [2]" * recorded
    numbers = b"".join(bytes([number, *bytes(7)]) for column in columns for number in column)
    split = Split(np.array([7, 9], np.uint8).reshape(2, 1, 1, 1), *map(np.array, columns))
    assert checksum(split) == hashlib.sha256(line + b"\n\x07\x09" + numbers).hexdigest()


def test_the_checksum_of_a_table_worked_by_hand():
    table = np.array([[1.0, 0.0]], np.float32)
    assert table_checksum(table) == hashlib.sha256(b"float32 [1, 2]\n\x00\x00\x80\x3f" + bytes(4)).hexdigest()
    assert table_checksum(table.T) != table_checksum(table)


def recorded(n=40, seed=0):
    """As `some`, twice over: each image is a frame of two instances of its class, three instances a class."""
    x, y, *_ = some(n // 2, seed=seed)
    x, y = np.concatenate([x, x]), np.concatenate([y, y])
    return Split(x, y, 3 * y + np.arange(n) % 3, np.arange(n) // 2)


@given(st.permutations(range(40)))
def test_instance_and_frame_stay_with_their_image_and_settle_the_order_of_equal_ones(order):
    split = recorded()
    mixed, plain = canonical(Split(*(array[order] for array in split))), canonical(split)
    for here, there in zip(mixed, plain):
        np.testing.assert_array_equal(here, there)
    known = {(pixels.tobytes(), *rest) for pixels, *rest in zip(*split)}
    assert {(pixels.tobytes(), *rest) for pixels, *rest in zip(*plain)} == known
    np.testing.assert_array_equal(plain.x, canonical(Split(split.x, split.y)).x)


@pytest.mark.parametrize("train", [some(), recorded()])
def test_saved_arrays_come_back_split_by_split_in_equal_bytes(train, tmp_path):
    splits = {"train": train, "test": some(10, seed=1)}
    for name in ("set", "again"):
        save(tmp_path / f"{name}.npz", splits, ["a", "b", "c", "d"])
    for name, split in splits.items():
        stored = load(tmp_path / "set.npz", name)
        for here, there in zip(stored, split, strict=True):
            np.testing.assert_array_equal(here, there)
        np.testing.assert_array_equal(labels(tmp_path / "set.npz", name), split.y)
    found = instances(tmp_path / "set.npz")
    assert (found is None) == (train.instance is None)
    assert found is None or all(map(np.array_equal, found, train[2:]))
    with np.load(tmp_path / "set.npz", allow_pickle=False) as stored:
        assert list(stored["classes"]) == ["a", "b", "c", "d"]
        assert "attributes" not in stored
    assert (tmp_path / "set.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()


@pytest.mark.parametrize(("shape", "dtype"), [((5, 7, 3), np.uint8), ((1, 1, 2048), np.float32)])
def test_the_header_tells_the_shape_of_the_training_images_and_features_are_of_one_pixel(shape, dtype, tmp_path):
    train, test = (Split(np.zeros((n, *shape), dtype), np.zeros(n, np.int64)) for n in (4, 2))
    save(tmp_path / "d.npz", {"train": train, "test": test}, ["a"])
    assert image_shape(tmp_path / "d.npz") == shape
