"""Data sets in the order of a stream file: torchvision's own order mapped, batches, an Avalanche benchmark."""

import importlib
import pickle
import re
import subprocess
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
from clpapers.streams.stream import DTYPES, ITEM_ORDER, batches, save

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


class Bare:
    """A map-style data set that has items alone."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def written(folder, split, order=SPLIT, pixels=None):
    """The file of seed 1's stream of a training split, and what stands in it, over the split in canonical order."""
    placed = canonical(split)
    recorded = None if split.instance is None else (placed.instance, placed.frame)
    made = orders.make(order, placed.y, 1, pixels, recorded)
    save(replace(made, data=("mine", ITEM_ORDER, checksum(placed))), folder / "seed1.npz")
    return folder / "seed1.npz", made, placed


@pytest.mark.parametrize("form", ["torchvision's", "tensors", "PIL images", "tensors of bytes", "given"])
def test_every_position_holds_the_image_that_the_pipeline_trains_on(tmp_path, official, form):
    file, made, placed = written(tmp_path, official)
    x, y = torch.from_numpy(official.x), torch.from_numpy(official.y)
    given = {
        "torchvision's": lambda: (Own(official, lambda image: image),),
        "tensors": lambda: (SimpleNamespace(data=x, targets=y, __getitem__=None),),
        "PIL images": lambda: (Bare([(Image.fromarray(image), label) for image, label in zip(*official[:2])]),),
        "tensors of bytes": lambda: (Bare([(image.movedim(-1, 0), label) for image, label in zip(x, y)]),),
        "given": lambda: (Bare([(image / 2, label) for image, label in zip(x, y)]), file, official),
    }[form]()
    found = streams.StreamDataset(*(given if len(given) > 1 else (*given, file)))
    np.testing.assert_array_equal(official.x[found.indices], placed.x[made.indices])
    np.testing.assert_array_equal(official.y[found.indices], placed.y[made.indices])
    assert sorted(found.indices) == list(range(N))


def test_an_item_has_its_task_its_time_and_whether_it_is_first(tmp_path, official):
    file, made, placed = written(tmp_path, official)
    found = streams.StreamDataset(Own(official), file)
    starts = [0, *made.boundaries]
    assert len(found) == len(list(found)) == N
    for position in (0, 1, made.boundaries[0] - 1, made.boundaries[0], made.boundaries[1], N - 1):
        image, label, task, time, boundary = found[position]
        expected = placed.x[made.indices[position]]
        np.testing.assert_array_equal(image.movedim(0, -1) * 255, expected)
        assert (label, time) == (placed.y[made.indices[position]], made.timestamps[position])
        assert task == sum(position >= start for start in starts) - 1
        assert boundary == (position in starts[1:])
    assert found[-1].timestamp == made.timestamps[-1]
    with pytest.raises(IndexError):
        found[N]


def test_batches_follow_the_stream_as_the_pipelines_do(tmp_path, official):
    file, made, placed = written(tmp_path, official)
    found = streams.StreamDataset(Own(official), file)
    sampler = streams.StreamBatchSampler(found, 7)
    loaded = list(DataLoader(found, batch_sampler=sampler))
    ends = batches(made.boundaries, N, 7)
    assert len(sampler) == len(loaded) == len(ends)
    labels = torch.cat([batch.label for batch in loaded])
    np.testing.assert_array_equal(labels, placed.y[made.indices])
    assert [len(batch.label) for batch in loaded] == np.diff(ends, prepend=0).tolist()
    assert all(len(set(batch.task.tolist())) == 1 for batch in loaded)
    assert sum(batch.boundary.sum().item() for batch in loaded) == 2


