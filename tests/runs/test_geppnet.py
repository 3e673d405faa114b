"""GeppNet against a plain implementation, unit by unit."""

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


def plain(inputs, labels, seed, o, until):
    """Prototypes by unit, readout [K, N] and κ after so many items, in Python; `o` are the options."""
    units, n = o["side"] ** 2, len(inputs)
    rng = generator(seed, "prototypes")
    born = rng.permutation(units) * o["start"] // units
    noise = (o["noise"] * rng.standard_normal((units, inputs.shape[1]), np.float32)).astype(float)
    w, V, distances, again = {}, np.zeros((3, units)), [], generator(seed, "replay")
    presented = []  # position, and that of the item of the stream with which it comes
    for i in range(until):
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
    return w, V, kappa


@pytest.mark.parametrize(
    ("batch", "until", "options"),
    [
        (1, 60, {}),
        (7, 60, {"start": 1, "margin": 0, "sharpness": 1}),
        (7, 60, {"start": 25, "settling": 1, "side": 4}),
        (1, 60, {"replay": 3}),
        (7, 60, {"replay": 3}),
        (1, 3, {"start": 5, "noise": 3}),
    ],
)
def test_equals_the_plain_implementation(batch, until, options):
    """Three seeds; a batch is learnt item by item. The readout of the units that are born answers.

    It is asked for images, and for the very places of all units: those that come with a later item are noise so far,
    which is as wide as the images in the last case, so that others are near enough to answer.
    """
    way = on_its_way(batch=batch, **options)
    learner, shape = way.walk(None if until == 60 else until), DATA.train_x.shape[1:]
    x = torch.cat([way.setting.images(torch.arange(60).expand(3, -1)), learner.w.view(3, -1, 1, *shape[:2])], dim=1)
    with learner.evaluation():
        scores = learner.scores(x, None)
    assert learner.memory_use(0)["items"] == (until if options.get("replay") else 0)
    for s in range(3):
        inputs = way.setting.images(way.setting.items[s]).flatten(1).numpy()
        w, V, kappa = plain(inputs, way.setting.labels[s].tolist(), s, GIVEN | options, until)
        born = list(w)
        V, w = V[:, born], np.array([*w.values()])
        np.testing.assert_allclose(learner.w[s, born], w, rtol=1e-8, atol=1e-10)
        squares = np.square(x[s].flatten(1).numpy()[:, None] - w).sum(axis=2)
        z = np.exp(-squares / (2 * kappa**2))
        best = z.max(axis=1, keepdims=True)
        expected = (best * (z / best) ** learner.sharpness) @ V.T
        np.testing.assert_allclose(scores[s], expected, rtol=1e-6, atol=1e-9)
        ordered = np.sort(expected, axis=1)
        np.testing.assert_allclose(learner.confidence(scores)[s], ordered[:, -1] - ordered[:, -2], atol=1e-8)
