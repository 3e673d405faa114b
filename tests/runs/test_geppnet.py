"""GeppNet against a plain implementation, unit by unit; when its map learns, and how its units are born."""

import math

import numpy as np
import pytest
import torch
from tiny import OPTIONS, Way, cell, images, stream

from clpapers.randomness import generator

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


def test_a_unit_that_is_born_with_the_next_item_does_not_answer_yet():
    """Asked for the very place of such a unit, which is noise so far, the other units answer alone.

    Noise is as wide as the images, so that the others are near enough to answer.
    """
    learner = on_its_way(start=5, noise=3).walk(3)
    next_ones = [int((born == 3).nonzero()[0]) for born in learner.born]
    x = torch.stack([w[unit] for w, unit in zip(learner.w, next_ones)])
    with learner.evaluation():
        scores = learner.scores(x.view(3, 1, *DATA.train_x.shape[1:]), None)
    for s in range(3):
        there = learner.born[s] < 3
        squares = (learner.w[s, there] - x[s]).square().sum(dim=1)
        z = torch.exp(-(squares.min() + learner.sharpness * (squares - squares.min())) / (2 * learner.kappa[s] ** 2))
        torch.testing.assert_close(scores[s, 0], learner.V[s][:, there] @ z, rtol=1e-6, atol=0)


def test_all_items_so_far_are_kept_where_some_are_replayed():
    for replay, items in ((0, 0), (1, 7)):
        learner = on_its_way(replay=replay).walk(7)
        assert learner.memory_use(0)["items"] == items
