"""Streams: orders of a data set's items, their tasks by an oracle, and PyTorch data sets that follow a stream file.

`Images`, `StreamDataset`, `StreamBatchSampler` and `to_avalanche` (clpapers.streams.dataset) need torch, which nothing
else here imports.
"""

from importlib import import_module

__all__ = ("Images", "StreamBatchSampler", "StreamDataset", "to_avalanche")


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("clpapers.streams.dataset"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
