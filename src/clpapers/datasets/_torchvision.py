"""Torchvision's URLs and MD5s of the official files, and a workaround for importing it beside any torch."""

import functools
import sys
from types import ModuleType
from typing import NamedTuple

from clpapers.datasets.files import SourceError


class Official(NamedTuple):
    """One official file: the URLs that serve it, its name, its MD5."""

    urls: list[str]
    filename: str
    md5: str | None  # None where nobody publishes it


@functools.cache
def official(name: str) -> list[Official]:
    """The files of torchvision's dataset class `name` (MNIST, FashionMNIST, EMNIST, CIFAR10, CIFAR100)."""
    dataset = getattr(module("datasets"), name)
    if hasattr(dataset, "tgz_md5"):
        return [Official([dataset.url], dataset.filename, dataset.tgz_md5)]
    if "md5" in vars(dataset):  # EMNIST inherits MNIST's mirrors, which do not serve it
        return [Official([dataset.url], dataset.url.rsplit("/", 1)[-1], dataset.md5)]
    mirrors = dataset.mirrors
    return [Official([mirror + file for mirror in mirrors], file, md5) for file, md5 in dataset.resources]


def weights_url(model: str, weights: str) -> str:
    """The URL of the official weights of a model, for example IMAGENET1K_V1 of resnet18.

    The file's name ends in the first eight digits of its SHA-256: `resnet18-f37072fd.pth`.
    """
    return module("models").get_model_weights(model)[weights].url


@functools.cache
def module(name: str) -> ModuleType:
    """Import a module of torchvision, by a workaround where torch is of another build.

    torchvision's compiled operators do not load beside, say, a CPU-only torch of another build. Its import then fails
    with "operator torchvision::nms does not exist": it registers fakes for two operators that were never declared.
    Declaring their schemas first is enough: nothing here calls them. Where torchvision imports by itself the
    workaround is not used.
    """
    try:
        import torchvision
    except ImportError as error:
        raise SourceError(f"torchvision is not installed ({error}); install requirements.lock") from error
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise SourceError(f"torchvision does not import ({error}); install requirements.lock") from error
        import torch

        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for module in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[module]  # left by the failed import
        import torchvision

        torchvision.declared_operators = library  # the schemas live as long as this object
    return getattr(torchvision, name)
