"""A data set on the training device: a batch is a gather by index, scaled and permuted on the way."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch

from clpapers.datasets.imagenet import NORMALISATION

BLOCK = 4096  # images permuted at a time, whose positions take eight times the bytes of their pixels


class Images:
    """Images by index.

    Parameters
    ----------
    pixels: uint8 or float32 [N, H, W, C], kept as they are; a gathered batch is thereby channels-last in memory, which
        is what convolutions on a CPU are fastest with.
    scaling: `none` leaves values as they are; `symmetric` maps 0…255 to [-1, 1], `unit` to [0, 1]; `centred` so too,
        less the mean of these images, pixel by pixel; `imagenet` so too, less torchvision's means of the three
        channels, by its deviations. ValueError for these two where there are transforms.
    transforms: where images are seen through pixel permutations: int64 [D, H·W·C] for each of S seeds. Index
        d·N + i then means image i through permutation d, and indices have the seed as their first axis. So whoever
        keeps an index keeps the image as it was seen.
    """

    def __init__(
        self,
        pixels: np.ndarray,
        scaling: str,
        device: torch.device,
        dtype: torch.dtype,
        transforms: Sequence[np.ndarray] = (),
    ):
        self.pixels = torch.from_numpy(np.ascontiguousarray(pixels)).to(device)
        self.dtype = dtype
        self.scale, self.shift = {"none": (1.0, 0.0), "symmetric": (1 / 127.5, -1.0)}.get(scaling, (1 / 255, 0.0))
        if scaling == "centred":
            mean = pixels.mean(axis=0, dtype=np.float64) / 255
            self.shift = torch.from_numpy(-mean).to(device, dtype)
        if scaling == "imagenet":
            mean, deviation = (torch.tensor(each, device=device, dtype=dtype) for each in NORMALISATION)
            self.scale, self.shift = 1 / (255 * deviation), -mean / deviation
        self.transforms = None
        if any(len(each) for each in transforms):
            if scaling in ("centred", "imagenet"):
                raise ValueError(f"scaling {scaling}: its means are not permuted with pixels; take unit or symmetric")
            self.transforms = torch.from_numpy(np.stack(transforms)).to(device)

    def of(self, pixels: np.ndarray) -> Images:
        """Other images, seen as these are."""
        other = copy.copy(self)
        other.pixels = torch.from_numpy(np.ascontiguousarray(pixels)).to(self.pixels.device)
        return other

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of one image."""
        _, h, w, c = self.pixels.shape
        return c, h, w

    def __call__(self, items: torch.Tensor) -> torch.Tensor:
        """Images of the given indices, of any shape […] → […, C, H, W]."""
        rows = items if self.transforms is None else items % len(self.pixels)
        pixels = self.pixels.index_select(0, rows.flatten()).view(*items.shape, *self.pixels.shape[1:])
        if self.transforms is not None:
            pixels = self._permuted(pixels, items // len(self.pixels))
        return pixels.to(self.dtype).mul_(self.scale).add_(self.shift).movedim(-1, -3)

    def unpermuted(self) -> Images:
        """The same images as they are: index i means image i, of any shape of indices."""
        other = copy.copy(self)
        other.transforms = None
        return other

    def seen(self, x: torch.Tensor, domains: torch.Tensor) -> torch.Tensor:
        """Images [S, B, C, H, W] that are no images of this data set, through permutations `domains` [S, B]."""
        return self._permuted(x.movedim(-3, -1), domains).movedim(-1, -3)

    def _permuted(self, pixels: torch.Tensor, domains: torch.Tensor) -> torch.Tensor:
        """Each image [S, B, H, W, C] through its seed's permutation number `domains` [S, B]."""
        seeds = torch.arange(len(domains), device=domains.device)[:, None]
        blocks = zip(pixels.flatten(2).split(BLOCK, dim=1), domains.split(BLOCK, dim=1))
        permuted = [block.gather(2, self.transforms[seeds, domain]) for block, domain in blocks]
        return torch.cat(permuted, dim=1).view(pixels.shape)
