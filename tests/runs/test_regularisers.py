"""EWC and SI as in `rules` by hand; the Fisher estimate by items."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_importances import EWC_OF_RULES, SI_OF_RULES, item_by_item
from tiny import (
    CNN,
    EMBEDDING,
    LINEAR,
    LR,
    MLP,
    RESNET,
    Way,
    assert_same_net,
    images,
    made,
    split,
    stream,
    two_tasks,
)

from clpapers.randomness import generator
from clpapers.runs import nets
from clpapers.runs.fisher import squared_gradients, squared_mean_gradient
from clpapers.runs.importance import values
from clpapers.runs.nets.stacked import stack

DATA = images()


# --- the Fisher estimate -----------------------------------------------------------------------------------


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("count", [1, 5, 11])
@pytest.mark.parametrize("net", [MLP, CNN, RESNET, EMBEDDING], ids=["mlp", "cnn", "resnet", "embedding"])
@pytest.mark.parametrize("seeds", [[4], [4, 5, 6]], ids=len)
def test_squared_gradients_are_those_of_single_items(net, seeds, count, masked):
    """Nets whose running statistics have moved; each seed has images and a mask of its own."""
    rng = torch.Generator().manual_seed(1)
    shape = (1, 8, 8)

    tables = [torch.rand(4, 6, generator=rng) for _ in seeds]

    def build(table):
        return nets.build(net, shape, 4, attributes=table).double()

    stacked, ordinary = stack(build, seeds, tables).double().train(), []
    x = torch.rand((len(seeds), count, *shape), generator=rng, dtype=torch.float64)
    warm = torch.rand((len(seeds), 6, *shape), generator=rng, dtype=torch.float64)
    stacked(warm)
    for s, seed in enumerate(seeds):
        torch.manual_seed(seed)
        ordinary.append(build(tables[s]).train())
        ordinary[s](warm[s])
    mask = torch.tensor([[True, False, True, True], [False, True, True, False], [True, True, False, False]])
    estimate = squared_gradients(stacked, x, mask[: len(seeds)] if masked else None)
    for s, plain in enumerate(ordinary):
        allowed = mask[s].nonzero()[:, 0].tolist() if masked else [0, 1, 2, 3]
        expected = item_by_item(plain, x[s], allowed)
        for parameter, mine, other in zip(stacked.parameters(), estimate, expected, strict=True):
            assert mine.shape == parameter.shape
            torch.testing.assert_close(mine.view(len(seeds), *other.shape)[s], other, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("net", [MLP, CNN, RESNET], ids=["mlp", "cnn", "resnet"])
def test_the_squared_mean_gradient_is_that_of_an_ordinary_net(net):
    """Each seed's own mean; running statistics stay; of one item it is what `squared_gradients` has."""
    x = torch.rand(2, 5, 1, 8, 8, dtype=torch.float64)
    stacked = stack(lambda: nets.build(net, (1, 8, 8), 4).double(), [4, 5]).double().train()
    before = [value.clone() for value in stacked.state_dict().values()]
    found = squared_mean_gradient(stacked, x)
    assert stacked.training
    assert all(torch.equal(*pair) for pair in zip(before, stacked.state_dict().values()))
    for s, seed in enumerate((4, 5)):
        torch.manual_seed(seed)
        ordinary = nets.build(net, (1, 8, 8), 4).double().eval()
        log_p = F.log_softmax(ordinary(x[s]), dim=1).amax(dim=1).mean()
        for mine, gradient in zip(found, torch.autograd.grad(log_p, list(ordinary.parameters()))):
            torch.testing.assert_close(mine[s].view_as(gradient), gradient**2, rtol=1e-9, atol=1e-12)
    for one, items in zip(squared_mean_gradient(stacked, x[:, :1]), squared_gradients(stacked, x[:, :1])):
        torch.testing.assert_close(one, items.view_as(one), rtol=1e-9, atol=1e-12)


