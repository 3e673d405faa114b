"""The heads of nets: last layers, from features to logits."""

import torch
import torch.nn.functional as F
from torch import nn

from clpapers.runs.nets.inits import draw_truncated


class CosineLinear(nn.Linear):
    """Logits 10·cos(feature, weight), no bias; features [B, in] → logits [B, out]. From the code of ACE's authors."""

    scale = 10.0

    def __init__(self, n_in: int, n_out: int):
        super().__init__(n_in, n_out, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * F.linear(F.normalize(x, dim=-1), F.normalize(self.weight, dim=-1))


class JointEmbedding(nn.Module):
    """Logits φ·(A·W)ᵀ + b: each class embedded by its attributes (Chaudhry et al. 2019, `agem`, eqs. 12-13).

    attributes: A, float32 [out, attributes], one fixed row a class. weight: W [attributes, in], normal with deviation
    0.1, truncated at 0.2; bias: b [out], 0.1: both as in the authors' code. Features [B, in] → logits [B, out].
    Multiplying features by W first is less work for a batch than embedding the classes.
    """

    attributes: torch.Tensor

    def __init__(self, n_in: int, attributes: torch.Tensor):
        super().__init__()
        self.in_features, self.out_features = n_in, len(attributes)
        self.register_buffer("attributes", attributes)
        self.weight = nn.Parameter(torch.empty(attributes.shape[1], n_in))
        self.bias = nn.Parameter(torch.full((self.out_features,), 0.1))
        draw_truncated(self.weight, 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(F.linear(x, self.weight), self.attributes, self.bias)


def make(name: str, n_in: int, n_out: int, attributes: torch.Tensor | None = None) -> nn.Module:
    """The head of this name; `attributes` [n_out, A] are for `joint_embedding`.

    Raises ValueError unless there are attributes of `n_out` classes.
    """
    if name != "joint_embedding":
        return {"linear": nn.Linear, "cosine": CosineLinear}[name](n_in, n_out)
    if attributes is None or len(attributes) != n_out:
        given = "none" if attributes is None else len(attributes)
        raise ValueError(f"head joint_embedding: it needs attributes of {n_out} classes, there are {given}")
    return JointEmbedding(n_in, attributes)
