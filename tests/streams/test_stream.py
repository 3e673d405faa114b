"""Stream files: written and read back, and refused once damaged."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clpapers.provenance import ProvenanceError, recording
from clpapers.streams import orders, stream

LABELS = np.repeat(np.arange(10), 20)
ALL = [
    {"name": "stf", "mu_sigma": 0.1},
    {"name": "split", "tasks": 3},
    {"name": "split_two", "tasks": 3},
    {"name": "dominant", "share": 0.55},
    {"name": "split_ordered", "tasks": 3, "cycles": 2},
    {"name": "split_overlapping", "first": 2, "last": 7, "tasks": 5, "per_task": 3, "epochs": 2, "cycles": 3},
    {"name": "permuted_pixels", "tasks": 3},
    {"name": "permuted_pixels", "tasks": 3, "cycles": 2, "unpermuted_first": True},
    {"name": "permuted_pixels", "tasks": 1, "length": 20},
    {"name": "random", "length": 50},
    {"name": "offline", "items": 450},
]


@pytest.fixture
def split():
    return orders.make({"name": "split", "tasks": 4}, LABELS, 2)


@pytest.mark.parametrize("order", ALL)
def test_round_trip(tmp_path, order):
    made = orders.make(order, LABELS, 3, pixels=12)
    stream.save(made, tmp_path / "seed3.npz")
    read = stream.load(tmp_path / "seed3.npz", items=200)
    for name in ("indices", "timestamps", "class_parameters", "boundaries", "transforms"):
        np.testing.assert_array_equal(getattr(read, name), getattr(made, name))
    assert read.seed == 3


def test_a_stream_of_other_items_is_refused(tmp_path, split):
    path, data = tmp_path / "seed2.npz", ("mnist", stream.ITEM_ORDER, "12ae91d263381e92")
    stream.save(replace(split, data=data), path)
    assert stream.load(path, 200, "12ae91d263381e92").data == stream.load(path).data == data
    with pytest.raises(ValueError, match=r"seed2.npz: .* mnist with checksum 12ae91d26338…, .* fa9de5.*; delete"):
        stream.load(path, 200, "fa9de56e23dfde29")


def test_what_indices_point_into_is_told_by_the_record_of_the_data_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    facts = {"source": "npm", "proof": "sum", "standin": False, "partial": False, "owner": "a", "licence": "b"}
    for name, of in (("mnist", "mnist"), ("cifar100_resnet50", "cifar100")):
        with recording("datasets", [Path(f"{name}.npz")], [], "c0de") as record:
            Path(f"{name}.npz").write_text(name)
            record["data"] = {of: facts | {"sha256": {"train": "12ae", "test": "1f65"}}}
    assert stream.data_of("mnist", Path("mnist.npz")) == ("mnist", stream.ITEM_ORDER, "12ae")
    own = hashlib.sha256(b"cifar100_resnet50").hexdigest()
    assert stream.data_of("cifar100_resnet50", Path("cifar100_resnet50.npz"))[1:] == ("as in its file", own)
    assert stream.data_of("toy-3-2", None)[2] == ""
    with pytest.raises(ProvenanceError, match="no record"):
        stream.data_of("mnist", Path("other.npz"))


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_infinite_and_zero_parameters_survive(tmp_path, split, sigma):
    parameters = orders.stf.distributions(np.full(10, sigma), np.random.default_rng(0))
    stream.save(replace(split, class_parameters=parameters), tmp_path / "a.npz")
    np.testing.assert_array_equal(stream.load(tmp_path / "a.npz").class_parameters, parameters)


def test_equal_streams_make_equal_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        stream.save(orders.make(ALL[0], LABELS, 0), tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def changed(array, position, value):
    array = array.copy()
    array[position] = value
    return array


@pytest.mark.parametrize(
    ("tamper", "complaint"),
    [
        (lambda s: {"indices": changed(s.indices, 0, s.indices[1])}, "occurs more than once"),
        (lambda s: {"indices": changed(s.indices, 0, -1)}, "indices: -1 to 199, outside"),
        (lambda s: {"indices": changed(s.indices, 0, 200)}, "to 200, outside a training split of 200"),
        (lambda s: {"indices": s.indices.astype(np.int32)}, "indices: int32 instead of int64"),
        (lambda s: {"indices": s.indices[:, None]}, r"indices: shape \(200, 1\)"),
        (lambda s: {"timestamps": s.timestamps[1:]}, r"timestamps: shape \(199,\)"),
        (lambda s: {"timestamps": changed(s.timestamps, 7, np.nan)}, "timestamps: not ascending"),
        (lambda s: {"timestamps": s.timestamps + 0.5}, "timestamps: not ascending"),
        (lambda s: {"class_parameters": s.class_parameters[:, :3]}, "class_parameters: shape"),
        (lambda s: {"boundaries": changed(s.boundaries, 0, 0)}, "boundaries: not ascending"),
        (lambda s: {"boundaries": changed(s.boundaries, -1, 200)}, "boundaries: not ascending"),
        (lambda s: {"indices": np.tile(s.indices[:100], 2)[np.r_[0:99, 0, 100:200]]}, "occurs more than once"),
        (lambda s: {"indices": changed(s.indices, 0, s.indices[-1])},
         "occurs more than once, in chunks that otherwise"),
        (lambda s: {"transforms": np.tile(np.arange(6), (3, 1))},
         r"transforms: shape \(3, 6\), .* each task of 4 chunks"),
        (lambda s: {"transforms": np.empty((0, 6), dtype=np.int64)}, r"transforms: shape \(0, 6\)"),
        (lambda s: {"transforms": np.tile([0, 1, 1], (4, 1))}, r"transforms: shape \(4, 3\), not a permutation"),
        (lambda s: {"seed": -1}, "seed"),
        (lambda s: {"data": ("mnist", "by label")}, r"data: shape \(2,\) instead of \[3\]"),
        (lambda s: {"data": (0, 1, 2)}, "data: int64 instead of str"),
    ],
)  # fmt: skip
def test_what_is_no_stream_is_refused(tmp_path, split, tamper, complaint):
    path = tmp_path / "seed2.npz"
    stream.save(replace(split, **tamper(split)), path)
    with pytest.raises(ValueError, match=f"seed2.npz: .*{complaint}"):
        stream.load(path, items=200)


def test_damaged_files_are_refused(tmp_path, split):
    path = tmp_path / "seed2.npz"
    stream.save(split, path)
    whole = path.read_bytes()
    middle = len(whole) // 3
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for damaged in (b"", b"not a zip", whole[:-30], whole[:middle], flipped):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"seed2.npz: not a stream file"):
            stream.load(path)


def test_other_archives_and_arrays_are_refused(tmp_path, split):
    np.save(tmp_path / "array.npy", split.indices)
    with pytest.raises(ValueError, match=r"array.npy: not a stream file"):
        stream.load(tmp_path / "array.npy")
    np.savez(tmp_path / "other.npz", indices=split.indices)
    with pytest.raises(ValueError, match=r"other.npz: holds indices instead of indices, timestamps"):
        stream.load(tmp_path / "other.npz")
    np.savez(tmp_path / "pickled.npz", indices=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"pickled.npz: not a stream file"):
        stream.load(tmp_path / "pickled.npz")


@pytest.mark.parametrize(
    ("boundaries", "n", "batch", "ends"),
    [
        ([], 10, 4, [4, 8, 10]),
        ([], 8, 4, [4, 8]),
        ([], 3, 4, [3]),
        ([5], 10, 4, [4, 5, 9, 10]),
        ([4, 8], 10, 4, [4, 8, 10]),
        ([1, 2], 4, 10, [1, 2, 4]),
        ([5], 12, "task", [5, 12]),
        ([], 10, "task", [10]),
    ],
)
def test_batches_by_hand(boundaries, n, batch, ends):
    found = stream.batches(np.array(boundaries, dtype=np.int64), n, batch)
    assert found.tolist() == ends
    assert found.dtype == np.int64


def test_a_last_batch_of_fewer_than_the_least_joins_the_one_before_it():
    assert stream.batches(np.array([5]), 11, 4, least=2).tolist() == [5, 9, 11]
    assert stream.batches(np.array([5]), 11, 4, least=3).tolist() == [5, 11]
    assert stream.batches(np.array([5]), 11, 4, least=1).tolist() == [4, 5, 9, 11]


def test_a_task_in_epochs_is_a_batch_an_epoch():
    """Tasks of 4 and 2 items, three epochs of each."""
    assert stream.batches(np.array([12]), 18, "task", epochs=3).tolist() == [4, 8, 12, 14, 16, 18]
    assert stream.batches(np.array([12]), 18, 5, epochs=3).tolist() == [5, 10, 12, 17, 18]


@given(st.sets(st.integers(1, 199)), st.integers(1, 250))
def test_batches_never_cross_a_boundary(boundaries, batch):
    ends = stream.batches(np.array(sorted(boundaries), dtype=np.int64), 200, batch)
    sizes = np.diff(ends, prepend=0)
    assert ((sizes > 0) & (sizes <= batch)).all()
    assert boundaries <= set(ends.tolist())
    short = set(ends[sizes < batch].tolist())
    assert short <= boundaries | {200}  # only what is left of a chunk
