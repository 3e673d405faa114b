"""Stream files: written and read back, and refused once damaged."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_orders import AGAIN, ONCE, OVERLAPPING

from clpapers.provenance import recording
from clpapers.streams import orders, stream

LABELS = np.repeat(np.arange(10), 20)
ALL = [*ONCE, *AGAIN, OVERLAPPING | {"epochs": 2, "cycles": 3}, {"name": "permuted_pixels", "tasks": 1, "length": 20}]


@pytest.mark.parametrize("data", [("", "", ""), ("mnist", stream.ITEM_ORDER, "12ae91d263381e92")])
@pytest.mark.parametrize("order", ALL)
def test_a_stream_comes_back_and_equal_ones_make_equal_bytes(tmp_path, order, data):
    for name in ("seed3.npz", "again.npz"):
        made = replace(orders.make(order, LABELS, 3, pixels=12), data=data)
        stream.save(made, tmp_path / name)
    for asked in ([], [200, "12ae91d263381e92"]):
        read = stream.load(tmp_path / "seed3.npz", *asked)
        for field, value in vars(made).items():
            np.testing.assert_array_equal(getattr(read, field), value)
    assert (tmp_path / "seed3.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()


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


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_infinite_and_zero_parameters_survive(tmp_path, sigma):
    parameters = orders.stf.distributions(np.full(10, sigma), np.random.default_rng(0))
    stream.save(replace(orders.make(ONCE[1], LABELS, 2), class_parameters=parameters), tmp_path / "a.npz")
    np.testing.assert_array_equal(stream.load(tmp_path / "a.npz").class_parameters, parameters)


@pytest.mark.parametrize(
    ("boundaries", "n", "batch", "options", "ends"),
    [
        ([], 10, 4, {}, [4, 8, 10]),
        ([], 8, 4, {}, [4, 8]),
        ([], 3, 4, {}, [3]),
        ([5], 10, 4, {}, [4, 5, 9, 10]),
        ([4, 8], 10, 4, {}, [4, 8, 10]),
        ([1, 2], 4, 10, {}, [1, 2, 4]),
        ([5], 12, "task", {}, [5, 12]),
        ([], 10, "task", {}, [10]),
        ([5], 11, 4, {"least": 1}, [4, 5, 9, 11]),
        ([5], 11, 4, {"least": 2}, [5, 9, 11]),  # a last batch of fewer joins the one before it
        ([5], 11, 4, {"least": 3}, [5, 11]),
        ([12], 18, "task", {"epochs": 3}, [4, 8, 12, 14, 16, 18]),  # tasks of 4 and 2 items: a batch an epoch
        ([12], 18, 5, {"epochs": 3}, [5, 10, 12, 17, 18]),
    ],
)
def test_batches_by_hand(boundaries, n, batch, options, ends):
    found = stream.batches(np.array(boundaries, dtype=np.int64), n, batch, **options)
    assert (found.tolist(), found.dtype) == (ends, np.int64)


@given(st.sets(st.integers(1, 199)), st.integers(1, 250))
def test_batches_never_cross_a_boundary(boundaries, batch):
    ends = stream.batches(np.array(sorted(boundaries), dtype=np.int64), 200, batch)
    sizes = np.diff(ends, prepend=0)
    assert ((sizes > 0) & (sizes <= batch)).all()
    assert boundaries <= set(ends.tolist())
    short = set(ends[sizes < batch].tolist())
    assert short <= boundaries | {200}  # only what is left of a chunk
