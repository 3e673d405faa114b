"""A data set on the training device, from which batches are gathered by index, scaled and permuted."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch

from clpapers.datasets.imagenet import NORMALISATION

PERMUTED_AT_ONCE = 4096  # images permuted at a time; their int64 positions take eight times the bytes of their pixels


class Images:
    """Images by index.

    Parameters
    ----------
    pixels: uint8 or float32 [N, H, W, C]. A gathered batch lies in memory as they do, or by channels where that is
        faster (`channels_last`).
    scaling: `none` keeps values; `symmetric` maps 0…255 to [-1, 1], `unit` to [0, 1]; `centred` also subtracts the
        mean of these images, pixel by pixel; `standardised` subtracts their mean and divides by their deviation,
        channel by channel; `imagenet` does so by torchvision's of the three channels. ValueError for the last three
        with transforms.
    transforms: pixel permutations, int64 [D, H·W·C] for each of S seeds. With them index d·N + i means image i through
        permutation d, and indices have the seed as their first axis. So an index determines the image as seen.
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
        self.scale: float | torch.Tensor
        self.shift: float | torch.Tensor
        self.scale, self.shift = {"none": (1.0, 0.0), "symmetric": (1 / 127.5, -1.0)}.get(scaling, (1 / 255, 0.0))
        if scaling == "centred":
            mean = pixels.mean(axis=0, dtype=np.float64) / 255
            self.shift = torch.from_numpy(-mean).to(device, dtype)
        if scaling in ("standardised", "imagenet"):
            moments = NORMALISATION if scaling == "imagenet" else moments_of(pixels)
            mean, deviation = (torch.tensor(each, device=device, dtype=dtype) for each in moments)
            self.scale, self.shift = 1 / (255 * deviation), -mean / deviation
        self.transforms: torch.Tensor | None = None
        if any(len(each) for each in transforms):
            if scaling in ("centred", "standardised", "imagenet"):
                raise ValueError(f"scaling {scaling}: its means are not permuted with pixels; take unit or symmetric")
            self.transforms = torch.from_numpy(np.stack(transforms)).to(device)

    def with_pixels(self, pixels: np.ndarray) -> Images:
        """Other images with the same scaling and transforms."""
        other = copy.copy(self)
        other.pixels = torch.from_numpy(np.ascontiguousarray(pixels)).to(self.pixels.device)
        return other

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of one image."""
        _, h, w, c = self.pixels.shape
        return c, h, w

    def __call__(self, items: torch.Tensor) -> torch.Tensor:
        """Images by index, of any shape […] → […, C, H, W]."""
        rows = items if self.transforms is None else items % len(self.pixels)
        pixels = self.pixels.index_select(0, rows.flatten()).view(*items.shape, *self.pixels.shape[1:])
        if self.transforms is not None:
            pixels = self._permuted(pixels, items // len(self.pixels))
        x = pixels.to(self.dtype).mul_(self.scale).add_(self.shift).movedim(-1, -3)
        return x if channels_last(x.device) else x.contiguous()

    def unpermuted(self) -> Images:
        """The same images without transforms: index i means image i."""
        other = copy.copy(self)
        other.transforms = None
        return other

    def seen(self, x: torch.Tensor, domains: torch.Tensor) -> torch.Tensor:
        """Images from elsewhere, [S, B, C, H, W], through permutations number `domains` [S, B]."""
        return self._permuted(x.movedim(-3, -1), domains).movedim(-1, -3)

    def _permuted(self, pixels: torch.Tensor, domains: torch.Tensor) -> torch.Tensor:
        """Each image [S, B, H, W, C] through its seed's permutation number `domains` [S, B]."""
        transforms = self.transforms
        assert transforms is not None
        seeds = torch.arange(len(domains), device=domains.device)[:, None]
        blocks = zip(pixels.flatten(2).split(PERMUTED_AT_ONCE, dim=1), domains.split(PERMUTED_AT_ONCE, dim=1))
        permuted = [block.gather(2, transforms[seeds, domain]) for block, domain in blocks]
        return torch.cat(permuted, dim=1).view(pixels.shape)


def moments_of(pixels: np.ndarray) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel of images uint8 [N, H, W, C], with 255 as 1."""
    mean = pixels.mean(axis=(0, 1, 2), dtype=np.float64)
    square = np.einsum("nhwc,nhwc->c", pixels, pixels, dtype=np.float64) / (pixels.size / pixels.shape[3])
    return (mean / 255).tolist(), (np.sqrt(square - mean**2) / 255).tolist()


def joined(*batches: torch.Tensor) -> torch.Tensor:
    """Batches [S, b, C, H, W], [S, k, C, H, W] … as one, in the device's layout (`channels_last`)."""
    if not channels_last(batches[0].device):
        return torch.cat(batches, dim=1)
    return torch.cat([batch.movedim(-3, -1) for batch in batches], dim=1).movedim(-1, -3)


def channels_last(device: torch.device) -> bool:
    """Whether convolutions on a device are fastest on images that are channels-last in memory, by measurement.

    They are on a CPU, and on a GPU in TF32; there in float32, every convolution would convert its maps back and forth.
    """
    return device.type == "cpu" or torch.backends.cudnn.allow_tf32
