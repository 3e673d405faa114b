"""GR: what is replayed, who labels it and how it is weighed; the auto-encoder's loss; a plain implementation."""

import copy

import pytest
import torch
import torch.nn.functional as F
from tiny import MLP, NETS, RESNET, Way, assert_same_net, cross_entropy, images, made, split, two_tasks
from torch.distributions import Bernoulli, Independent, Normal, kl_divergence

from clpapers.randomness import generator

GR = {"name": "gr", "latent": 3, "reconstruction": "bce", "generator_learning_rate": 0.01, "new_share": "half"}
DATA = images(classes=6, items=7)
THREE = {"oracle": split(3), "order": {"name": "split", "tasks": 3, "length": None}}
PIXELS = 16


def on_its_way(options=(), seeds=(0,), net=MLP, data=DATA, **changed):
    spec = two_tasks(GR | dict(options), net, **THREE | changed)
    return Way(spec, data, [made(spec, data, seed) for seed in seeds])


def after_the_first_change(**options):
    """A learner that has just frozen its copies."""
    way = on_its_way(**options)
    way.walk(until=int(way.changes.argmax()) + 1)
    return way


def states(nets):
    return [{k: v.clone() for k, v in net.state_dict().items()} for net in nets]


def same(before, after):
    return [all(torch.equal(b[k], a[k]) for k in b) for b, a in zip(before, after)]


# --- who labels, and with what -----------------------------------------------------------------------------


@pytest.mark.parametrize("net", [MLP, RESNET], ids=lambda net: net["name"])
def test_frozen_copies_move_at_changes_only(net):
    """Parameters and running statistics; at a change they become those of the live nets."""
    data = DATA if net is MLP else images(classes=6, items=7, shape=(8, 8, 1))
    way = after_the_first_change(net=net, data=data)
    for t in range(way.t, len(way.changes)):
        before = states(way.learner.old)
        live = states((way.learner.net, way.learner.vae.decoder))
        way.step()
        assert same(before, states(way.learner.old)) == [not way.changes[t]] * 2
        if way.changes[t]:
            assert same(live, states(way.learner.old)) == [True, True]
    assert way.changes.sum() == 2


# --- how it is weighed -------------------------------------------------------------------------------------


def test_shares():
    """Half; or one in the number of tasks that have occurred so far, for each seed by itself."""
    assert after_the_first_change().learner.share() == 0.5
    way = on_its_way({"new_share": "by_tasks"}, seeds=(0, 1))
    task = way.setting.tasks
    task[0] = torch.arange(task.shape[1]) // 14
    task[1] = 2
    for t in range(len(way.changes)):
        way.step()
        end = way.setting.step(t).stop
        expected = [1 / len(set(task[s, :end].tolist())) for s in range(2)]
        assert way.learner.share().tolist() == pytest.approx(expected)
    assert expected == [1 / 3, 1.0]


def plain_gr(way, s, new_share, *, shared=False):
    """One seed: ordinary modules, weighted sums of mean losses; noise is drawn in the learner's order."""
    net = way.ordinary(s=s)
    if shared:
        linear = {"name": "mlp", "hidden": []}
        head = way.ordinary("init encoder", s, net=linear, shape=(MLP["hidden"][-1], 1, 1), classes=2 * 3)
        encoder = torch.nn.Sequential(*list(net)[:-1], *head)
    else:
        encoder = way.ordinary("init encoder", s, classes=2 * 3)
    mirror = MLP | {"hidden": MLP["hidden"][::-1]}
    decoder = way.ordinary("init decoder", s, net=mirror, shape=(3, 1, 1), classes=PIXELS)
    optimizer = way.optimizer(net)
    vae_optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    rng, seen, old = generator(way.setting.seeds[s], "generative replay"), [], None

    def noise(x):
        return torch.from_numpy(rng.standard_normal((len(x), 3)))

    def negative_elbo(x, drawn):
        mean, log_variance = encoder(x).chunk(2, dim=1)
        said = decoder(mean + drawn * torch.exp(log_variance / 2))
        kl = ((log_variance.exp() + mean**2 - 1 - log_variance) / 2).sum(dim=1)
        return F.binary_cross_entropy(torch.sigmoid(said), x.flatten(1)) + kl.mean() / PIXELS

    for t in range(len(way.changes)):
        x, y = (part[s] for part in way.batch(t))
        if way.changes[t]:
            old = copy.deepcopy(net), copy.deepcopy(decoder)
            replayable = sorted({c for each in seen for c in each})
        if not seen or seen[-1] != way.mask(t, s):
            seen.append(way.mask(t, s))
        loss, drawn = cross_entropy(net(x), y, way.mask(t, s)), noise(x)
        if old:
            with torch.no_grad():
                x_r = torch.sigmoid(old[1](noise(x))).view(x.shape)
                y_r = torch.tensor([replayable[i] for i in old[0](x_r)[:, replayable].argmax(dim=1).tolist()])
            tasks = way.setting.tasks[s, : way.setting.step(t).stop].unique()
            share = 1 / 2 if new_share == "half" else 1 / len(tasks)
            loss = share * loss + (1 - share) * cross_entropy(net(x_r), y_r, replayable)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        elbo = negative_elbo(x, drawn)
        if old:
            elbo = share * elbo + (1 - share) * negative_elbo(x_r, noise(x))
        vae_optimizer.zero_grad()
        elbo.backward()
        vae_optimizer.step()
    return net, encoder, decoder


