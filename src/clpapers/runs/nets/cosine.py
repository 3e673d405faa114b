"""The cosine classifier that the ACE authors' code puts in place of the linear head."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class CosineLinear(nn.Linear):
    """Logits 10·cos(feature, weight), no bias; features [B, in] → logits [B, out]."""

    scale = 10.0

    def __init__(self, n_in: int, n_out: int):
        super().__init__(n_in, n_out, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * F.linear(F.normalize(x, dim=-1), F.normalize(self.weight, dim=-1))
