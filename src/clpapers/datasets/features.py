"""A data set of features in the place of images: what a pre-trained ResNet-50 makes of another data set's images."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import interpolate, normalize
from tqdm import tqdm

from clpapers.datasets import arrays
from clpapers.datasets._torchvision import module
from clpapers.datasets.arrays import Split
from clpapers.datasets.imagenet import NORMALISATION

BATCH = 32  # images at a time; part of the result, in its last bits


def build(spec: dict, images: Path, weights: Path, device: torch.device, out: Path) -> None:
    """Write the features of the data set in the file `images` to the .npz `out`, laid out as a data set's.

    Images x are float32 [N, 1, 1, 2048]; labels, instances and frames are carried along. Where there are categories,
    those are the classes, and the images' classes become instances (`categorised`).

    Parameters
    ----------
    spec: the entry of config/datasets.yaml: `features`, `classes` and, if there are any, `categories`. Of `features`,
        `train_per_instance` and `test_per_class` keep so many (`thinned`), all where they are not given.
    weights: a file that `datasets.weights` wrote.
    """
    _prepare(device)
    net = resnet50(arrays.by_name(weights)).to(device, memory_format=torch.channels_last)  # faster on a CPU
    with np.load(images, allow_pickle=False) as stored:
        classes = stored["classes"].tolist()
    splits = {}
    for which in ("train", "test"):
        split, options = arrays.load(images, which), spec["features"]
        if "categories" in spec:
            split = categorised(split, classes, spec["categories"])
        if which == "train":
            split = thinned(split, split.instance, split.frame, options.get("train_per_instance"))
        else:
            split = thinned(split, split.y, np.arange(len(split.y)), options.get("test_per_class"))
        splits[which] = split._replace(x=features(net, split.x, options["size"], f"{Path(out).stem} {which}"))
    arrays.save(out, splits, spec["classes"])


def features(net: nn.Module, x: np.ndarray, size: int, title: str | None = None) -> np.ndarray:
    """What `net` makes of images, uint8 [N, H, W, 3] → float32 [N, 1, 1, D], each of Euclidean length 1.

    Images are resized to size × size, bilinearly with antialiasing and the aspect ignored, and normalised as
    torchvision does for ImageNet. title: what the progress on stderr is headed by; None shows none.
    """
    device = next(net.parameters()).device
    mean, deviation = (torch.tensor(each, device=device)[:, None, None] for each in NORMALISATION)
    made = []
    starts = range(0, len(x), BATCH)
    for i in tqdm(starts, desc=title, unit="batch", mininterval=2, file=sys.stderr, disable=title is None):
        batch = torch.from_numpy(x[i : i + BATCH]).to(device).movedim(-1, 1) / 255
        if batch.shape[-2:] != (size, size):
            batch = interpolate(batch, (size, size), mode="bilinear", antialias=True)
        with torch.inference_mode():
            made.append(normalize(net((batch - mean) / deviation)).cpu().numpy())
    return np.concatenate(made)[:, None, None]


def resnet50(stored: Mapping[str, np.ndarray]) -> nn.Module:
    """torchvision's ResNet-50 with these weights (`datasets.weights`), without its last layer, for evaluation.

    Where the weights say that they were `strided` in conv1, so is this net: stages 2 to 4 begin with a stride there
    and not in conv2. The parameters are the same.
    """
    net = module("models").resnet50(weights=None)
    net.fc = nn.Identity()
    net.load_state_dict({name: torch.from_numpy(value) for name, value in stored.items() if name != "strided"})
    if "strided" in stored:
        for stage in (net.layer2, net.layer3, net.layer4):
            first, second = stage[0].conv1, stage[0].conv2
            first.stride, second.stride = second.stride, first.stride
    return net.eval()


def categorised(split: Split, classes: list[str], categories: Mapping[str, list[str]]) -> Split:
    """The same items with the categories as classes and their classes, by number, as instances; labels ascending.

    Frames are numbered in the order in which a class's items stand.
    """
    category = {name: number for number, names in enumerate(categories.values()) for name in names}
    y = np.array([category[name] for name in classes])[split.y]
    frame = np.empty_like(split.y)
    for each in np.unique(split.y):
        items = np.flatnonzero(split.y == each)
        frame[items] = np.arange(len(items))
    order = np.argsort(y, kind="stable")
    return Split(split.x[order], y[order], split.y[order], frame[order])


def thinned(split: Split, group: np.ndarray, place: np.ndarray, count: int | None) -> Split:
    """At most `count` items of each group [N], evenly spaced by their place [N] in it, as they stood; None: all."""
    if count is None:
        return split
    order = np.lexsort((place, group))
    members = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    kept = np.sort(np.concatenate([own[np.unique(np.arange(count) * len(own) // count)] for own in members]))
    return Split(*(None if column is None else column[kept] for column in split))


def _prepare(device: torch.device) -> None:
    """One CPU thread a process, as for runs, and results that are the same every time."""
    torch.set_num_threads(1)
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