@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize("new_share", ["half", "by_tasks"])
def test_training_equals_the_plain_implementation(new_share, train):
    way = on_its_way({"new_share": new_share}, seeds=(0, 1), train=train)
    learner = way.walk()
    assert way.changes.sum() == 2
    for s in range(2):
        for mine, other in zip((learner.net, learner.vae.encoder, learner.vae.decoder), plain_gr(way, s, new_share)):
            assert_same_net(mine, other, s, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("train", ["none", "oracle"])
def test_with_a_shared_encoder_too(train):
    """Both losses move the layers below the heads, the classifier's first."""
    way = on_its_way({"name": "gr_shared"}, seeds=(0, 1), train=train)
    learner = way.walk()
    assert way.changes.sum() == 2
    for s in range(2):
        net, encoder, decoder = plain_gr(way, s, "half", shared=True)
        pairs = (learner.net, net), (learner.vae.encoder.head, encoder[-1]), (learner.vae.decoder, decoder)
        for mine, other in pairs:
            assert_same_net(mine, other, s, rtol=1e-7, atol=1e-9)


def test_a_seed_does_not_depend_on_its_stack_mates():
    """Not even on their noise; with a ResNet, whose batch norm would show any mixing."""
    data = images(classes=6, items=7, shape=(8, 8, 1))
    together = on_its_way(seeds=(0, 1), net=RESNET, data=data, learning_rate=0.01, batch=14)
    together.walk()
    for s, seed in enumerate((0, 1)):
        alone = on_its_way(seeds=(seed,), net=RESNET, data=data, learning_rate=0.01, batch=14)
        alone.walk()
        assert_same_net(together.learner.net, alone.learner.net, s, rtol=1e-6, atol=1e-8)
        replayed = [way.learner.replay(way.batch(0)[0]) for way in (copy.deepcopy(together), alone)]
        torch.testing.assert_close(replayed[0][0][s], replayed[1][0][0], rtol=1e-5, atol=1e-6)


def test_by_task_a_seed_replays_its_own_past_tasks():
    """Where seeds learn the tasks in other orders, as an oracle that is not aligned makes them."""
    changed = {"train": "oracle", "oracle": split(3, aligned=False)}
    groups: dict = {}
    for seed in range(12):
        way = on_its_way({"labels": "by_task"}, seeds=(seed,), **changed)
        groups.setdefault(tuple(way.changes), []).append(seed)
    seeds = max(groups.values(), key=len)[:3]
    assert len(seeds) > 1
    together = on_its_way({"labels": "by_task"}, seeds=seeds, **changed)
    together.walk()
    for s, seed in enumerate(seeds):
        alone = on_its_way({"labels": "by_task"}, seeds=(seed,), **changed)
        alone.walk()
        assert_same_net(together.learner.net, alone.learner.net, s, rtol=1e-6, atol=1e-8)


def test_by_task_an_image_is_labelled_among_the_classes_of_each_past_task():
    way = on_its_way({"labels": "by_task"}, train="oracle")
    way.walk()
    _, labels = way.learner.replay(way.batch(0)[0])
    classes = [set(way.setting.task_classes[0, task].nonzero()[:, 0].tolist()) for task in range(2)]
    assert len(labels) == 2
    assert all(set(y.flatten().tolist()) <= own for y, own in zip(labels, classes))


# --- the auto-encoder --------------------------------------------------------------------------------------


@pytest.mark.parametrize("reconstruction", ["bce", "mse"])
def test_the_loss_is_the_negative_elbo_a_pixel(reconstruction):
    """Bernoulli pixels (or squared errors) and KL to N(0, 1), from torch's distributions, divided by the pixels."""
    way = on_its_way({"reconstruction": reconstruction}, seeds=(0, 1))
    vae, (x, _) = way.learner.vae, way.batch(0)
    noise = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    loss = vae.loss(x, noise)
    for s in range(2):
        mean, log_variance = vae.encoder(x)[s].chunk(2, dim=1)
        posterior = Independent(Normal(mean, (log_variance / 2).exp()), 1)
        prior = Independent(Normal(torch.zeros_like(mean), torch.ones_like(mean)), 1)
        z = mean + noise[s] * posterior.base_dist.stddev
        said = vae.decoder(z.expand(2, -1, -1)[..., None, None])[s]
        pixels = x[s].flatten(1)
        if reconstruction == "bce":
            error = -Bernoulli(logits=said, validate_args=False).log_prob(pixels).sum(dim=1)
        else:
            error = ((said.sigmoid() - pixels) ** 2).sum(dim=1)
        expected = (error + kl_divergence(posterior, prior)).mean() / PIXELS
        torch.testing.assert_close(loss[s], expected)


@pytest.mark.parametrize("name", ["gr", "gr_shared"])
@pytest.mark.parametrize("reconstruction", ["bce", "mse"])
def test_with_a_resnet_images_are_drawn_in_their_own_shape(reconstruction, name):
    data = images(classes=6, items=7, shape=(8, 8, 3))
    way = on_its_way({"name": name, "reconstruction": reconstruction}, net=RESNET, data=data, batch=10)
    losses = [way.step()[0].item() for _ in way.changes]
    x_r, (y_r,) = way.learner.replay(way.batch(0)[0])
    assert x_r.shape == (1, 10, 3, 8, 8)
    assert x_r.min() > 0
    assert x_r.max() < 1
    assert y_r.shape == (1, 10)
    assert all(0 < loss < 20 for loss in losses)


@pytest.mark.parametrize("name", ["gr", "gr_shared"])
@pytest.mark.parametrize("net", NETS)
def test_every_net_has_a_decoder(net, name):
    data = images(classes=6, items=7, shape=(8, 8, 1))
    way = on_its_way({"name": name}, net=NETS[net], data=data, batch=10)
    assert all(way.step()[0].isfinite().all() for _ in way.changes)
