"""Build a data set of features: the outputs of a pre-trained ResNet-50 for the images of another data set."""

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

BATCH = 32  # images at a time; another number changes the last bits of the features


def build(spec: dict, images: Path, weights: Path, device: torch.device, out: Path) -> None:
    """Write the features of the data set in the file `images` to the .npz `out`, laid out as a data set's.

    Features x are float32 [N, 1, 1, 2048]; labels, instances and frames are copied. Where `spec` has categories, they
    become the classes, and the images' classes become instances (`categorised`).

    Parameters
    ----------
    spec: the entry of config/datasets.yaml: `features`, `classes` and, if there are any, `categories`. In `features`,
        `train_per_instance` and `test_per_class` limit the items (`thinned`); without them all are kept.
    weights: a file that `datasets.weights` wrote.
    """
    _prepare(device)
    net = resnet50(arrays.by_name(weights)).to(device)
    net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # documented, not in PyTorch's types; faster on a CPU
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
    """Features of images: uint8 [N, H, W, 3] → float32 [N, 1, 1, D], the outputs of `net` scaled to Euclidean length 1.

    Images are resized to size × size, bilinearly with antialiasing and the aspect ignored, and normalised as
    torchvision does for ImageNet. title: heads the progress bar on stderr; None shows no bar.
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

    Weights with the key `strided` belong to a net whose stages 2 to 4 begin with a stride in conv1, not in conv2; the
    net returned then does so too. The parameters are the same.
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
    """Make categories the classes, and the former classes, by number, the instances; labels ascend.

    Frames number the items of a former class in their order.
    """
    category = {name: number for number, names in enumerate(categories.values()) for name in names}
    y = np.array([category[name] for name in classes])[split.y]
    frame = np.empty_like(split.y)
    for each in np.unique(split.y):
        items = np.flatnonzero(split.y == each)
        frame[items] = np.arange(len(items))
    order = np.argsort(y, kind="stable")
    return Split(split.x[order], y[order], split.y[order], frame[order])


def thinned(split: Split, group: np.ndarray | None, position: np.ndarray | None, count: int | None) -> Split:
    """Keep at most `count` items of each group [N], evenly spaced by their position [N] in it; None keeps all."""
    if count is None:
        return split
    assert group is not None  # only frames of instances are thinned by them
    assert position is not None
    order = np.lexsort((position, group))
    members = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    kept = np.sort(np.concatenate([own[np.unique(np.arange(count) * len(own) // count)] for own in members]))
    instance, frame = (None if column is None else column[kept] for column in split[2:])
    return Split(split.x[kept], split.y[kept], instance, frame)


def _prepare(device: torch.device) -> None:
    """Use one CPU thread, as runs do, and deterministic algorithms."""
    torch.set_num_threads(1)
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
