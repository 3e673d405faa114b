"""An expert of CN-DPM: an auto-encoder and a classifier, which build upon their predecessors' features."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

Features = list[torch.Tensor]  # one for each level, [B, …]


class Lateral(nn.Module):
    """A net of levels; each takes the features of the level below, the net's own and all predecessors'.

    width, inherited: the net's own width and all predecessors'; a level's number of maps is a multiple.
    """

    levels: nn.ModuleList

    def __init__(self, width: int, inherited: int):
        super().__init__()
        self.width, self.total = width, width + inherited

    def climb(self, x: torch.Tensor, before: Features | None) -> tuple[torch.Tensor, Features]:
        """The top level's features, predecessors' first; and all levels' features for a successor, without gradient."""
        joined = []
        for i, level in enumerate(self.levels):
            x = level(x)
            if before is not None:
                x = torch.cat([before[i], x], dim=1)
            joined.append(x.detach())
        return x, joined


class VAE(Lateral):
    """Variational auto-encoder of images in [0, 1]. Its decoder, of `decoder_width`, shares no features."""

    def __init__(self, shape: Sequence[int], latent: int, width: int, inherited: int, decoder_width: int):
        super().__init__(width, inherited)
        c, h, w = shape
        if h % 4 or w % 4:
            raise ValueError(f"sides of {h} and {w} pixels cannot be halved twice")
        pixels, d = h // 4 * (w // 4), decoder_width
        self.levels = nn.ModuleList(
            [
                nn.Sequential(nn.Conv2d(c, width, 3, padding=1), nn.MaxPool2d(2), nn.ReLU()),
                nn.Sequential(nn.Conv2d(self.total, 2 * width, 3, padding=1), nn.MaxPool2d(2), nn.ReLU()),
                nn.Sequential(nn.Flatten(), nn.Linear(2 * self.total * pixels, 4 * width), nn.ReLU()),
            ]
        )
        self.mean = nn.Linear(4 * self.total, latent)
        self.log_variance = nn.Linear(4 * self.total, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 4 * d),
            nn.ReLU(),
            nn.Linear(4 * d, 2 * d * pixels),
            nn.ReLU(),
            nn.Unflatten(1, (2 * d, h // 4, w // 4)),
            nn.ConvTranspose2d(2 * d, d, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(d, c, 4, stride=2, padding=1),
            nn.Sigmoid(),
        )

    def elbo(
        self, x: torch.Tensor, noise: torch.Tensor, before: Features | None = None
    ) -> tuple[torch.Tensor, Features]:
        """Lower bounds [B] of log p(x), for Gaussian pixels of variance 1, and the features of all levels.

        noise: standard normal draws [B, samples, latent], or [samples, latent] that all images share.
        The authors' code adds 0.001 to each squared error, which cancels wherever experts are compared.
        """
        top, joined = self.climb(x, before)
        mean, log_variance = self.mean(top), self.log_variance(top)
        z = mean[:, None] + (log_variance / 2).exp()[:, None] * noise
        decoded = self.decoder(z.flatten(0, 1)).flatten(1).view(*z.shape[:2], -1)
        squares = (x.flatten(1)[:, None] - decoded).square().sum(dim=2).mean(dim=1)
        kl = (log_variance.exp() + mean.square() - 1 - log_variance).sum(dim=1) / 2
        return -(squares + decoded.shape[2] * math.log(2 * math.pi)) / 2 - kl, joined


class Block(nn.Module):
    """Two 3×3 convolutions with instance norm and a shortcut."""

    def __init__(self, n_in: int, n_out: int, stride: int):
        super().__init__()
        self.stride = stride
        self.residual = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False),
            nn.InstanceNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
            nn.InstanceNorm2d(n_out),
        )
        changes = stride != 1 or n_in != n_out
        self.shortcut = nn.Sequential(
            *([nn.Conv2d(n_in, n_out, 1, bias=False), nn.InstanceNorm2d(n_out)] if changes else [])
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skipped = x[..., :: self.stride, :: self.stride]  # oneDNN's strided 1×1 convolution is unsafe: see stacked.py
        return F.relu(self.residual(x) + self.shortcut(skipped))


class Classifier(Lateral):
    """ResNet of one block a stage with instance norm; stages are width × (1, 2, 4, 8).

    A stage halves its maps' sides down to two pixels, since instance norm turns a single pixel into zero.
    """

    def __init__(self, shape: Sequence[int], classes: int, width: int, inherited: int):
        super().__init__(width, inherited)
        stem = nn.Conv2d(shape[0], width, 3, padding=1, bias=False)
        self.levels = nn.ModuleList([nn.Sequential(stem, nn.InstanceNorm2d(width), nn.ReLU())])
        factor, side = 1, min(shape[1:])
        for halves, wider in ((False, 1), (True, 2), (True, 4), (True, 8)):
            stride = 2 if halves and side > 2 else 1
            self.levels.append(Block(factor * self.total, wider * width, stride))
            factor, side = wider, math.ceil(side / stride)
        self.levels[-1] = nn.Sequential(self.levels[-1], nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(factor * self.total, classes)

    def forward(self, x: torch.Tensor, before: Features | None = None) -> tuple[torch.Tensor, Features]:
        """log p(y|x) [B, K], and the features of all levels."""
        top, joined = self.climb(x, before)
        return self.head(top).log_softmax(dim=1), joined


class Expert(nn.Module):
    """Expert number k: p(x) and p(y|x).

    Number 0 is the untrained reference for novel items and number 1 has no predecessor; both have the base widths. From
    number 2 on, nets add their `extension` to the widths of all experts from number 1 on.

    Parameters
    ----------
    shape: (C, H, W) of an image.
    latent: dimensions of the auto-encoder's latent.
    vae, classifier: base width and extension.
    """

    def __init__(
        self,
        k: int,
        shape: Sequence[int],
        classes: int,
        *,
        latent: int,
        vae: tuple[int, int],
        classifier: tuple[int, int],
    ):
        super().__init__()
        self.vae = VAE(shape, latent, *widths(k, *vae), decoder_width=vae[0])
        self.classifier = Classifier(shape, classes, *widths(k, *classifier))

    def forward(
        self, x: torch.Tensor, noise: torch.Tensor, before: tuple[Features | None, Features | None] = (None, None)
    ) -> tuple[torch.Tensor, torch.Tensor, tuple[Features, Features]]:
        """ELBO [B], log p(y|x) [B, K], and the features of both nets, given the predecessors'."""
        elbo, of_vae = self.vae.elbo(x, noise, before[0])
        log_p, of_classifier = self.classifier(x, before[1])
        return elbo, log_p, (of_vae, of_classifier)


def widths(k: int, base: int, extension: int) -> tuple[int, int]:
    """The width that expert number k adds, and the width that it inherits."""
    return (base, 0) if k <= 1 else (extension, base + (k - 2) * extension)