@pytest.mark.parametrize("kind", [Image.Image, np.ndarray, torch.Tensor])
def test_pixels_are_permuted_as_the_pipeline_permutes_them(tmp_path, official, kind):
    """Value j of an image is value transforms[task, j] of the data set's, as [H, W, C] lies in memory."""
    file, made, placed = written(tmp_path, official, {"name": "permuted_pixels", "tasks": 2}, 60)
    convert = {
        Image.Image: Image.fromarray,
        np.ndarray: lambda image: image,
        torch.Tensor: lambda image: torch.from_numpy(image).movedim(-1, 0),
    }[kind]
    found = streams.StreamDataset(Own(official, convert), file)
    assert len(found) == 2 * N
    for position in (0, N - 1, N, 2 * N - 1):
        image = found[position].image
        assert isinstance(image, kind)
        laid = image.movedim(0, -1) if kind is torch.Tensor else np.asarray(image)
        expected = placed.x[made.indices[position]].reshape(-1)[made.transforms[position // N]]
        np.testing.assert_array_equal(np.asarray(laid).reshape(-1), expected)


def test_grey_images_may_lie_transposed_as_torchvisions_emnist_does(tmp_path, official):
    grey = Split(official.x[:, :, :4, :1], official.y)
    file, made, placed = written(tmp_path, grey)
    lying = Split(grey.x[..., 0].swapaxes(1, 2), grey.y)
    found = streams.StreamDataset(Own(lying, lambda image: image), file)
    np.testing.assert_array_equal(lying.x[found.indices], placed.x[made.indices][..., 0].swapaxes(1, 2))


def test_frames_of_instances_are_told_apart_by_what_was_recorded(tmp_path, official):
    """The images that are alike are two frames of an instance, the later one first in the official order."""
    instance, frame = official.y.copy(), np.arange(N)[::-1].copy()
    recorded = Split(official.x, official.y, instance, frame)
    file, made, placed = written(tmp_path, recorded, {"name": "instances", "burst": 4})
    found = streams.StreamDataset(Own(official), file, recorded)
    np.testing.assert_array_equal(frame[found.indices], placed.frame[made.indices])
    with pytest.raises(ValueError, match="these 120 images or their labels are others"):
        streams.StreamDataset(Own(official), file)


@pytest.mark.parametrize(
    ("image", "label"),
    [("image", "label"), ("img", "fine_label"), ("pixel_values", "labels"), ("x", "y"), ("image", "target")],
)
@pytest.mark.parametrize("form", [Image.fromarray, np.asarray])
def test_items_may_be_dictionaries_with_the_usual_keys(tmp_path, official, image, label, form):
    file, made, placed = written(tmp_path, official)
    items = [{"id": i, label: int(y), image: form(x)} for i, (x, y) in enumerate(zip(*official[:2]))]
    found = streams.StreamDataset(Bare(items), file)
    np.testing.assert_array_equal(found[5].image, placed.x[made.indices[5]])
    assert [item.label for item in found] == placed.y[made.indices].tolist()


@pytest.mark.parametrize("kind", [bool, np.int32, np.uint8, np.float64])
def test_whole_labels_of_any_type_are_class_numbers(tmp_path, official, kind):
    two = Split(official.x, official.y % 2)
    file, made, placed = written(tmp_path, two, SPLIT | {"tasks": 2})
    found = streams.StreamDataset(Own(Split(two.x, two.y.astype(kind))), file)
    np.testing.assert_array_equal(two.y[found.indices], placed.y[made.indices])


def test_a_stream_stays_one_where_a_notebook_loads_the_module_anew(tmp_path, official):
    file, *_ = written(tmp_path, official)
    found = streams.StreamDataset(Own(official), file)
    try:
        again = importlib.reload(streams.dataset)
        assert len(again.StreamBatchSampler(found, 7)) == 18
    finally:
        importlib.reload(streams.dataset)


def test_a_stream_goes_to_another_process(tmp_path, official):
    """As to the workers of a loader that are spawned; labels may be tensors."""
    file, made, placed = written(tmp_path, official)
    data = TensorDataset(torch.from_numpy(official.x).movedim(-1, 1), torch.from_numpy(official.y))
    sent = pickle.loads(pickle.dumps(streams.StreamDataset(data, file)))
    assert [int(item.label) for item in sent] == placed.y[made.indices].tolist()


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("options", [{}, {"batch_size": 10}, {"batch_size": None}])
def test_a_sampler_of_batches_in_the_place_of_another_is_refused(tmp_path, official, options, workers):
    file, *_ = written(tmp_path, official)
    found = streams.StreamDataset(Own(official), file)
    loader = DataLoader(found, sampler=streams.StreamBatchSampler(found, 5), num_workers=workers, **options)
    with pytest.raises(TypeError, match=r"batch_sampler=, not as sampler="):
        next(iter(loader))
    with pytest.raises(TypeError, match="not a slice"):
        _ = found[:5]


@pytest.mark.parametrize("size", [1, 7])
def test_a_loader_that_shuffles_is_warned_once_and_one_in_order_never(tmp_path, official, size, recwarn):
    file, *_ = written(tmp_path, official)
    found = streams.StreamDataset(Own(official), file)
    in_order = [
        DataLoader(found, batch_size=size),
        DataLoader(found, batch_sampler=streams.StreamBatchSampler(found, size)),
        DataLoader(Subset(found, range(40, 80)), batch_size=size),
    ]
    for loader in (*in_order, *in_order):
        assert sum(len(batch.label) for batch in loader) in (40, N)
    assert not recwarn.list
    for _ in range(2):
        for _batch in DataLoader(found, batch_size=size, shuffle=True):
            pass
    (warning,) = recwarn.list
    assert "shuffle=False" in str(warning.message)


def test_streams_of_features_are_refused(tmp_path, official):
    file, made, _ = written(tmp_path, official)
    save(replace(made, data=("cifar100_resnet50", "as in its file", "0" * 64)), file)
    with pytest.raises(ValueError, match="indices point into cifar100_resnet50 as in its file; use them with"):
        streams.StreamDataset(Own(official), file)


def test_the_reader_of_the_documents_reads_the_same(tmp_path, official):
    """The ten lines of plain NumPy in docs/streams.md."""
    page = (Path(__file__).parents[2] / "docs/streams.md").read_text(encoding="utf-8")
    (text,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "def read(" in block)
    assert len(text.split("def read(")[1].splitlines()) <= 10
    names: dict = {}
    exec(text, names)
    file, made, placed = written(tmp_path, official)
    indices, chunk, times = names["read"](file, official.x, official.y)
    np.testing.assert_array_equal(official.x[indices], placed.x[made.indices])
    np.testing.assert_array_equal(indices, streams.StreamDataset(Own(official), file).indices)
    np.testing.assert_array_equal(chunk, made.chunk)
    np.testing.assert_array_equal(times, made.timestamps)
    with pytest.raises(AssertionError, match="of another data set"):
        names["read"](file, official.x[1:], official.y[1:])


def test_the_loop_of_the_documents_runs_as_it_stands(tmp_path, monkeypatch, official):
    """Over a small data set in the place of CIFAR-10, and without torchvision, which may not import as it is."""
    page = (Path(__file__).parents[2] / "docs/streams.md").read_text(encoding="utf-8")
    loop, *_ = re.findall(r"```python\n(.*?)```", page, re.S)
    places = dict.fromkeys(re.findall(r'"((?:results|streams)/\S+\.npz)"', loop))
    images, file = (tmp_path / place for place in places)
    file.parent.mkdir(parents=True)
    made, placed = written(tmp_path, official)[1:]
    (tmp_path / "seed1.npz").rename(file)
    images.parent.mkdir(parents=True)
    save_arrays(images, {"train": placed, "test": placed}, [*"abcdef"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    names: dict = {"batches": []}
    exec(loop.replace("    ...\n", "    batches.append((image, label, task))\n"), names)
    image, label, task = map(torch.cat, zip(*names["batches"]))
    np.testing.assert_array_equal((image.movedim(1, -1) * 255).round().to(torch.uint8), placed.x[made.indices])
    np.testing.assert_array_equal(label, placed.y[made.indices])
    np.testing.assert_array_equal(task, made.chunk)
    assert [len(each) for each, *_ in names["batches"]] == np.diff(batches(made.boundaries, N, 10), prepend=0).tolist()


def test_the_documents_name_every_array_of_a_file():
    page = (Path(__file__).parents[2] / "docs/streams.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \| \w", page, re.M)) == set(DTYPES)


def test_images_that_are_not_there_or_are_none_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"gone\.npz: no such file; snakemake \S+gone\.npz --cores fetches it"):
        streams.Images(tmp_path / "gone.npz", "train")
    table = Split(np.zeros((2, 3), np.float32), np.arange(2))
    save_arrays(tmp_path / "features.npz", {"train": table, "test": table}, ["a", "b"])
    with pytest.raises(ValueError, match="features, not images"):
        streams.Images(tmp_path / "features.npz", "test")


def test_torchvisions_own_class(tmp_path, official):
    """CIFAR10 of torchvision, with its transforms, whose order is the official files'."""
    own = object.__new__(module("datasets").CIFAR10)
    own.data, own.targets = official.x, official.y.tolist()
    own.transform, own.target_transform = np.asarray, None
    file, made, placed = written(tmp_path, official)
    found = streams.StreamDataset(own, file)
    np.testing.assert_array_equal(np.stack([item.image for item in found]), placed.x[made.indices])


def test_the_package_itself_imports_no_torch():
    code = "import clpapers.streams.stream, sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    with pytest.raises(AttributeError, match="no attribute 'StreamDatasets'"):
        _ = streams.StreamDatasets


def test_a_benchmark_without_avalanche(monkeypatch, tmp_path, official):
    monkeypatch.setitem(sys.modules, "avalanche", None)
    monkeypatch.setitem(sys.modules, "avalanche.benchmarks", None)
    file, *_ = written(tmp_path, official)
    with pytest.raises(ImportError, match=r"pip install 'clpapers\[avalanche\]'"):
        streams.to_avalanche(streams.StreamDataset(Own(official), file), Own(official))


@pytest.fixture
def avalanche():
    """Avalanche where it is installed; torchvision is imported first, as it may need help (`_torchvision.module`)."""
    module("datasets")
    return pytest.importorskip("avalanche")


@pytest.mark.parametrize(("size", "tasks"), [(None, True), (None, False), (9, True)])
def test_an_avalanche_benchmark_holds_the_stream(avalanche, tmp_path, official, size, tasks):
    file, made, placed = written(tmp_path, official)
    train = streams.StreamDataset(Own(official), file)
    benchmark = streams.to_avalanche(train, Own(official), size, tasks=tasks)
    ends = batches(made.boundaries, N, size or N)
    learnt = [experience.dataset for experience in benchmark.train_stream]
    assert [len(data) for data in learnt] == np.diff(ends, prepend=0).tolist()
    labels = placed.y[made.indices]
    assert [label for data in learnt for label in data.targets] == labels.tolist()
    chunks = made.chunk[np.r_[0, ends[:-1]]] if tasks else np.zeros(len(ends))
    assert [set(data.targets_task_labels) for data in learnt] == [{chunk} for chunk in chunks]
    image, label, told = learnt[1][0]
    np.testing.assert_array_equal(image.movedim(0, -1) * 255, placed.x[made.indices[ends[0]]])
    assert (label, told) == (labels[ends[0]], chunks[1])
    (tested,) = (experience.dataset for experience in benchmark.test_stream)
    assert list(tested.targets) == official.y.tolist()


def test_a_strategy_of_avalanches_trains_on_it_in_order(avalanche, tmp_path, official):
    from avalanche.training.supervised import Naive

    file, made, placed = written(tmp_path, official)
    benchmark = streams.to_avalanche(streams.StreamDataset(Own(official), file), Own(official))
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(60, 6))
    seen = []
    net.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].movedim(1, -1) * 255))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    strategy = Naive(model=net, optimizer=optimizer, train_mb_size=10, train_epochs=1, evaluator=None)
    for experience in benchmark.train_stream:
        strategy.train(experience, shuffle=False)
    np.testing.assert_array_equal(torch.cat(seen), placed.x[made.indices])
