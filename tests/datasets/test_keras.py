"""Keras's ResNet-50 as torchvision's takes it: stem and block, small, give what Keras's layers would give."""

import hashlib
import json
from collections import OrderedDict

import numpy as np
import torch
import torch.nn.functional as F
from official_formats import write_tar
from torch import nn

from clpapers.datasets import keras
from clpapers.datasets._torchvision import module

KERNELS = {  # of the stem and the third stage's second block: [height, width, in, out]
    "conv1": (7, 7, 3, 4),
    "res3b_branch1": (1, 1, 4, 8),
    "res3b_branch2a": (1, 1, 4, 2),
    "res3b_branch2b": (3, 3, 2, 2),
    "res3b_branch2c": (1, 1, 2, 8),
}


def norm_of(layer):
    return "bn_conv1" if layer == "conv1" else layer.replace("res", "bn")


def stored():
    rng = np.random.default_rng(0)
    found = {}
    for layer, shape in KERNELS.items():
        found[f"{layer}/kernel"] = rng.normal(size=shape)
        found[f"{layer}/bias"] = rng.normal(size=shape[-1])
        for part in ("gamma", "beta", "moving_mean", "moving_variance"):
            found[f"{norm_of(layer)}/{part}"] = rng.normal(size=shape[-1])
        found[f"{norm_of(layer)}/moving_variance"] = rng.uniform(0.001, 2, shape[-1])
    found |= {"fc1000/kernel": rng.normal(size=(8, 5)), "fc1000/bias": rng.normal(size=5)}
    return {name: value.astype(np.float32) for name, value in found.items()}


STORED = stored()


def package(path, change=lambda name, content: content):
    """Writes a package of npm, with these tensors in two shards, cut through the middle of one; its checksums."""
    weights = [{"name": name, "shape": list(held.shape), "dtype": "float32"} for name, held in STORED.items()]
    manifest = [{"paths": ["shard1of2.bin", "shard2of2.bin"], "weights": weights}]
    content = b"".join(value.tobytes() for value in STORED.values())
    half = len(content) // 2 + 1
    members = {
        "package/ResNet50/shard2of2.bin": content[half:],
        "package/ResNet50/model.json": json.dumps({"weightsManifest": manifest}).encode(),
        "package/ResNet50/shard1of2.bin": content[:half],
        "package/package.json": b"{}",
    }
    write_tar(path, {name: change(name, held) for name, held in members.items()})
    found = {"manifest": members["package/ResNet50/model.json"], "shards": content}
    return {what: hashlib.sha256(held).hexdigest() for what, held in found.items()}


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


def test_all_but_the_last_layer_is_converted():
    arrays = keras.converted(STORED)
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

    layers = {"conv1": nn.Conv2d(3, 4, 7, 2, padding=3, bias=False), "bn1": nn.BatchNorm2d(4)}
    arrays = {name: held for name, held in keras.converted(STORED).items() if name.startswith(("conv1.", "bn1."))}
    normalisation = module("models").ResNet50_Weights.IMAGENET1K_V1.transforms()
    mean, std = (torch.tensor(v).double()[:, None, None] for v in (normalisation.mean, normalisation.std))
    with torch.no_grad():
        found = loaded(nn.Sequential(OrderedDict(layers)), "", arrays)((images / 255 - mean) / std)
    scale = expected.std()
    torch.testing.assert_close(found[..., 2:-2, 2:-2] / scale, expected[..., 2:-2, 2:-2] / scale, rtol=0, atol=1e-5)
    assert 1e-4 < (found - expected).abs().max() / scale < 0.05
