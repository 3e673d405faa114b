"""A data set on the training device: a batch is a gather by index, scaled on the way."""

from __future__ import annotations

import numpy as np
import torch


class Images:
    """Images by index.

    Parameters
    ----------
    pixels: uint8 [N, H, W, C], kept as they are; a gathered batch is thereby channels-last in memory, which is what
        convolutions on a CPU are fastest with.
    scaling: `symmetric` maps 0…255 to [-1, 1], `unit` to [0, 1].
    """

    def __init__(self, pixels: np.ndarray, scaling: str, device: torch.device, dtype: torch.dtype):
        self.pixels = torch.from_numpy(np.ascontiguousarray(pixels)).to(device)
        self.dtype = dtype
        self.scale, self.shift = {"symmetric": (1 / 127.5, -1.0), "unit": (1 / 255, 0.0)}[scaling]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of one image."""
        _, h, w, c = self.pixels.shape
        return c, h, w

    def __call__(self, items: torch.Tensor) -> torch.Tensor:
        """Images of the given indices, of any shape […] → […, C, H, W]."""
        pixels = self.pixels.index_select(0, items.flatten()).view(*items.shape, *self.pixels.shape[1:])
        return pixels.to(self.dtype).mul_(self.scale).add_(self.shift).movedim(-1, -3)
