"""Generative replay whose encoder is the classifier below its head."""

import torch
from torch import nn

from clpapers.runs.learners.gr import GR
from clpapers.runs.nets.stacked import Stack

DECLARATION = {"like": "gr"}


class GRShared(GR):
    """GR whose encoder and classifier share all layers below their heads; a reading of `rules`, A.6.

    A.6 has encoder and decoder "share the same parameter with the single model". Here the encoder does; the decoder
    keeps its own, since no layer of the classifier draws images.

    A step first descends the classification loss, by the cell's optimiser. Then Adam descends the auto-encoder's.

    Parameters
    ----------
    latent, reconstruction, generator_learning_rate, new_share, labels: as of GR.
    """

    def encoder(self, latent: int) -> nn.Module:
        return Shared(self, latent)


class Shared(nn.Module):
    """An encoder on the features of a learner's net: its own part is a linear head."""

    def __init__(self, learner: GR, latent: int):
        super().__init__()
        net = learner.net.net
        assert isinstance(net, nn.Sequential)  # as each net with features
        *_, head = net
        assert isinstance(head.weight, torch.Tensor)
        self.trunk, shape = Stack(net[:-1]), (head.weight.shape[-1], 1, 1)
        linear = {"name": "mlp", "hidden": []}
        self.head = learner.setting.net("init encoder", net=linear, shape=shape, classes=2 * latent)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images [S, B, C, H, W] → means and log variances [S, B, 2·latent]."""
        return self.head(self.trunk(x)[..., None, None])
