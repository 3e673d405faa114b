"""GR against a plain implementation: what is replayed, who labels it, how it is weighed; the auto-encoder's loss."""

import copy
import math

import pytest
import torch
from plain_loop import descend
from tiny import CNN, MLP, NETS, Way, assert_same_net, cross_entropy, images, made, split, two_tasks
from torch.distributions import Bernoulli, Independent, Normal, kl_divergence

from clpapers.randomness import generator

GR = {"name": "gr", "latent": 3, "reconstruction": "bce", "generator_learning_rate": 0.01, "new_share": "half"}
DATA = images(classes=6, items=7)
COLOURED = images(classes=6, items=7, shape=(8, 8, 3))
THREE = {"oracle": split(3), "order": {"name": "split", "tasks": 3, "length": None}}
OWN_TASKS = {"oracle": split(3, aligned=False)}  # each seed learns them in an order of its own


def on_its_way(options=(), seeds=(0,), net=MLP, data=DATA, **changed):
    spec = two_tasks(GR | dict(options), net, **THREE | changed)
    return Way(spec, data, [made(spec, data, seed) for seed in seeds])


def seeds_of_equal_changes():
    """Two seeds whose tasks change at the same steps, although they are others."""
    groups = {}
    for seed in range(12):
        groups.setdefault(tuple(on_its_way(seeds=(seed,), **OWN_TASKS).changes), []).append(seed)
    return max(groups.values(), key=len)[:2]


class Plain:
    """One seed: ordinary modules, weighted sums of mean losses; noise is drawn in the learner's order."""

    def __init__(self, way, s):
        self.way, self.s, self.options = way, s, way.spec["learner"]
        self.pixels, spec = math.prod(way.setting.images.shape), way.spec["net"]
        mirror = {"name": "resnet_decoder", "width": spec.get("width"), "image": list(way.setting.images.shape)}
        if spec is MLP:
            mirror = MLP | {"hidden": MLP["hidden"][::-1]}
        self.net = way.ordinary(s=s)
        self.encoder = way.ordinary("init encoder", s, classes=2 * 3)
        if self.options["name"] == "gr_shared":
            linear = {"name": "mlp", "hidden": []}
            head = way.ordinary("init encoder", s, net=linear, shape=(MLP["hidden"][-1], 1, 1), classes=2 * 3)
            self.encoder = torch.nn.Sequential(*list(self.net)[:-1], *head)
        self.decoder = way.ordinary("init decoder", s, net=mirror, shape=(3, 1, 1), classes=self.pixels)
        self.rng = generator(way.setting.seeds[s], "generative replay")

    def noise(self, x):
        return torch.from_numpy(self.rng.standard_normal((len(x), 3)))

    def negative_elbo(self, x, noise):
        """A pixel: of Bernoulli pixels or squared errors, and the divergence to N(0, 1)."""
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        posterior = Independent(Normal(mean, (log_variance / 2).exp()), 1)
        prior = Independent(Normal(torch.zeros_like(mean), torch.ones_like(mean)), 1)
        said = self.decoder((mean + noise * posterior.base_dist.stddev)[..., None, None]).flatten(1)
        error = -Bernoulli(logits=said, validate_args=False).log_prob(x.flatten(1))
        if self.options["reconstruction"] == "mse":
            error = (said.sigmoid() - x.flatten(1)) ** 2
        return (error.sum(dim=1) + kl_divergence(posterior, prior)).mean() / self.pixels

    def replayed(self, seen):
        """The sets of classes among which an image of the past gets a label."""
        setting = self.way.setting
        if setting.masks is None:
            return [list(range(6))]
        each = [setting.task_classes[self.s, task].nonzero()[:, 0].tolist() for task in seen]
        return each if self.options.get("labels") == "by_task" else [sorted({c for own in each for c in own})]

    def walk(self):
        way, s, old, seen = self.way, self.s, None, set()
        optimizer = way.optimizer(self.net)
        vae_optimizer = torch.optim.Adam([*self.encoder.parameters(), *self.decoder.parameters()], lr=0.01)
        for t in range(len(way.changes)):
            x, y = (part[s] for part in way.batch(t))
            if way.changes[t]:
                old, sets = [copy.deepcopy(each).eval() for each in (self.net, self.decoder)], self.replayed(seen)
            seen |= set(way.setting.tasks[s, way.setting.step(t)].tolist())
            share = 1 / 2 if self.options["new_share"] == "half" else 1 / len(seen)
            loss, noise = cross_entropy(self.net(x), y, way.mask(t, s)), self.noise(x)
            if old:
                with torch.no_grad():
                    x_r = torch.sigmoid(old[1](self.noise(x)[..., None, None])).view(x.shape)
                    said = old[0](x_r)
                answers, replayed = self.net(x_r), 0
                for classes in sets:
                    labels = torch.tensor([classes[i] for i in said[:, classes].argmax(dim=1).tolist()])
                    replayed = replayed + cross_entropy(answers, labels, classes) / len(sets)
                loss = share * loss + (1 - share) * replayed
            descend(optimizer, loss)
            elbo = self.negative_elbo(x, noise)
            if old:
                elbo = share * elbo + (1 - share) * self.negative_elbo(x_r, self.noise(x))
            descend(vae_optimizer, elbo)
        return self.net, self.encoder, self.decoder


@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({}, {}),
        ({"new_share": "by_tasks", "reconstruction": "mse"}, {}),
        ({"name": "gr_shared"}, {}),
        ({"new_share": "by_tasks"}, OWN_TASKS),
        ({"labels": "by_task"}, OWN_TASKS),
        ({}, {"net": CNN, "data": COLOURED, "learning_rate": 0.01, "batch": 14}),
    ],
    ids=["half", "by tasks, mse", "shared", "tasks of its own", "labels of its own tasks", "cnn"],
)
def test_training_equals_the_plain_implementation(options, changed, train):
    """Each seed's, whatever its stack mates."""
    seeds = seeds_of_equal_changes() if changed is OWN_TASKS else (0, 1)
    way = on_its_way(options, seeds=seeds, **{"train": train} | changed)
    learner = way.walk()
    assert way.changes.sum() >= 2
    encoder = learner.vae.encoder
    for s in range(2):
        net, plain_encoder, decoder = Plain(way, s).walk()
        if options.get("name") == "gr_shared":
            encoder, plain_encoder = learner.vae.encoder.head, plain_encoder[-1]
        for mine, other in ((learner.net, net), (encoder, plain_encoder), (learner.vae.decoder, decoder)):
            assert_same_net(mine, other, s, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("name", "reconstruction"), [("gr", "bce"), ("gr_shared", "mse")])
@pytest.mark.parametrize("net", NETS)
def test_every_net_has_a_decoder_of_images_in_their_own_shape(net, name, reconstruction):
    way = on_its_way({"name": name, "reconstruction": reconstruction}, net=NETS[net], data=COLOURED, batch=10)
    assert all(0 < way.step().loss < 20 for _ in way.changes)
    x_r, (y_r,) = way.learner.replay(way.batch(0)[0])
    assert x_r.shape == (1, 10, 3, 8, 8)
    assert 0 < x_r.min() < x_r.max() < 1
    assert y_r.shape == (1, 10)
