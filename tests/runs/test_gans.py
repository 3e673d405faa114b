"""GANs: a stack against ordinary modules and a plain loop; who depends on whom; what comes out."""

import importlib

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from plain_loop import descend
from tiny import CPU, assert_same_net
from torch import nn

from clpapers.randomness import generator
from clpapers.runs.gans import GENERATED_AT_ONCE, GANs
from clpapers.runs.images import Images
from clpapers.runs.nets.upsampling import UpsampledConv2d

RECIPES = {
    # name: (images in [-1, 1], normal latents, target of real images, steps of the generator)
    "gan_mlp": (True, True, 0.9, 1),
    "gan_conv": (True, True, 0.9, 1),
    "dcgan": (False, False, 1.0, 2),
}
MEMBERS = [(3, "7"), (3, "1"), (5, "7")]
ITEMS = [torch.arange(0, 11), torch.arange(11, 20), torch.arange(20, 40)]
LEARNING_RATE = 0.01


def options(name):
    return {"name": name, "latent": 4, "width": 3, "batch": 6, "learning_rate": LEARNING_RATE}


def images(dtype=torch.float64, shape=(8, 4, 1), scaling="unit"):
    pixels = np.random.default_rng(0).integers(0, 256, (40, *shape), dtype=np.uint8)
    return Images(pixels, scaling, CPU, dtype)


def trained(name, members=MEMBERS, items=ITEMS, iterations=4):
    gans = GANs(options(name), images(), members)
    gans.train(items, iterations)
    return gans


def weights(net):
    """Without biases, which move nothing where batch norm follows."""
    return [p for p in net.parameters() if p.dim() > 1]


