"""Convert a ResNet-50 that was trained in Keras and stored by TensorFlow.js to the arrays of torchvision's."""

import hashlib
import json
import math
import re
from collections.abc import Mapping

import numpy as np

from clpapers.datasets.files import Files
from clpapers.datasets.imagenet import NORMALISATION

MEANS = 123.68, 116.779, 103.939  # of red, green and blue, in 0…255: subtracted from the images of these weights
EPSILONS = 1e-3, 1e-5  # of batch norm: Keras's and PyTorch's
LAYER = re.compile(r"res(\d)([a-z])_branch(1|2[a-c])")
PLACES = {"1": ("downsample.0", "downsample.1"), "2a": ("conv1", "bn1"), "2b": ("conv2", "bn2"), "2c": ("conv3", "bn3")}


def resnet50(files: Files, sha256: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Read, prove and convert (`converted`) the files of TensorFlow.js.

    sha256: of the `manifest`, and of the `shards` joined in its order. Raises SourceError where one differs.
    """
    manifest = files.read("model.json")
    _prove(files, "model.json", manifest, sha256["manifest"])
    groups = json.loads(manifest)["weightsManifest"]
    shards = b"".join(files.read(path) for group in groups for path in group["paths"])
    _prove(files, "its shards", shards, sha256["shards"])
    return converted(tensors(groups, shards))


def tensors(groups: list[dict], shards: bytes) -> dict[str, np.ndarray]:
    """The float32 tensors of a manifest by name; `shards` holds their bytes one after the other."""
    found, start = {}, 0
    for entry in (entry for group in groups for entry in group["weights"]):
        size = math.prod(entry["shape"])
        found[entry["name"]] = np.frombuffer(shards, "<f4", size, start).reshape(entry["shape"])
        start += 4 * size
    return found


def converted(stored: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Convolutions and batch norms by torchvision's names, float32, for images normalised as torchvision's are.

    The last layer is left out. `strided` says that a stage's stride is in the 1×1 convolution `conv1` of its first
    block (He et al. 2016), not in the 3×3 as in torchvision's own.

    Keras's convolutions have biases, which are folded into the running means; the epsilons' difference is folded into
    the running variances. The first convolution took blue, green and red in 0…255 less `MEANS`. The order of the
    channels and the scale are folded into its kernel. The difference of these means from torchvision's, below half a
    grey level, is folded into its running mean. This is exact except at the border, where the padding's zeros mean
    another grey.
    """
    arrays = {"strided": np.array("conv1")}
    for layer in (name.removesuffix("/kernel") for name in stored if name.endswith("/kernel")):
        if layer == "conv1":
            convolution, norm, source = "conv1", "bn1", "bn_conv1"
        elif match := LAYER.fullmatch(layer):
            stage, block, branch = match.groups()
            unit = f"layer{int(stage) - 1}.{ord(block) - ord('a')}"
            convolution, norm = (f"{unit}.{part}" for part in PLACES[branch])
            source = layer.replace("res", "bn")
        else:
            continue
        kernel = stored[f"{layer}/kernel"].transpose(3, 2, 0, 1).astype(np.float64)  # [out, in, height, width]
        bias = stored[f"{layer}/bias"].astype(np.float64)
        if layer == "conv1":
            kernel = kernel[:, ::-1]
            means, deviations = 255 * np.array(NORMALISATION)
            bias += kernel.sum((2, 3)) @ (means - MEANS)
            kernel = kernel * deviations[:, None, None]
        arrays |= {
            f"{convolution}.weight": kernel,
            f"{norm}.weight": stored[f"{source}/gamma"],
            f"{norm}.bias": stored[f"{source}/beta"],
            f"{norm}.running_mean": stored[f"{source}/moving_mean"] - bias,
            f"{norm}.running_var": stored[f"{source}/moving_variance"] + (EPSILONS[0] - EPSILONS[1]),
        }
    return {k: v if k == "strided" else np.ascontiguousarray(v, np.float32) for k, v in arrays.items()}


def _prove(files: Files, name: str, content: bytes, digest: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise files.wrong(f"{name}: SHA-256 {found[:12]}…, not {digest[:12]}…")
