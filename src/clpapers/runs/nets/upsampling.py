"""Upsampling by 2 and a convolution in one step, without the upsampled image in memory."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

# In one dimension with each value repeated, outputs 2i and 2i + 1 weigh values i - 1, i, i + 1 by sums of five taps.
TAPS = [[[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]], [[1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1]]]


def upsampled_convolution(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, groups: int = 1) -> torch.Tensor:
    """The 5×5 convolution, padded by two, of maps [B, in, H, W] upsampled by 2 (nearest): [B, out, 2H, 2W].

    weight: [out, in of a group, 5, 5]. Computed as four 3×3 convolutions of the maps themselves, one for each place in
    a 2×2 square: 9/25 of the multiplications.
    """
    taps = _taps(x.dtype, x.device)
    weight = torch.einsum("oikl,auk,bvl->oabiuv", weight, taps, taps).flatten(0, 2)
    return F.pixel_shuffle(F.conv2d(x, weight, bias[:, None].expand(-1, 4).flatten(), padding=1, groups=groups), 2)


@functools.cache
def _taps(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """`TAPS` on a device, which copies them there once."""
    return torch.tensor(TAPS, dtype=dtype, device=device)


class UpsampledConv2d(nn.Conv2d):
    """`Upsample(scale_factor=2)` (nearest), then `Conv2d(n_in, n_out, 5, padding=2)`."""

    def __init__(self, n_in: int, n_out: int):
        super().__init__(n_in, n_out, 5, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert self.bias is not None
        return upsampled_convolution(x, self.weight, self.bias)
