"""Steps whose numbers lie on the device too, and the rows of tables that they read, so that a GPU can replay them."""

import contextlib
from collections.abc import Iterator

import numpy as np
import torch


class DeviceStep(int):
    """The number of a step that lies on the device too, in `at`, int64 [1], with its stream positions, int64 [B]."""

    at: torch.Tensor
    positions: torch.Tensor


def row(table: torch.Tensor, t: int, dim: int = 0, first: int = 0) -> torch.Tensor:
    """A table's row of step t along an axis; the table begins with the row of step `first`."""
    if not isinstance(t, DeviceStep):
        return table.select(dim, t - first)
    return table.index_select(dim, t.at - first if first else t.at).squeeze(dim)


def columns(table: torch.Tensor, t: int, ends: np.ndarray) -> torch.Tensor:
    """The columns [S, B] that a stream's table [S, n] has at step t, of steps that end at positions `ends` [T]."""
    if not isinstance(t, DeviceStep):
        return table[:, int(ends[t - 1]) if t else 0 : int(ends[t])]
    return table.index_select(1, t.positions)


@contextlib.contextmanager
def unordered() -> Iterator[None]:
    """Inside, deterministic algorithms are off: for writes to distinct places, which any order leaves the same.

    Else PyTorch sorts the places on a GPU, and waits for it.
    """
    if not torch.are_deterministic_algorithms_enabled():
        yield
        return
    torch.use_deterministic_algorithms(False)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(True)
