"""What no order, no stream file and no data set of a stream may be, by `cases.yaml`."""

# ruff: noqa: F401, F811, names that cases.yaml uses and fixtures
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import refusals
import torch
from test_dataset import N, Own, found, official, there
from test_oracles import DOM, split
from test_orders import LABELS, OVERLAPPING, SPLIT
from test_stream import LABELS as TWENTY
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, TensorDataset

from clpapers import streams
from clpapers.datasets import arrays
from clpapers.datasets.arrays import Split
from clpapers.streams import oracles, orders, stream
from clpapers.streams.dataset import labels_of
from clpapers.streams.truncated_exponential import rate

PIXELS = np.zeros((4, 5, 3), np.uint8)
MISTAKES = {
    "one-hot": lambda y: np.eye(6)[y],
    "a column": lambda y: y[:, None],
    "a fraction": lambda y: y + 0.4,
    "no number": lambda y: np.where(y == 1, np.nan, y),
    "names": lambda y: np.array(["cat", "dog"])[y % 2],
}


class Streamed(IterableDataset):
    """Items without positions."""

    def __iter__(self):
        return iter([(PIXELS, 0)])


@pytest.fixture
def s():
    """A stream of four tasks over 200 items."""
    return orders.make({"name": "split", "tasks": 4}, TWENTY, 2)


def of_features(there):
    """The stream of a data set of features, in the place of another."""
    stream.save(replace(there.made, data=("cifar100_resnet50", "as in its file", "0" * 64)), there.file)


def features():
    """A file of features."""
    table = Split(np.zeros((2, 3), np.float32), np.arange(2))
    arrays.save(Path("features.npz"), {"train": table, "test": table}, ["a", "b"])
    return Path("features.npz")


def without_avalanche(monkeypatch):
    for name in ("avalanche", "avalanche.benchmarks"):
        monkeypatch.setitem(sys.modules, name, None)


def mistaken(mistake, given, right):
    """A data set whose labels are wrong, and what is given beside it."""
    wrong = Split(right.x, MISTAKES[mistake](right.y))
    data = list(zip(*wrong[:2])) if given == "items" else Own(right if given == "split" else wrong)
    return data, wrong if given == "split" else None


def changed(array, position, value):
    array = array.copy()
    array[position] = value
    return array


def damaged(s, damage):
    """A file of the stream whose bytes are damaged."""
    stream.save(s, Path("seed2.npz"))
    Path("seed2.npz").write_bytes(damage(Path("seed2.npz").read_bytes()))


def flipped(whole):
    middle = len(whole) // 3
    return whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]


test_refused, test_unedited = refusals.tests("streams", globals())
