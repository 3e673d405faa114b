"""GeppNet against a plain implementation, unit by unit; when its map learns, and how its units are born."""

import math

import numpy as np
import pytest
import torch
from courses import Way, images
from tiny import OPTIONS, cell, stream

from clpapers.randomness import generator
from clpapers.runs.footprint import learner_bytes

DATA = images(classes=3, items=20, shape=(3, 2, 1), test_items=10)  # D = 6
GIVEN = OPTIONS["geppnet"] | {"replay": 0}


def on_its_way(seeds=(0, 1, 2), batch=1, **options):
    spec = cell("geppnet", GIVEN | options, "mlp", batch=batch)
    return Way(spec, DATA, [stream(np.random.default_rng(seed).permutation(60), seed) for seed in seeds])


def plain(inputs, labels, seed, o):
    """Prototypes [N, D], readout [K, N] and κ after one pass, in Python; `o` are the options."""
    units, n = o["side"] ** 2, len(inputs)
    rng = generator(seed, "prototypes")
    born = rng.permutation(units) * o["start"] // units
    noise = (o["noise"] * rng.standard_normal((units, inputs.shape[1]), np.float32)).astype(float)
    w, V, distances, again = {}, np.zeros((3, units)), [], generator(seed, "replay")
    presented = []  # position, and that of the item of the stream with which it comes
    for i in range(n):
        presented += [(i, i)] + [(int(j), i) for j in (again.integers(i, size=o["replay"]) if i else [])]
    for here, i in presented:
        x, label = inputs[here], labels[here]
        for j in np.flatnonzero(born == i) if here == i else []:
            w[j] = x + math.sqrt((x**2).mean()) * noise[j]
        d = {j: math.dist(x, w[j]) for j in w}
        best = min(d, key=d.get)
        distances.append(d[best])
        kappa = np.mean(distances)
        z = np.array([math.exp(-(d[j] ** 2) / (2 * kappa**2)) if j in d else 0 for j in range(units)])
        z = z.max() * (z / z.max()) ** o["sharpness"]
        out = V @ z
        V += o["readout_rate"] * np.outer(np.eye(3)[label] - out, z)
        second, top = np.sort(out)[-2:]
        if out.argmax() != label or top - second < o["margin"]:
            part = min(i / (o["settling"] * n), 1)
            rate, radius = (o[key][0] ** (1 - part) * o[key][1] ** part for key in ("rates", "radii"))
            for j in w:
                apart = math.dist(divmod(j, o["side"]), divmod(best, o["side"]))
                w[j] = w[j] + rate * math.exp(-(apart**2) / (2 * radius**2)) * (x - w[j])
    return np.array([w[j] for j in range(units)]), V, kappa


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize(
    "options", [{}, {"start": 1, "margin": 0, "sharpness": 1}, {"start": 25, "settling": 1, "side": 4}, {"replay": 3}]
)
def test_equals_the_plain_implementation(options, batch):
    """Three seeds; a batch is learnt item by item. And the answers are the readout's."""
    way = on_its_way(batch=batch, **options)
    learner = way.walk()
    test = way.setting.images(torch.arange(60)).flatten(1)
    with learner.evaluation():
        scores = learner.scores(way.setting.images(torch.arange(60).expand(3, -1)), None)
    for s in range(3):
        inputs = way.setting.images(way.setting.items[s]).flatten(1).numpy()
        w, V, kappa = plain(inputs, way.setting.labels[s].tolist(), s, GIVEN | options)
        np.testing.assert_allclose(learner.w[s], w, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(learner.V[s], V, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(learner.kappa[s], kappa, rtol=1e-9)
        squares = np.square(test.numpy()[:, None] - w).sum(axis=2)
        z = np.exp(-squares / (2 * kappa**2))
        best = z.max(axis=1, keepdims=True)
        expected = (best * (z / best) ** learner.sharpness) @ V.T
        np.testing.assert_allclose(scores[s], expected, rtol=1e-7, atol=1e-9)
        ordered = np.sort(expected, axis=1)
        np.testing.assert_allclose(learner.confidence(scores)[s], ordered[:, -1] - ordered[:, -2], atol=1e-8)


def test_the_map_rests_where_it_is_right_and_sure():
    """Of stack mates each for itself: two seeds are at the same item, which one of them is told to be another class."""
    way = on_its_way(seeds=(0, 0), margin=0.01)
    learner = way.walk()
    item = way.setting.images(way.setting.items[:, :1])[:, 0].flatten(1)
    with learner.evaluation():
        scores = learner.scores(item[:, None], None)
    answer = scores.argmax(dim=2)[:, 0]
    assert (learner.confidence(scores) > 0.02).all()
    w, V = learner.w.clone(), learner.V.clone()
    learner.learn(item, (answer + torch.tensor([0, 1])) % 3)
    assert torch.equal(learner.w[0], w[0])
    assert not torch.equal(learner.w[1], w[1])
    assert not torch.equal(learner.V[0], V[0])
    learner.margin = 10
    learner.learn(item, answer)
    assert not torch.equal(learner.w[0], w[0])


def test_units_are_born_in_equal_shares_with_the_first_items():
    way = on_its_way(start=5)
    assert [torch.bincount(born).tolist() for born in way.learner.born] == [[5] * 5] * 3
    unborn = way.learner.w.clone()
    learner = way.walk(3)
    later = learner.born >= 3
    assert torch.equal(learner.w[later], unborn[later])  # their noise
    with learner.evaluation():
        assert learner.scores(way.setting.images(way.setting.items[:, :9]), None).isfinite().all()
    assert (learner.V.movedim(1, 2)[later] == 0).all()


def test_rates_decay_and_then_stay():
    learner = on_its_way(settling=0.5, rates=[0.2, 0.05]).learner  # 30 of 60 items
    for items, rate in [(0, 0.2), (15, 0.1), (30, 0.05), (59, 0.05)]:
        learner.items = items
        assert learner.now(learner.rates) == pytest.approx(rate)


def test_it_learns():
    """Its own stream, seen once, at chance 1/3."""
    way = on_its_way(readout_rate=0.2)
    learner = way.walk()
    with learner.evaluation():
        answers = learner.scores(way.setting.images(way.setting.items), None).argmax(dim=2)
    assert (answers == way.setting.labels).double().mean() > 0.6


def test_what_is_replayed_has_been_and_is_drawn_uniformly():
    """Three a step; item i by each later step t with probability 3/t, of three seeds."""
    way, taken = on_its_way(replay=3), []
    learner = way.learner
    replayed = learner.replayed
    learner.replayed = lambda: (taken.append([x for x, _ in replayed()]), iter(()))[1]
    way.walk()
    assert [len(each) for each in taken] == [0] + [3] * 59
    stream = way.setting.images(way.setting.items).flatten(2)
    counts = torch.zeros(60)
    for t, each in enumerate(taken):
        for x in each:
            apart = torch.cdist(x[:, None], stream)[:, 0]
            assert (apart.min(dim=1).values < 1e-6).all()
            assert (apart.argmin(dim=1) < t).all()
            counts += torch.bincount(apart.argmin(dim=1), minlength=60)
    expected = np.array([sum(3 * 3 / t for t in range(i + 1, 60)) for i in range(60)])
    assert counts.sum() == pytest.approx(expected.sum())
    assert counts[:20].sum() == pytest.approx(expected[:20].sum(), rel=0.15)


def test_all_items_so_far_are_kept_where_some_are_replayed():
    for replay, items in ((0, 0), (1, 7)):
        learner = on_its_way(replay=replay).walk(7)
        assert learner.memory_use(0)["items"] == items


def test_it_holds_prototypes_readout_and_scale():
    learner = on_its_way().walk()
    held = (25 * 6 + 3 * 25 + 1) * 8
    assert all(learner_bytes(learner, s) == {"training": held, "testing": held} for s in range(3))
