"""Generative adversarial networks (Goodfellow et al. 2014): one for each class of each seed, all in one stack."""

import dataclasses
import importlib
from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F

from clpapers.randomness import generator
from clpapers.runs.images import Images
from clpapers.runs.nets.stacked import Stack, stack
from clpapers.runs.optimizers import Adam

BETA1 = 0.5
GENERATED_AT_ONCE = 500  # images of each member generated at once


@dataclasses.dataclass(frozen=True)
class Recipe:
    """GAN training recipe.

    symmetric: whether images lie in [-1, 1], or in [0, 1].
    uniform: whether latents are uniform in [-1, 1], or standard normal.
    real: the discriminator's target for real images.
    steps: the generator's for one of the discriminator's.
    """

    symmetric: bool
    uniform: bool
    real: float
    steps: int


KERAS = Recipe(symmetric=True, uniform=False, real=0.9, steps=1)  # Keras-MNIST-GAN
TENSORFLOW = Recipe(symmetric=False, uniform=True, real=1.0, steps=2)  # carpedm20/DCGAN-tensorflow, MNIST branch
RECIPES = {"gan_mlp": KERAS, "gan_conv": KERAS, "dcgan": TENSORFLOW}


class GANs:
    """GANs of some members, each given by a seed and the name of its subject, such as a class.

    A member's initialisation, draws and training depend on its seed and name alone, not on its stack mates.

    Parameters
    ----------
    options: `name`, one of `RECIPES` and a module of `nets`; `latent`, its dimensions; `width` of the nets; `batch`;
        `learning_rate` of Adam, whose β₁ is 0.5. `epochs` serves the caller.
    images: real images in [0, 1].
    members: (seed, name) of each.
    """

    def __init__(self, options: dict, images: Images, members: Sequence[tuple[int, str]]):
        self.options, self.images, self.members = options, images, members
        self.recipe = RECIPES[options["name"]]
        self.generator = self._stack("generator", latent=options["latent"]).requires_grad_(False)

    def train(self, items: Sequence[torch.Tensor], iterations: int) -> None:
        """Train the generators against fresh discriminators on each member's items [n], indices of images.

        An iteration draws a batch of images, with replacement as in Keras-MNIST-GAN, and as many latents. The
        discriminator takes a step, then the generator its own, with the non-saturating loss.
        """
        judge, real = self._stack("discriminator"), self.recipe.real
        self.generator.train().requires_grad_(True)
        optimizers = [Adam(net.parameters(), self.options["learning_rate"], BETA1) for net in (judge, self.generator)]
        rngs = self._rngs("GAN training")
        judge.drop_by(rngs)
        for _ in range(iterations):
            x = self._real(items, rngs)
            z = self._latents(rngs, self.options["batch"])
            fake = self._generate(z)
            optimizers[0].descend(_loss(judge(x), real) + _loss(judge(fake.detach()), 0.0))
            judge.requires_grad_(False)
            for step in range(self.recipe.steps):
                fake = self._generate(z) if step else fake
                optimizers[1].descend(_loss(judge(fake), 1.0))
            judge.requires_grad_(True)
        self.generator.eval().requires_grad_(False)
        optimizers[1].zero_grad()

    def state(self) -> dict[str, np.ndarray]:
        """The generators' tensors by name, each with the members as its first axis; of batch norm no counts."""
        found = self._tensors().items()
        return {name: (value if len(self.members) > 1 else value[None]).cpu().numpy().copy() for name, value in found}

    def restore(self, states: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Give the generators the weights of `state`; the members of the states, in their order, are these ones."""
        for name, value in self._tensors().items():
            given = torch.from_numpy(np.concatenate([state[name] for state in states]))
            value.copy_(given if len(self.members) > 1 else given[0])
        self.generator.eval()

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {k: v.detach() for k, v in self.generator.state_dict().items() if v.is_floating_point()}

    @torch.no_grad()
    def draw(self, count: int, purpose: str) -> torch.Tensor:
        """Generated images [G, count, C, H, W] in [0, 1] of all G members, drawn for a purpose."""
        rngs, drawn = self._rngs(f"generated {purpose}"), []
        for start in range(0, count, GENERATED_AT_ONCE):
            x = self._generate(self._latents(rngs, min(GENERATED_AT_ONCE, count - start)))
            drawn.append((x + 1) / 2 if self.recipe.symmetric else x)
        return torch.cat(drawn, dim=1)

    def _stack(self, part: str, **options: object) -> Stack:
        """Fresh nets of all members, in training mode."""
        build = getattr(importlib.import_module(f"clpapers.runs.nets.{self.options['name']}"), part)
        seeds = [int(generator(seed, f"init {part} {name}").integers(2**63)) for seed, name in self.members]
        net = stack(lambda: build(self.images.shape, width=self.options["width"], **options), seeds)
        return net.to(self.images.pixels.device, self.images.dtype).train()

    def _rngs(self, purpose: str) -> list[torch.Generator]:
        """Each member's own generator for a purpose."""
        device = self.images.pixels.device
        seeds = [int(generator(seed, f"{purpose} {name}").integers(2**63)) for seed, name in self.members]
        return [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def _real(self, items: Sequence[torch.Tensor], rngs: Sequence[torch.Generator]) -> torch.Tensor:
        """A batch of each member's images [G, B, C, H, W]."""
        size, device = (self.options["batch"],), self.images.pixels.device
        drawn = [own[torch.randint(len(own), size, generator=r, device=device)] for own, r in zip(items, rngs)]
        x = self.images(torch.stack(drawn))
        return x.mul_(2).sub_(1) if self.recipe.symmetric else x

    def _latents(self, rngs: Sequence[torch.Generator], count: int) -> torch.Tensor:
        """Latents of each member, [G, count, z]."""
        size, device, dtype = (count, self.options["latent"]), self.images.pixels.device, self.images.dtype
        if self.recipe.uniform:
            return torch.stack([torch.rand(size, generator=rng, device=device, dtype=dtype) for rng in rngs]) * 2 - 1
        return torch.stack([torch.randn(size, generator=rng, device=device, dtype=dtype) for rng in rngs])

    def _generate(self, z: torch.Tensor) -> torch.Tensor:
        """Images of latents, [G, B, C, H, W], in the generator's range."""
        return self.generator(z[..., None, None]).view(*z.shape[:2], *self.images.shape)


def of_task(
    options: dict,
    images: Images,
    seeds: Sequence[int],
    items: torch.Tensor,
    labels: torch.Tensor,
    classes: torch.Tensor,
) -> tuple[GANs, list[torch.Tensor], int]:
    """The GANs of a task's classes, untrained, each one's items, and the iterations of an epoch.

    items, labels: int64 [S, n], of the task. classes: int64 [S, c]. An epoch has as many batches as the mean class of
    the task fills.
    """
    members = [(seed, str(c)) for seed, own in zip(seeds, classes.tolist()) for c in own]
    own = [items[s, labels[s] == c] for s, of_seed in enumerate(classes.tolist()) for c in of_seed]
    return GANs(options, images, members), own, max(items.shape[1] // (classes.shape[1] * options["batch"]), 1)


def _loss(logits: torch.Tensor, target: float) -> torch.Tensor:
    """Each member's mean binary cross-entropy of logits [G, B, 1] and one target: [G]."""
    each = F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target), reduction="none")
    return each.mean(dim=(1, 2))
