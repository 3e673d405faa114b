"""Keras's ResNet-50 as torchvision's takes it: stem and block, small, give what Keras's layers would give."""

import json

import numpy as np
import torch
import torch.nn.functional as F
from keras_package import STORED, norm_of, package
from torch import nn

from clpapers.datasets import files, keras
from clpapers.datasets._torchvision import module


def keras_layer(x, layer, padding=0, stride=1):
    """Convolution with bias and batch norm as Keras's documentation defines them, on [N, C, H, W]."""
    kernel, bias = (torch.from_numpy(STORED[f"{layer}/{part}"]).double() for part in ("kernel", "bias"))
    x = F.conv2d(x, kernel.permute(3, 2, 0, 1), bias, stride, padding)
    parts = ("gamma", "beta", "moving_mean", "moving_variance")
    gamma, beta, mean, variance = (
        torch.from_numpy(STORED[f"{norm_of(layer)}/{part}"]).double()[:, None, None] for part in parts
    )
    return gamma * (x - mean) / (variance + 0.001).sqrt() + beta


def loaded(net, prefix, arrays):
    """A module of torchvision's with the arrays under a prefix, each of which must have its place."""
    mine = {name.removeprefix(prefix): torch.from_numpy(v) for name, v in arrays.items() if name.startswith(prefix)}
    net.load_state_dict(mine)
    return net.double().eval()


def test_a_package_holds_the_tensors_that_its_manifest_names(tmp_path):
    sha256 = package(tmp_path / "p.tgz")
    held = files.archive(tmp_path / "p.tgz")
    groups = json.loads(held.read("model.json"))["weightsManifest"]
    found = keras.tensors(groups, b"".join(held.read(path) for path in groups[0]["paths"]))
    assert found.keys() == STORED.keys()
    assert all(np.array_equal(found[name], value) for name, value in STORED.items())
    arrays, expected = keras.resnet50(held, sha256), keras.converted(STORED)
    assert arrays.keys() == expected.keys()
    assert all(np.array_equal(arrays[name], value) for name, value in expected.items())
    assert arrays.pop("strided") == "conv1"
    assert {value.dtype for value in arrays.values()} == {np.dtype(np.float32)}
    assert {name.split(".")[0] for name in arrays} == {"conv1", "bn1", "layer2"}  # no fc


def test_a_block_gives_what_keras_would():
    bottleneck = module("models").resnet.Bottleneck
    shortcut = nn.Sequential(nn.Conv2d(4, 8, 1, bias=False), nn.BatchNorm2d(8))
    block = loaded(bottleneck(4, 2, downsample=shortcut), "layer2.1.", keras.converted(STORED))
    x = torch.randn(3, 4, 6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    inside = keras_layer(x, "res3b_branch2a").relu()
    inside = keras_layer(inside, "res3b_branch2b", padding=1).relu()
    expected = (keras_layer(inside, "res3b_branch2c") + keras_layer(x, "res3b_branch1")).relu()
    with torch.no_grad():
        torch.testing.assert_close(block(x), expected, rtol=2e-4, atol=2e-5)


def test_the_stem_takes_images_as_torchvision_normalises_them():
    """Exact inside; where the kernel reaches over the border, as near as the two means are."""
    x = np.random.default_rng(1).integers(0, 256, (2, 20, 22, 3), dtype=np.uint8)
    images = torch.from_numpy(x).double().movedim(-1, 1)
    less = torch.tensor([103.939, 116.779, 123.68], dtype=torch.float64)[:, None, None]  # of blue, green and red
    expected = keras_layer(images.flip(1) - less, "conv1", padding=3, stride=2)

    net = nn.Sequential(nn.Conv2d(3, 4, 7, 2, padding=3, bias=False), nn.BatchNorm2d(4))
    arrays = {
        name.replace("bn1.", "1.").replace("conv1.", "0."): value
        for name, value in keras.converted(STORED).items()
        if name.startswith(("conv1.", "bn1."))
    }
    normalisation = module("models").ResNet50_Weights.IMAGENET1K_V1.transforms()
    mean, std = (torch.tensor(v).double()[:, None, None] for v in (normalisation.mean, normalisation.std))
    with torch.no_grad():
        found = loaded(net, "", arrays)((images / 255 - mean) / std)
    scale = expected.std()
    torch.testing.assert_close(found[..., 2:-2, 2:-2] / scale, expected[..., 2:-2, 2:-2] / scale, rtol=0, atol=1e-5)
    assert 1e-4 < (found - expected).abs().max() / scale < 0.05