def test_squared_gradients_of_sampled_classes():
    """Chance picks the class whose share of the distribution function it falls in, a masked one never."""
    net = stack(lambda: nets.build(LINEAR, (1, 4, 4), 4).double(), [3])
    x = torch.rand(1, 1, 1, 4, 4, dtype=torch.float64)
    mask = torch.tensor([[False, True, False, True]])
    for allowed, masked in (([0, 1, 2, 3], None), ([1, 3], mask)):
        log_p = F.log_softmax(net(x)[0, 0, allowed], dim=0)
        edges = [0, *log_p.exp().detach().cumsum(dim=0).tolist()]
        for i in range(len(allowed)):
            expected = torch.autograd.grad(log_p[i], list(net.parameters()), retain_graph=True)
            for chance in (edges[i], (edges[i] + edges[i + 1]) / 2, edges[i + 1] - 1e-9):
                chance = torch.tensor([[chance]], dtype=torch.float64) + 1e-12
                for mine, other in zip(squared_gradients(net, x, masked, chance), expected):
                    torch.testing.assert_close(mine, other.square(), rtol=1e-8, atol=1e-14)
    for mine, other in zip(
        squared_gradients(net, x, mask, torch.zeros(1, 1, dtype=torch.float64)),
        torch.autograd.grad(F.log_softmax(net(x)[0, 0, [1, 3]], dim=0)[0], list(net.parameters())),
    ):
        torch.testing.assert_close(mine, other.square(), rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("masked", [False, True])
def test_squared_gradients_of_every_class_are_weighted_by_its_probability(masked):
    """Each seed has a mask of its own; a class that does not compete weighs nothing."""
    net = stack(lambda: nets.build(MLP, (1, 4, 4), 4).double(), [3, 4])
    x = torch.rand(2, 5, 1, 4, 4, dtype=torch.float64)
    allowed = [[0, 2], [1, 2, 3]] if masked else [[0, 1, 2, 3]] * 2
    mask = torch.tensor([[c in each for c in range(4)] for each in allowed])
    found = squared_gradients(net, x, mask if masked else None, every=True)
    for s in range(2):
        expected = [torch.zeros_like(p[s]) for p in net.parameters()]
        for item in range(5):
            log_p = F.log_softmax(net(x)[s, item, allowed[s]], dim=0)
            for each in log_p:
                gradients = torch.autograd.grad(each, list(net.parameters()), retain_graph=True)
                for sum_, gradient in zip(expected, gradients):
                    sum_ += each.detach().exp() * gradient[s] ** 2 / 5
        for mine, other in zip(found, expected):
            torch.testing.assert_close(mine[s], other, rtol=1e-8, atol=1e-14)


def test_separate_centres_are_a_penalty_for_each_task():
    """By a plain loop: after each task its Fisher, over all labels, and its weights are kept; γ does not count."""
    order = {"name": "split", "tasks": 3, "length": None}
    options = EWC_OF_RULES | {"fisher": {"samples": 99, "labels": "every"}, "centres": "separate", "gamma": 0.5}
    data = images(classes=6, items=5)
    spec = two_tasks(options, MLP, oracle={"name": "chunks"}, order=order, batch=5)
    way = Way(spec, data, [made(spec, data)])
    net, kept, begun = way.ordinary(), [], 0
    optimizer = way.optimizer(net)
    for t, changed in enumerate(way.changes):
        if changed:
            items = way.setting.items[:, way.setting.step(begun).start : way.setting.step(t).start]
            fisher = [torch.zeros_like(p) for p in net.parameters()]
            for image in way.setting.images(items)[0]:
                log_p = F.log_softmax(net(image[None])[0], dim=0)
                for each in log_p:
                    for sum_, g in zip(fisher, torch.autograd.grad(each, list(net.parameters()), retain_graph=True)):
                        sum_ += each.detach().exp() * g**2 / items.shape[1]
            kept.append((fisher, [p.detach().clone() for p in net.parameters()]))
            begun = t
        x, y = way.batch(t)
        loss = F.cross_entropy(net(x[0]), y[0])
        for fisher, centre in kept:
            loss = loss + EWC_OF_RULES["strength"] / 2 * sum(
                (f * (p - c) ** 2).sum() for f, p, c in zip(fisher, net.parameters(), centre)
            )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        way.step()
    assert len(kept) == 2
    assert_same_net(way.learner.net, net, rtol=1e-7, atol=1e-9)


# --- EWC ---------------------------------------------------------------------------------------------------


def one_pixel(learner, **budget):
    """A linear net of one input on a pixel of 0 (item 0, class 0) or 1 (item 1, class 1); a change with item 1."""
    data = images(classes=2, items=1, shape=(1, 1, 1), test_items=1)
    data.train_x[:] = np.array([0, 255]).reshape(2, 1, 1, 1)
    oracle = {"name": "chunks"}
    spec = two_tasks(learner, LINEAR, oracle=oracle, order={"name": "random", "length": None}, **budget)
    return spec, data


def place(learner, weight, bias):
    with torch.no_grad():
        learner.parameters[0].copy_(torch.tensor(weight, dtype=torch.float64).view(-1, 1))
        learner.parameters[1].copy_(torch.tensor(bias, dtype=torch.float64))


def near(tensor, expected):
    torch.testing.assert_close(tensor.detach().flatten(), torch.tensor(expected, dtype=torch.float64))


def at_the_change(**options):
    """EWC after items x = 0 and 1 of the first task, at w = (log 3/2, 0), b = (log 2, 0); x = 0 of class 0 follows."""
    spec, data = one_pixel(EWC_OF_RULES | options, batch=2)
    way = Way(spec, data, [stream([0, 1, 0, 0], boundaries=[2])])
    way.step()
    place(way.learner, [np.log(3 / 2), 0.0], [np.log(2), 0.0])
    way.learner.task_change(1)
    return way


def test_ewc_by_hand():
    """Items x = 0 and 1 at w = (log 3/2, 0), b = (log 2, 0) have p(ŷ) = 2/3 and 3/4: (1 - p)² is 1/9 and 1/16.

    So F_w = (0 + 1/16)/2 and F_b = (1/9 + 1/16)/2. Then w_0 moves by 1, and the next item, x = 0 of class 0, has no
    gradient of w: the penalty λ·F·1 pulls alone. Its gradient of b is p - onehot = (-1/3, 1/3).
    """
    way = at_the_change(strength=8.0)
    near(way.learner.fisher[0], [1 / 32, 1 / 32])
    near(way.learner.fisher[1], [25 / 288, 25 / 288])
    place(way.learner, [np.log(3 / 2) + 1, 0.0], [np.log(2), 0.0])
    way.learner.observe(1, *way.batch(1))
    near(way.learner.parameters[0], [np.log(3 / 2) + 1 - LR * 8 / 32, 0.0])
    near(way.learner.parameters[1], [np.log(2) + LR / 3, -LR / 3])


def test_ewc_of_the_mean_gradient_by_hand():
    """At the weights above log p(ŷ) has gradients 0 and 1/4 of w_0, 1/3 and 1/4 of b_0: means 1/8 and 7/24, squared."""
    way = at_the_change(fisher="last_batch_mean")
    near(way.learner.fisher[0], [1 / 64, 1 / 64])
    near(way.learner.fisher[1], [49 / 576, 49 / 576])


def test_sampled_ewc_by_hand():
    """Items x = 0 and 1, each twice in the first task, at w = b = 0: p = 1/2, so that either label's square is 1/4.

    F_w = (0 + 1/4)/2 and F_b = 1/4, of each item once; the second task, x = 0, adds 0 and 1/4. Between them the penalty
    (λ/2)·F·1² pulls w_0 by λ/8.
    """
    options = {"strength": 4.0, "gamma": 1, "fisher": {"samples": 5}, "normalise": False, "half": True}
    spec, data = one_pixel({"name": "ewc", **options}, batch=1)
    way = Way(spec, data, [stream([0, 1, 1, 0, 0, 0], boundaries=[4, 5])])
    way.walk(until=4)
    place(way.learner, [0.0, 0.0], [0.0, 0.0])
    way.learner.task_change(4)
    near(way.learner.fisher[0], [1 / 8, 1 / 8])
    near(way.learner.fisher[1], [1 / 4, 1 / 4])
    place(way.learner, [1.0, 0.0], [0.0, 0.0])
    way.learner.observe(4, *way.batch(4))
    near(way.learner.parameters[0], [1 - LR * 4 / 8, 0.0])
    near(way.learner.parameters[1], [LR / 2, -LR / 2])
    place(way.learner, [0.0, 0.0], [0.0, 0.0])
    way.learner.task_change(5)
    near(way.learner.fisher[0], [1 / 8, 1 / 8])
    near(way.learner.fisher[1], [1 / 2, 1 / 2])


@pytest.mark.parametrize("train", ["none", "oracle"])
def test_sampled_ewc_item_by_item(train):
    """Of each seed 9 distinct items of the ended task, each with a label drawn among those that compete."""
    options = {"strength": 4.0, "gamma": 1, "fisher": {"samples": 9}, "normalise": False, "half": True}
    spec = two_tasks({"name": "ewc", **options}, MLP, oracle=split(2), train=train)
    way = Way(spec, DATA, [made(spec, DATA, seed) for seed in (0, 1)])
    change = int(way.changes.argmax())
    learner = way.walk(until=change)
    learner.task_change(change)
    labels = []
    for s, seed in enumerate((0, 1)):
        rng, allowed = generator(seed, "fisher"), way.mask(change - 1, s)
        task = way.setting.items[s, : way.setting.step(change).start].unique().numpy()
        items, chances = torch.from_numpy(rng.choice(task, 9, replace=False)), rng.random(9)
        assert len(items.unique()) == 9
        net = way.ordinary(s=s)
        torch.nn.utils.vector_to_parameters(torch.cat([p[s].flatten() for p in learner.parameters]), net.parameters())
        total = [torch.zeros_like(p) for p in net.parameters()]
        for x, chance in zip(way.setting.images(items), chances):
            log_p = F.log_softmax(net(x[None])[0, allowed], dim=0)
            y = int(np.searchsorted(log_p.exp().detach().cumsum(dim=0).numpy(), chance))
            labels.append((y, int(log_p.argmax())))
            for sum_, gradient in zip(total, torch.autograd.grad(log_p[y], list(net.parameters()))):
                sum_ += gradient**2 / 9
        for mine, other in zip(learner.fisher, total):
            torch.testing.assert_close(mine[s], other, rtol=1e-8, atol=1e-14)
    assert any(drawn != likeliest for drawn, likeliest in labels)


def test_si_by_hand():
    """x = 0 of class 0 at b = 0: g = (-1/2, 1/2), so that a step of 1/2 moves b by ±1/4 and adds ω = 1/8 to both.

    With ξ = 1/16 a change makes Ω = (1/8)/(1/16 + 1/16) = 1. Moved on by d = (1, 1), which the softmax does not feel,
    b then has the gradient p - onehot + 2c·d, and ω starts again from the square of that, times the learning rate.
    """
    spec, data = one_pixel(SI_OF_RULES | {"strength": 0.5, "damping": 1 / 16}, batch=1, learning_rate=0.5)
    way = Way(spec, data, [stream([0, 0], boundaries=[1])])
    place(way.learner, [0.0, 0.0], [0.0, 0.0])
    way.learner.anchor = values(way.learner.parameters)
    way.learner.observe(0, *way.batch(0))
    near(way.learner.parameters[1], [1 / 4, -1 / 4])
    near(way.learner.path[1], [1 / 8, 1 / 8])
    way.learner.task_change(1)
    near(way.learner.importance[1], [1.0, 1.0])
    near(way.learner.importance[0], [0.0, 0.0])
    near(way.learner.path[1], [0.0, 0.0])
    near(way.learner.anchor[1], [1 / 4, -1 / 4])
    place(way.learner, [0.0, 0.0], [5 / 4, 3 / 4])
    p = 1 / (1 + np.exp(3 / 4 - 5 / 4))
    g = np.array([p - 1 + 1, 1 - p + 1])
    way.learner.observe(1, *way.batch(1))
    near(way.learner.parameters[1], (np.array([5 / 4, 3 / 4]) - g / 2).tolist())
    near(way.learner.path[1], (g**2 / 2).tolist())


# --- what a change of task does ----------------------------------------------------------------------------
