"""Features: torchvision's own pooled outputs, on unit length; the first version's strides; classes in categories."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from clpapers.datasets import arrays, features
from clpapers.datasets._torchvision import module
from clpapers.datasets.arrays import Split

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def ready():
    """How torchvision normalises the images of these weights."""
    return module("models").ResNet50_Weights.IMAGENET1K_V1.transforms()


@pytest.fixture(scope="module")
def whole():
    """torchvision's ResNet-50 up to its pooled outputs, with running statistics unlike those it begins with."""
    torch.set_num_threads(1)  # as the features themselves are made
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = module("models").resnet50(weights=None)
        net.train()(torch.randn(4, 3, 32, 32))
        net.fc = nn.Identity()
    return net.eval()


@pytest.fixture(scope="module")
def weights(whole):
    """What `datasets.weights` would store of it."""
    return {n: value.numpy().copy() for n, value in whole.state_dict().items() if value.is_floating_point()}


def images(n, side, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, side, side, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def net(weights):
    return features.resnet50(weights)


def test_they_are_torchvisions_pooled_outputs_on_unit_length(whole, net, ready):
    x = images(features.BATCH + 3, 24)
    found = features.features(net, x, 32)
    assert (found.shape, found.dtype) == ((features.BATCH + 3, 1, 1, 2048), np.float32)
    np.testing.assert_allclose(np.linalg.norm(found, axis=-1), 1, rtol=1e-6)

    transforms = module("transforms")
    prepare = [transforms.Resize((32, 32), antialias=True), transforms.Normalize(ready.mean, ready.std)]
    with torch.no_grad():
        pooled = whole(transforms.Compose(prepare)(torch.from_numpy(x).permute(0, 3, 1, 2) / 255))
    np.testing.assert_allclose(found[:, 0, 0], nn.functional.normalize(pooled), atol=2e-5)


@pytest.mark.parametrize("size", [16, 24, 40])
def test_images_are_resized_as_pillow_does(size, ready):
    x = images(3, 24)
    expected = [np.asarray(Image.fromarray(each).resize((size, size), Image.Resampling.BILINEAR)) for each in x]
    expected = (np.stack(expected) / 255 - ready.mean) / ready.std
    expected = expected.transpose(0, 3, 1, 2).reshape(3, -1)
    same = nn.Sequential(nn.Flatten(), nn.PReLU(init=1))  # gives back its input
    found = features.features(same, x, size)[:, 0, 0] * np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(found - expected).max() < 1.1 / 255 / min(ready.std)  # Pillow rounds to grey levels, twice


def test_the_first_version_differs_in_its_strides_alone(weights, net):
    first, strides = features.resnet50(weights | {"strided": np.array("conv1")}), {}
    assert all(torch.equal(value, net.state_dict()[name]) for name, value in first.state_dict().items())
    for name, layer in net.named_modules():
        if isinstance(layer, nn.Conv2d) and layer.stride != first.get_submodule(name).stride:
            strides[name] = (layer.stride, first.get_submodule(name).stride)
    assert strides == {f"layer{k}.0.conv1": ((1, 1), (2, 2)) for k in (2, 3, 4)} | {
        f"layer{k}.0.conv2": ((2, 2), (1, 1)) for k in (2, 3, 4)
    }
    x = images(2, 32)
    assert np.abs(features.features(net, x, 32) - features.features(first, x, 32)).max() > 0.01


def test_categories_make_classes_of_classes_and_instances_of_what_these_were():
    x = np.arange(6, dtype=np.float32).reshape(6, 1, 1, 1)
    split = Split(x, np.array([0, 0, 1, 2, 2, 2]))
    found = features.categorised(split, ["apple", "bee", "pear"], {"insects": ["bee"], "fruit": ["pear", "apple"]})
    assert found.x.ravel().tolist() == [2, 0, 1, 3, 4, 5]
    assert found.y.tolist() == [0, 1, 1, 1, 1, 1]
    assert found.instance.tolist() == [1, 0, 0, 2, 2, 2]
    assert found.frame.tolist() == [0, 0, 1, 0, 1, 2]


def test_thinning_keeps_evenly_spaced_places_of_each_group_and_the_order():
    y = np.repeat([0, 1], [6, 3])
    split = Split(np.arange(9), y, np.array([0, 0, 0, 0, 1, 1, 2, 2, 2]), np.array([3, 2, 1, 0, 0, 1, 0, 1, 2]))
    found = features.thinned(split, split.instance, split.frame, 2)
    assert found.x.tolist() == [1, 3, 4, 5, 6, 7]  # frames 0 and 2 of four; both of two; 0 and 1 of three
    assert [column.tolist() for column in found[1:]] == [column[found.x].tolist() for column in split[1:]]
    assert features.thinned(split, split.instance, split.frame, 9).x.tolist() == list(range(9))
    assert features.thinned(split, y, np.arange(9), None) is split
    assert features.thinned(Split(split.x, y), y, np.arange(9), 1).x.tolist() == [0, 6]


def test_a_file_of_features_is_laid_out_as_a_data_set_and_made_the_same_twice(weights, net, tmp_path):
    splits = {
        "train": Split(images(3, 32), np.array([0, 0, 1]), np.array([1, 0, 2]), np.array([0, 0, 0])),
        "test": Split(images(2, 32, 1), np.array([0, 1])),
    }
    arrays.save(tmp_path / "photos.npz", splits, ["a", "b"])
    np.savez(tmp_path / "weights.npz", **weights)

    def build(name, **spec):
        out, spec = tmp_path / f"{name}.npz", {"features": {"size": 32}, "classes": ["a", "b"]} | spec
        features.build(spec, tmp_path / "photos.npz", tmp_path / "weights.npz", CPU, out)
        return out

    made = build("features")
    for which, split in splits.items():
        found = arrays.load(made, which)
        np.testing.assert_allclose(found.x, features.features(net, split.x, 32), atol=2e-5)
        for here, there in zip(found[1:], split[1:]):
            np.testing.assert_array_equal(here, there)
    assert build("again").read_bytes() == made.read_bytes()

    grouped = build("grouped", classes=["B", "A"], categories={"B": ["b"], "A": ["a"]})
    assert arrays.labels(grouped, "train").tolist() == [0, 1, 1]
    assert np.array_equal(arrays.load(grouped, "train").x, arrays.load(made, "train").x[[2, 0, 1]])
    assert arrays.by_name(grouped)["classes"].tolist() == ["B", "A"]
