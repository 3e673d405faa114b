"""Canonical order, checksum and the .npz file."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clpapers.datasets.arrays import Split, canonical, checksum, instances, labels, load, save


def some(n=40, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    return Split(rng.integers(0, 256, (n, 3, 2, 1), dtype=np.uint8), rng.integers(0, classes, n))


@given(st.permutations(range(40)))
def test_order_of_the_source_does_not_matter(order):
    x, y, *_ = some()
    mixed = canonical(Split(x[order], y[order]))
    plain = canonical(Split(x, y))
    np.testing.assert_array_equal(mixed.x, plain.x)
    np.testing.assert_array_equal(mixed.y, plain.y)


def test_order_is_by_label_then_by_sha256_of_the_pixels():
    x, y, *_ = some()
    expected = sorted(range(len(y)), key=lambda i: (y[i], hashlib.sha256(x[i].tobytes()).hexdigest()))
    np.testing.assert_array_equal(canonical(Split(x, y)).x, x[expected])


def test_images_keep_their_labels():
    x, y, *_ = some()
    known = {image.tobytes(): label for image, label in zip(x, y)}
    assert all(known[image.tobytes()] == label for image, label in zip(*canonical(Split(x, y))[:2]))


def test_order_sees_pixels_not_their_layout_in_memory():
    x, y, *_ = some()
    turned = np.asfortranarray(x)
    assert checksum(canonical(Split(turned, y))) == checksum(canonical(Split(x, y)))


def test_checksum_of_a_case_worked_by_hand():
    split = Split(np.array([7, 9], np.uint8).reshape(2, 1, 1, 1), np.array([0, 1]))
    stored = b"uint8 [2, 1, 1, 1] int64 [2]\n" + b"\x07\x09" + bytes(8) + b"\x01" + bytes(7)
    assert checksum(split) == hashlib.sha256(stored).hexdigest()


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


def test_checksum_with_instances_worked_by_hand():
    split = Split(np.full((1, 1, 1, 1), 7, np.uint8), np.array([1]), np.array([2]), np.array([3]))
    numbers = b"\x01" + bytes(7) + b"\x02" + bytes(7) + b"\x03" + bytes(7)
    stored = b"uint8 [1, 1, 1, 1] int64 [1] int64 [1] int64 [1]\n\x07" + numbers
    assert checksum(split) == hashlib.sha256(stored).hexdigest()


def test_instances_are_read_back_and_none_where_there_are_none(tmp_path):
    train = recorded()
    save(tmp_path / "set.npz", {"train": train, "test": some(10, seed=1)}, ["a", "b", "c", "d"])
    for here, there in zip(load(tmp_path / "set.npz", "train"), train):
        np.testing.assert_array_equal(here, there)
    assert load(tmp_path / "set.npz", "test").instance is None
    np.testing.assert_array_equal(instances(tmp_path / "set.npz"), train[2:])
    save(tmp_path / "plain.npz", {"train": some(), "test": some()}, ["a", "b", "c", "d"])
    assert instances(tmp_path / "plain.npz") is None


@pytest.mark.parametrize("change", ["pixel", "label", "shape"])
def test_checksum_sees_every_change(change):
    x, y, *_ = some()
    other = Split(x.copy(), y.copy())
    if change == "pixel":
        other.x[-1, -1, -1, -1] ^= 1
    elif change == "label":
        other.y[0] += 1
    else:
        other = Split(x.reshape(40, 2, 3, 1), y)
    assert checksum(other) != checksum(Split(x, y))


def test_saved_arrays_come_back_split_by_split(tmp_path):
    splits = {"train": some(40), "test": some(10, seed=1)}
    save(tmp_path / "set.npz", splits, ["a", "b", "c", "d"])
    for name, split in splits.items():
        stored = load(tmp_path / "set.npz", name)
        np.testing.assert_array_equal(stored.x, split.x)
        np.testing.assert_array_equal(stored.y, split.y)
        np.testing.assert_array_equal(labels(tmp_path / "set.npz", name), split.y)
    with np.load(tmp_path / "set.npz", allow_pickle=False) as stored:
        assert list(stored["classes"]) == ["a", "b", "c", "d"]


def test_equal_arrays_give_equal_files(tmp_path):
    for name in ("one", "two"):
        save(tmp_path / f"{name}.npz", {"train": some(), "test": some()}, ["a", "b", "c", "d"])
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
