"""Arrays in pieces: what is put together has the bytes of what was taken apart, or is refused."""

import numpy as np
import pytest

from clpapers.bundle import packing
from clpapers.bundle.packing import cached_pieces, join, pieces


def again(file, tmp_path):
    held = dict(pieces(file))
    join(held.__getitem__, tmp_path / "again.npz")
    return held


@pytest.mark.parametrize("images", [1, 499, 500, 501])
def test_colour_images_travel_as_mosaics_and_come_back_to_the_byte(images, tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MANY", 0)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (images, 4, 6, 3), dtype=np.uint8)
    np.savez(tmp_path / "d.npz", train_x=x, train_y=np.arange(images), classes=np.array(["ä", "b"]))
    held = again(tmp_path / "d.npz", tmp_path)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "d.npz").read_bytes()
    assert sum(name.endswith("webp") for name in held) == -(-images // 500)


def test_other_arrays_need_no_package(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    arrays = {"x": np.zeros((3, 2, 2, 1), np.uint8), "w": np.ones((2, 3), np.float32), "n": np.empty((0, 4))}
    np.savez(tmp_path / "d.npz", **arrays)
    again(tmp_path / "d.npz", tmp_path)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "d.npz").read_bytes()


def test_a_piece_that_is_another_is_refused_and_nothing_is_written(tmp_path):
    for name, value in (("one", 1), ("other", 2)):
        np.savez(tmp_path / f"{name}.npz", x=np.full((2, 2), value))
    held, wrong = (dict(pieces(tmp_path / f"{name}.npz")) for name in ("one", "other"))
    held["rest.npz"] = wrong["rest.npz"]
    with pytest.raises(ValueError, match=r"again\.npz: not the bytes that were packed"):
        join(held.__getitem__, tmp_path / "again.npz")
    assert not (tmp_path / "again.npz").exists()


def test_pieces_are_kept_until_the_file_is_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "d.npz", x=np.arange(5))
    first = dict(cached_pieces(tmp_path / "d.npz"))
    assert first == dict(pieces(tmp_path / "d.npz"))
    with monkeypatch.context() as without:
        without.setattr(packing, "pieces", None)
        assert dict(cached_pieces(tmp_path / "d.npz")) == first
    np.savez(tmp_path / "d.npz", x=np.arange(6))
    assert dict(cached_pieces(tmp_path / "d.npz")) == dict(pieces(tmp_path / "d.npz")) != first


def test_a_stream_takes_few_bytes(tmp_path):
    """Indices below 2¹⁶ two each, and positions none."""
    order = np.random.default_rng(0).permutation(50_000)
    arrays = {"indices": order, "timestamps": np.arange(50_000, dtype=float) / 50_000, "seed": np.int64(-3)}
    np.savez(tmp_path / "d.npz", **arrays)
    held = again(tmp_path / "d.npz", tmp_path)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "d.npz").read_bytes()
    assert sum(map(len, held.values())) < 2.1 * 50_000
