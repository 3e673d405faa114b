"""Data sets in the order of a stream file: torchvision's own order mapped, batches, an Avalanche benchmark."""

import importlib
import pickle
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Subset, TensorDataset

from clpapers import streams
from clpapers.datasets._torchvision import module
from clpapers.datasets.arrays import Split, canonical, checksum
from clpapers.datasets.arrays import save as save_arrays
from clpapers.streams import orders
from clpapers.streams.dataset import class_numbers
from clpapers.streams.stream import DTYPES, ITEM_ORDER, batches, save

PAGE = (Path(__file__).parents[2] / "docs/streams.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)
SPLIT = {"name": "split", "tasks": 3}
N = 120


@pytest.fixture
def official():
    """Images in no order, as an official file might have them, a pair of them alike."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (N, 4, 5, 3), dtype=np.uint8), rng.permutation(np.arange(N) % 6)
    x[7], y[7] = x[3], y[3]
    return Split(x, y)


class Own:
    """A map-style data set as torchvision's CIFAR-10: `data`, `targets`, a transform."""

    def __init__(self, split, transform=lambda image: torch.from_numpy(image).movedim(-1, 0) / 255):
        self.data, self.targets, self.transform = split.x, split.y.tolist(), transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.transform(self.data[i]), self.targets[i]


def written(folder, split, order=SPLIT, pixels=None):
    """The file of seed 1's stream of a training split, the stream, and what its positions hold."""
    placed = canonical(split)
    recorded = None if split.instance is None else (placed.instance, placed.frame)
    made = orders.make(order, placed.y, 1, pixels, recorded)
    save(replace(made, data=("mine", ITEM_ORDER, checksum(placed))), folder / "seed1.npz")
    held = Split(*(None if column is None else column[made.indices] for column in placed))
    return SimpleNamespace(file=folder / "seed1.npz", made=made, x=held.x, y=held.y, frame=held.frame, placed=placed)


@pytest.fixture
def there(tmp_path, official):
    return written(tmp_path, official)


@pytest.fixture
def found(there, official):
    return streams.StreamDataset(Own(official), there.file)


def of_torchvision(split):
    """CIFAR10 of torchvision, whose order is the official files'."""
    own = object.__new__(module("datasets").CIFAR10)
    own.data, own.targets, own.transform, own.target_transform = split.x, split.y.tolist(), np.asarray, None
    return own


def of_dictionaries(split, image, label):
    return [{"id": i, label: int(y), image: Image.fromarray(x)} for i, (x, y) in enumerate(zip(*split[:2]))]


KEYS = [("image", "label"), ("img", "fine_label"), ("pixel_values", "labels"), ("x", "y"), ("image", "target")]
FORMS = {
    "torchvision's": of_torchvision,
    "arrays": Own,
    "tensors": lambda split: TensorDataset(torch.from_numpy(split.x).movedim(-1, 1), torch.from_numpy(split.y)),
    "tensors as torchvision's": lambda split: Own(Split(*map(torch.from_numpy, split[:2])), lambda image: image),
    "PIL images": lambda split: [(Image.fromarray(x), y) for x, y in zip(*split[:2])],
    "given": lambda split: [(x / 2, y) for x, y in zip(*split[:2])],
    **{f"at {keys}": lambda split, keys=keys: of_dictionaries(split, *keys) for keys in KEYS},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_position_holds_the_image_that_the_pipeline_trains_on(there, official, form):
    found = streams.StreamDataset(FORMS[form](official), there.file, official if form == "given" else None)
    np.testing.assert_array_equal(official.x[found.indices], there.x)
    np.testing.assert_array_equal(official.y[found.indices], there.y)
    assert sorted(found.indices) == list(range(N))
    assert [int(item.label) for item in found] == there.y.tolist()


def test_an_item_has_its_task_its_time_and_whether_it_is_first(there, found):
    starts = [0, *there.made.boundaries]
    assert len(found) == len(list(found)) == N
    for position in (0, 1, starts[1] - 1, starts[1], starts[2], N - 1):
        image, label, task, time, boundary = found[position]
        np.testing.assert_array_equal(image.movedim(0, -1) * 255, there.x[position])
        assert (label, time) == (there.y[position], there.made.timestamps[position])
        assert task == sum(position >= start for start in starts) - 1
        assert boundary == (position in starts[1:])
    assert found[-1].timestamp == there.made.timestamps[-1]
    with pytest.raises(IndexError):
        found[N]


def test_batches_follow_the_stream_as_the_pipelines_do(there, found):
    sampler = streams.StreamBatchSampler(found, 7)
    loaded = list(DataLoader(found, batch_sampler=sampler))
    ends = batches(there.made.boundaries, N, 7)
    assert len(sampler) == len(loaded) == len(ends)
    np.testing.assert_array_equal(torch.cat([batch.label for batch in loaded]), there.y)
    assert [len(batch.label) for batch in loaded] == np.diff(ends, prepend=0).tolist()
    assert all(len(set(batch.task.tolist())) == 1 for batch in loaded)
    assert sum(batch.boundary.sum().item() for batch in loaded) == 2


@pytest.mark.parametrize(
    "convert", [Image.fromarray, lambda image: image, lambda image: torch.from_numpy(image).movedim(-1, 0)]
)
def test_pixels_are_permuted_as_the_pipeline_permutes_them(tmp_path, official, convert):
    """Value j of an image is value transforms[task, j] of the data set's, as [H, W, C] lies in memory."""
    there = written(tmp_path, official, {"name": "permuted_pixels", "tasks": 2}, 60)
    found = streams.StreamDataset(Own(official, convert), there.file)
    assert len(found) == 2 * N
    for position in (0, N - 1, N, 2 * N - 1):
        image, expected = found[position].image, there.x[position].reshape(-1)[there.made.transforms[position // N]]
        assert isinstance(image, type(convert(official.x[0])))
        laid = image.movedim(0, -1) if torch.is_tensor(image) else np.asarray(image)
        np.testing.assert_array_equal(laid.reshape(-1), expected)


def test_grey_images_may_lie_transposed_as_torchvisions_emnist_does(tmp_path, official):
    there = written(tmp_path, Split(official.x[:, :, :4, :1], official.y))
    lying = Split(official.x[:, :, :4, 0].swapaxes(1, 2), official.y)
    found = streams.StreamDataset(Own(lying), there.file)
    np.testing.assert_array_equal(lying.x[found.indices], there.x[..., 0].swapaxes(1, 2))


def test_frames_of_instances_are_told_apart_by_what_was_recorded(tmp_path, official):
    """The images that are alike are two frames of an instance, the later one first in the official order."""
    recorded = Split(official.x, official.y, official.y.copy(), np.arange(N)[::-1].copy())
    there = written(tmp_path, recorded, {"name": "instances", "burst": 4})
    found = streams.StreamDataset(Own(official), there.file, recorded)
    np.testing.assert_array_equal(recorded.frame[found.indices], there.frame)


@pytest.mark.parametrize("kind", [bool, np.int32, np.uint8, np.float64])
def test_whole_labels_of_any_type_are_class_numbers(kind):
    assert class_numbers(np.array([0, 1, 1], kind), 3).tolist() == [0, 1, 1]


def test_a_stream_stays_one_where_a_notebook_loads_the_module_anew(found):
    try:
        again = importlib.reload(streams.dataset)
        assert len(again.StreamBatchSampler(found, 7)) == 18
    finally:
        importlib.reload(streams.dataset)


def test_a_stream_goes_to_another_process(there, official):
    """As to the workers of a loader that are spawned."""
    sent = pickle.loads(pickle.dumps(streams.StreamDataset(FORMS["tensors"](official), there.file)))
    assert [int(item.label) for item in sent] == there.y.tolist()


@pytest.mark.parametrize("size", [1, 7])
def test_a_loader_that_shuffles_is_warned_once_and_one_in_order_never(found, size, recwarn):
    in_order = [
        DataLoader(found, batch_size=size),
        DataLoader(found, batch_sampler=streams.StreamBatchSampler(found, size)),
        DataLoader(Subset(found, range(40, 80)), batch_size=size),
    ]
    for loader in (*in_order, *in_order):
        assert sum(len(batch.label) for batch in loader) in (40, N)
    assert not recwarn.list
    shuffled = DataLoader(found, batch_size=size, shuffle=True)
    assert len(list(shuffled)) == len(list(shuffled))
    (warning,) = recwarn.list
    assert "shuffle=False" in str(warning.message)


def test_the_reader_of_the_documents_reads_the_same(there, official, found):
    """The ten lines of plain NumPy in docs/streams.md."""
    (text,) = (block for block in BLOCKS if "def read(" in block)
    assert len(text.split("def read(")[1].splitlines()) <= 10
    names: dict = {}
    exec(text, names)
    for read, expected in zip(
        names["read"](there.file, official.x, official.y), (found.indices, there.made.chunk, there.made.timestamps)
    ):
        np.testing.assert_array_equal(read, expected)
    with pytest.raises(AssertionError, match="of another data set"):
        names["read"](there.file, official.x[1:], official.y[1:])


def test_the_loop_of_the_documents_runs_as_it_stands(tmp_path, monkeypatch, there):
    """Over a small data set in the place of CIFAR-10, and without torchvision, which may not import as it is."""
    images, file = map(Path, dict.fromkeys(re.findall(r'"((?:results|streams)/\S+\.npz)"', BLOCKS[0])))
    monkeypatch.chdir(tmp_path)
    for path in (images, file):
        path.parent.mkdir(parents=True)
    there.file.rename(file)
    save_arrays(images, {"train": there.placed, "test": there.placed}, [*"abcdef"])
    monkeypatch.setitem(sys.modules, "torchvision", None)
    names: dict = {"batches": []}
    exec(BLOCKS[0].replace("    ...\n", "    batches.append((image, label, task))\n"), names)
    image, label, task = map(torch.cat, zip(*names["batches"]))
    np.testing.assert_array_equal((image.movedim(1, -1) * 255).round().to(torch.uint8), there.x)
    np.testing.assert_array_equal(label, there.y)
    np.testing.assert_array_equal(task, there.made.chunk)
    ends = batches(there.made.boundaries, N, 10)
    assert [len(each) for each, *_ in names["batches"]] == np.diff(ends, prepend=0).tolist()


def test_the_documents_name_every_array_of_a_file():
    assert set(re.findall(r"^\| `(\w+)` \| \w", PAGE, re.M)) == set(DTYPES)


@pytest.mark.parametrize(("size", "tasks"), [(None, True), (None, False), (9, True)])
def test_an_avalanche_benchmark_holds_the_stream(there, found, official, size, tasks):
    module("datasets")  # torchvision, which may need help to be imported
    pytest.importorskip("avalanche")
    benchmark = streams.to_avalanche(found, Own(official), size, tasks=tasks)
    ends = batches(there.made.boundaries, N, size or N)
    learnt = [experience.dataset for experience in benchmark.train_stream]
    assert [len(data) for data in learnt] == np.diff(ends, prepend=0).tolist()
    assert [label for data in learnt for label in data.targets] == there.y.tolist()
    chunks = there.made.chunk[np.r_[0, ends[:-1]]] if tasks else np.zeros(len(ends))
    assert [set(data.targets_task_labels) for data in learnt] == [{chunk} for chunk in chunks]
    image, label, told = learnt[1][0]
    np.testing.assert_array_equal(image.movedim(0, -1) * 255, there.x[ends[0]])
    assert (label, told) == (there.y[ends[0]], chunks[1])
    (tested,) = (experience.dataset for experience in benchmark.test_stream)
    assert list(tested.targets) == official.y.tolist()
