"""Generative replay."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from clpapers.randomness import generator
from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.losses import cross_entropy, masked
from clpapers.runs.nets import resnet_decoder
from clpapers.runs.nets.stacked import Stack
from clpapers.runs.optimizers import Adam
from clpapers.runs.process import sent

DECLARATION = {
    "options": {
        "latent": {"type": "integer", "minimum": 1, "examples": [3]},
        "reconstruction": {"enum": ["bce", "mse"], "examples": ["bce", "mse"]},
        "generator_learning_rate": {"type": "number", "exclusiveMinimum": 0, "examples": [0.001]},
        "new_share": {"enum": ["half", "by_tasks"], "examples": ["half", "by_tasks"]},
        "labels": {"enum": ["joint", "by_task"], "default": "joint", "examples": ["joint", "joint", "by_task"]},
    },
    "uses": ["changes", "competing"],
    "needs": {"scaling": ["unit"]},
    "where": {
        "new_share": {"by_tasks": {"uses": ["changes", "tasks", "competing"]}},
        "labels": {"by_task": {"uses": ["changes", "tasks", "competing"]}},
    },
}


class GR(Learner):
    """GR. Shin et al. 2017, eqs. 2-3, with a variational auto-encoder as in van de Ven & Tolias 2019.

    A task change freezes copies of generator and solver. From then on solver and generator learn each batch together
    with as many images from the frozen generator, labelled with the frozen solver's most likely class.

    Parameters
    ----------
    latent: dimensions of the latent.
    reconstruction: `bce`, binary cross-entropy of a pixel (in [0, 1]), or `mse`; the mean over pixels.
    generator_learning_rate: of the auto-encoder's Adam.
    new_share: the weight of new data; replayed data have the rest. `half`: 1/2. `by_tasks`: 1/(tasks seen so far).
    labels: where classes are restricted, an image is replayed with one label among the classes of all past tasks
        (`joint`), or with one for each task, among its classes, as in van de Ven et al. 2022 (`by_task`; mean loss).
    """

    def __init__(
        self,
        setting: Setting,
        *,
        latent: int,
        reconstruction: str,
        generator_learning_rate: float,
        new_share: str,
        labels: str = "joint",
    ):
        super().__init__(setting)
        self.vae = VAE(setting, latent, reconstruction, self.encoder(latent))
        self.vae_optimizer = Adam(self.vae.parameters(), generator_learning_rate)
        self.rngs = [generator(seed, "generative replay") for seed in setting.seeds]
        self.new_share, self.by_task = new_share, labels == "by_task"
        self.old: list[Stack] | None = None  # the solver and the decoder before the task
        tasks = setting.tasks
        self.seen = torch.zeros((len(tasks), setting.task_count), dtype=torch.bool, device=tasks.device)

    def encoder(self, latent: int) -> nn.Module:
        """The encoder: images [S, B, C, H, W] → means and log variances [S, B, 2·latent]."""
        spec = self.setting.spec
        linear = {"head": "linear"} if "head" in spec else {}  # a latent is no class
        return self.setting.net("init encoder", net=spec | linear, classes=2 * latent)

    def task_change(self, t: int) -> None:
        if self.old is None:
            self.old = [copy.deepcopy(net).requires_grad_(False).eval() for net in (self.net, self.vae.decoder)]
        for old, net in zip(self.old, (self.net, self.vae.decoder)):
            old.load_state_dict(net.state_dict())
        self.replayable, self.known = [self.classes_of(self.seen)], torch.ones_like(self.seen[:, :1])
        if self.by_task and self.setting.masks is not None:
            tasks = self.seen.any(dim=0).nonzero()[:, 0].tolist()  # of any seed
            self.replayable, self.known = [self.setting.task_classes[:, j] for j in tasks], self.seen[:, tasks]

    def classes_of(self, tasks: torch.Tensor) -> torch.Tensor | None:
        """The classes, bool [S, K], that tasks [S, tasks] may hold; None where training is not masked."""
        if self.setting.masks is None:
            return None
        return (self.setting.task_classes & tasks[..., None]).any(dim=1)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        self.seen.scatter_(1, self.setting.tasks[:, self.setting.step(t)], True)
        logits = self.net(x)
        loss = new_loss = self.loss(t, logits, y)
        noise = self.noise(x.shape[1])
        if self.old:
            x_r, labels = self.replay(x)
            share, replayed = self.share(), self.net(x_r)
            each = [cross_entropy(masked(replayed, classes), y_r) for classes, y_r in zip(self.replayable, labels)]
            known = [part.where(of_seed, 0) for part, of_seed in zip(each, self.known.T)]
            loss = share * new_loss + (1 - share) * (sum(known) / self.known.sum(dim=1))
        self.step(loss)
        elbo = self.vae.loss(x, noise)
        if self.old:
            elbo = share * elbo + (1 - share) * self.vae.loss(x_r, self.noise(x.shape[1]))
        self.vae_optimizer.descend(elbo)
        return Observed(new_loss, logits)

    def share(self) -> torch.Tensor | float:
        """The weight of new data."""
        return 0.5 if self.new_share == "half" else 1 / self.seen.sum(dim=1).to(self.setting.images.dtype)

    def noise(self, count: int) -> torch.Tensor:
        """Standard normal latents [S, count, z], from each seed's own generator."""
        drawn = torch.stack([torch.from_numpy(rng.standard_normal((count, self.vae.latent))) for rng in self.rngs])
        return sent(drawn.to(self.setting.images.dtype), self.setting.items.device)

    @torch.no_grad()
    def replay(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Generated images of x's shape [S, B, …], with the frozen solver's labels [S, B] for each of `replayable`."""
        assert self.old is not None  # as from the first task change on
        solver, decoder = self.old
        x_r = self.vae.decode(decoder, self.noise(x.shape[1])).view(x.shape)
        scores = solver(x_r)
        return x_r, [masked(scores, classes).argmax(dim=2) for classes in self.replayable]


class VAE:
    """Variational auto-encoders (Kingma & Welling 2014), one a seed, whose decoder's layers are as large as the net's.

    Loss: mean reconstruction error of a pixel + KL/(number of pixels), as in van de Ven & Tolias 2019.
    """

    def __init__(self, setting: Setting, latent: int, reconstruction: str, encoder: nn.Module):
        self.latent, self.reconstruction, self.encoder = latent, reconstruction, encoder
        mirror, pixels = mirrored(setting.spec, setting.images.shape), math.prod(setting.images.shape)
        self.decoder = setting.net("init decoder", net=mirror, shape=(latent, 1, 1), classes=pixels)

    def parameters(self) -> list[torch.Tensor]:
        """Encoder's and decoder's parameters."""
        return [*self.encoder.parameters(), *self.decoder.parameters()]

    def loss(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Each seed's loss of x [S, B, C, H, W] with noise [S, B, z]: [S]."""
        mean, log_variance = self.encoder(x).chunk(2, dim=2)
        decoded = self.decoder((mean + noise * (log_variance / 2).exp())[..., None, None])
        x = x.flatten(2)
        if self.reconstruction == "bce":
            error = F.binary_cross_entropy_with_logits(decoded, x, reduction="none")
        else:
            error = (torch.sigmoid(decoded) - x).square()
        kl = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(dim=2)
        return error.mean(dim=(1, 2)) + kl.mean(dim=1) / x.shape[2]

    @staticmethod
    def decode(decoder: Stack, z: torch.Tensor) -> torch.Tensor:
        """Pixels in [0, 1] of latents [S, B, z]."""
        return torch.sigmoid(decoder(z[..., None, None]))


def mirrored(spec: dict, image: tuple[int, int, int]) -> dict:
    """The decoder of images (C, H, W) that mirrors the net `spec`, as a cell describes a net."""
    if "hidden" in spec:  # a perceptron
        return {key: value for key, value in spec.items() if key != "copies"} | {"hidden": spec["hidden"][::-1]}
    return {"name": resnet_decoder.__name__.rpartition(".")[2], "width": spec["width"], "image": list(image)}