class Plain:
    """One member in ordinary modules, layer by layer."""

    def __init__(self, name, seed, member):
        self.seed, self.member, self.name = seed, member, name
        self.symmetric, self.normal, self.real, self.steps = RECIPES[name]
        module, shape = importlib.import_module(f"clpapers.runs.nets.{name}"), (1, 8, 4)
        torch.manual_seed(self.draws("init generator"))
        self.generator = module.generator(shape, latent=4, width=3).double()
        torch.manual_seed(self.draws("init discriminator"))
        self.discriminator = module.discriminator(shape, width=3).double()

    def draws(self, purpose):
        return int(generator(self.seed, f"{purpose} {self.member}").integers(2**63))

    def latents(self, rng, count):
        if self.normal:
            return torch.randn(count, 4, generator=rng, dtype=torch.float64)
        return 2 * torch.rand(count, 4, generator=rng, dtype=torch.float64) - 1

    def generate(self, z):
        for layer in self.generator:
            if isinstance(layer, UpsampledConv2d):
                z = F.conv2d(F.interpolate(z, scale_factor=2), layer.weight, layer.bias, padding=2)
            else:
                z = layer(z)
        return z.view(-1, 1, 8, 4)

    def judge(self, x, rng):
        for layer in self.discriminator:
            if isinstance(layer, nn.Dropout):
                x = x * (torch.rand(x.shape, generator=rng) >= 0.3) / 0.7
            else:
                x = layer(x)
        return torch.sigmoid(x)[:, 0]

    def train(self, items, iterations):
        rng = torch.Generator().manual_seed(self.draws("GAN training"))
        nets = (self.discriminator, self.generator)
        of_judge, of_generator = (torch.optim.Adam(n.parameters(), lr=LEARNING_RATE, betas=(0.5, 0.999)) for n in nets)
        for _ in range(iterations):
            x = torch.from_numpy(images().pixels.numpy()[items[torch.randint(len(items), (6,), generator=rng)]])
            x = x.movedim(-1, 1).double() / 255
            z = self.latents(rng, 6)
            real = self.judge(2 * x - 1 if self.symmetric else x, rng)
            fake_x = self.generate(z)
            fake = self.judge(fake_x.detach(), rng)
            right = self.real * real.log() + (1 - self.real) * (1 - real).log()
            descend(of_judge, -right.mean() - (1 - fake).log().mean())
            for step in range(self.steps):
                fake_x = self.generate(z) if step else fake_x
                descend(of_generator, -self.judge(fake_x, rng).log().mean())

    @torch.no_grad()
    def draw(self, count, purpose):
        rng = torch.Generator().manual_seed(self.draws(f"generated {purpose}"))
        self.generator.eval()
        x = self.generate(self.latents(rng, count))
        return (x + 1) / 2 if self.symmetric else x


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("chosen", [slice(0, 3), slice(1, 2)], ids=["three", "one"])
def test_equals_the_plain_implementation(name, chosen):
    """Weights, running statistics and draws."""
    gans = trained(name, MEMBERS[chosen], ITEMS[chosen])
    drawn = gans.draw(5, "for task 2")
    for g, (member, items) in enumerate(zip(MEMBERS[chosen], ITEMS[chosen])):
        plain = Plain(name, *member)
        before = [p.clone() for p in weights(plain.generator)]
        plain.train(items, 4)
        assert_same_net(gans.generator, plain.generator, g, rtol=1e-7, atol=1e-9)
        assert all((p - b).abs().max() > LEARNING_RATE for b, p in zip(before, weights(plain.generator)))
        torch.testing.assert_close(drawn[g], plain.draw(5, "for task 2"), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_drawn_are_images_in_their_range_anew_for_each_purpose(name):
    """More than a block at once, too; and the same for the same purpose, bit by bit."""
    gans = trained(name)
    drawn = gans.draw(GENERATED_AT_ONCE + 3, "a")
    assert drawn.shape == (3, GENERATED_AT_ONCE + 3, 1, 8, 4)
    assert 0 <= drawn.min() < drawn.max() <= 1
    assert torch.equal(drawn, gans.draw(GENERATED_AT_ONCE + 3, "a"))
    assert not torch.equal(drawn, gans.draw(GENERATED_AT_ONCE + 3, "b"))
    assert not torch.equal(drawn[:, :3], drawn[:, GENERATED_AT_ONCE:])
    assert all(p.grad is None and not p.requires_grad for p in gans.generator.parameters())


def shapes(net):
    return [tuple(p.shape) for p in weights(net)]


@pytest.mark.parametrize(
    ("name", "width", "generator_layers", "discriminator_layers"),
    [
        ("gan_mlp", 256, [(256, 100), (512, 256), (1024, 512), (784, 1024)],
         [(1024, 784), (512, 1024), (256, 512), (1, 256)]),
        ("gan_conv", 64, [(128 * 7 * 7, 100), (64, 128, 5, 5), (1, 64, 5, 5)],
         [(64, 1, 5, 5), (128, 64, 5, 5), (1, 128 * 7 * 7)]),
        ("dcgan", 64, [(1024, 100), (128 * 7 * 7, 1024), (128, 128, 5, 5), (128, 1, 5, 5)],
         [(11, 1, 5, 5), (74, 11, 5, 5), (1024, 74 * 7 * 7), (1, 1024)]),
    ],
)  # fmt: skip
def test_layers_for_mnist_are_those_of_paper_and_codes(name, width, generator_layers, discriminator_layers):
    module, shape = importlib.import_module(f"clpapers.runs.nets.{name}"), (1, 28, 28)
    generator_net = module.generator(shape, latent=100, width=width)
    discriminator_net = module.discriminator(shape, width=width)
    assert shapes(generator_net) == generator_layers
    assert shapes(discriminator_net) == discriminator_layers
    deviation = 0.02 if name != "dcgan" else 0.02 * 0.88  # of a normal cut off at two deviations
    for net in (generator_net, discriminator_net):
        first = next(net.parameters())
        assert first.std().item() == pytest.approx(0.02 if first.dim() == 2 else deviation, rel=0.15)
        assert not any(p.any() for layer in net if hasattr(layer, "bias") for p in [layer.bias])
