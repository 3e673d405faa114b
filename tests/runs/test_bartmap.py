"""Biased ARTMAP: examples worked by hand, and a plain implementation."""

import math

import numpy as np
import pytest
import torch
from tiny import OPTIONS, Way, cell, stream

from clpapers.runs import loop
from clpapers.runs.footprint import learner_bytes
from clpapers.runs.learners.bartmap import NODES_AT_ONCE
from clpapers.runs.scenario import ScenarioError

ALPHA, GAMMA, EPSILON = 1e-8, 1e-7, -1e-5


def patchwork(count, seed):
    """Points [count, 3, 2, 1], M = 6, each of the class of the nearest of nine corners, which have four classes."""
    corners = np.random.default_rng(0).integers(0, 256, (9, 6))
    x = np.random.default_rng(seed).integers(0, 256, (count, 6))
    y = np.square(x[:, None] - corners).sum(axis=2).argmin(axis=1) % 4
    return x.reshape(count, 3, 2, 1).astype(np.uint8), y


DATA = loop.Data(*patchwork(240, 1), *patchwork(120, 2), classes=4)


def of_stream(x, **options):
    """A learner before a stream of pixels [n, features], of two classes."""
    y = np.arange(len(x)).clip(0, 1)
    spec = cell("bartmap", OPTIONS["bartmap"] | options, "mlp", batch=1)
    pixels = np.array(x, np.uint8)[:, None, :, None]
    return Way(spec, loop.Data(pixels, y, pixels, y, classes=2), [stream(range(len(x)))])


def fresh(features, bias, dtype=torch.float64):
    """A learner that has seen nothing, of inputs of so many features."""
    way = of_stream(np.zeros((2, features)), bias=bias)
    way.setting.images.dtype = dtype
    return loop.learners.create(way.spec["learner"], way.setting)


def test_calibration_puts_the_first_items_edges_at_0_and_1():
    """Three pixels: 51 to 204 of 255 in the first two items, one value, 0 to 255; the third item lies beyond."""
    way = of_stream([[51, 102, 0], [204, 102, 255], [255, 0, 51]], calibration=2)
    seen = way.learner.complement_coded(way.setting.images(torch.tensor([[0, 1, 2]])))
    np.testing.assert_allclose(seen[:, :3], [[0, 0, 0], [1, 0, 1], [1, 0, 0.2]])
    np.testing.assert_allclose(seen[:, 3:], 1 - seen[:, :3])


def shown(learner, items, dtype=torch.float64):
    """The learner, after it was shown pairs of an input and its class."""
    for a, label in items:
        learner.observe(0, torch.tensor(a, dtype=dtype).view(1, 1, 1, 1, -1), torch.tensor([[label]]))
    return learner


def answers(learner, inputs, dtype=torch.float64):
    x = torch.tensor(inputs, dtype=dtype)[None, :, None, None]
    with learner.evaluation():
        return learner.scores(x, None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fuzzy_artmap_by_hand(dtype):
    """λ = 0: a node grows, a box within a box, match tracking to a node of the right class, and to a new one."""
    learner, expected = shown(fresh(2, bias=0, dtype=dtype), [((0.2, 0.2), 0)], dtype), {}
    for a, label, node, w in [
        ((0.4, 0.2), 0, 0, [0.2, 0.2, 0.6, 0.8]),  # the box from .2 to .4
        ((0.3, 0.2), 1, 1, [0.3, 0.2, 0.7, 0.8]),  # inside of it: its match .9 becomes vigilance, and nobody is left
        ((0.5, 0.2), 1, 1, [0.3, 0.2, 0.5, 0.8]),  # T .1 and .2 below 2: the first is wrong at match .85, that has .9
        ((0.25, 0.2), 1, 2, [0.25, 0.2, 0.75, 0.8]),  # inside of the first, match .9; the second has only .875
    ]:
        expected[node] = w
        np.testing.assert_allclose(shown(learner, [(a, label)], dtype).w, [*expected.values()], rtol=1e-6)
    assert learner.labels.tolist() == [0, 1, 1]
    assert learner.report(0) == {"nodes": [1, 2]}
    # inside of the first box; inside of the second; on the third, a point, although the first contains it too
    scores = answers(learner, [(0.22, 0.2), (0.45, 0.2), (0.25, 0.2)], dtype)
    assert scores.argmax(dim=2).tolist() == [[0, 1, 1]]
    close = 1e-14 if dtype == torch.float64 else 5e-10
    np.testing.assert_allclose(scores[0, 2], [2 - ALPHA * 0.2, 2], rtol=0, atol=close)
    assert learner.confidence(scores)[0, 2] == 1


def test_the_bias_by_hand():
    """Attention leaves the feature that matched best: the node that λ = 0 then attends to is not attended to.

    The input (.2, .6) of class 1 lies in the box of node 0, of class 0: x = A∧w_0 = (.2, .4, .8, .38), |x| = 1.78, its
    match .89 becomes vigilance. Only the third feature is above |x|/2M = .445; e_3 = (.8 - .445) / 11. Node 1, of the
    right class, has the match .9; biased, 1 - .2 / (2 - 10·e_3) = .8808.
    """
    before = [((0.2, 0.4), 0), ((0.2, 0.62), 0), ((0.2, 0.8), 1)]
    fuzzy = shown(fresh(2, bias=0), [*before, ((0.2, 0.6), 1)])
    np.testing.assert_allclose(fuzzy.w, [[0.2, 0.4, 0.8, 0.38], [0.2, 0.6, 0.8, 0.2]], rtol=1e-12)

    biased = shown(fresh(2, bias=10), [*before, ((0.2, 0.6), 1)])
    # the new node learns the input as it is, and node 1 stays
    expected = [[0.2, 0.4, 0.8, 0.38], [0.2, 0.8, 0.8, 0.2], [0.2, 0.6, 0.8, 0.4]]
    np.testing.assert_allclose(biased.w, expected, rtol=1e-12)
    assert biased.labels.tolist() == [0, 1, 1]


def biased_artmap(inputs, labels, lam):
    """Biased ARTMAP in plain Python, feature by feature: weights and classes, and how often the bias rose."""
    w, classes, rises = [], [], 0
    for a, label in zip(inputs, labels):
        A, e, rho, M = [*a, *(1 - a)], [0.0] * (2 * len(a)), 0.0, len(a)
        T = [sum(map(min, A, each)) + (1 - ALPHA) * (M - sum(each)) for each in w]
        for j in sorted(range(len(w)), key=lambda j: -T[j]):
            if T[j] <= 3.5 * ALPHA * M:
                continue
            shifted = [max(v - lam * bias, 0) for v, bias in zip(A, e)]
            expected = [max(v - lam * bias, 0) for v, bias in zip(w[j], e)]
            match = (sum(map(min, expected, shifted)) + GAMMA) / (sum(shifted) + GAMMA)
            if match < rho:
                continue
            x = list(map(min, A, w[j]))
            if classes[j] == label:
                w[j] = x
                break
            rho, mean = match + EPSILON, sum(x) / (2 * M)
            for i in range(2 * M):
                if max(x[i] - lam * e[i], 0) - mean > e[i] + 1e-12:  # at the fixed point it stays
                    e[i], rises = (x[i] - mean) / (1 + lam), rises + 1
        else:
            w.append(A)
            classes.append(label)
    return np.array(w), classes, rises


@pytest.mark.parametrize("bias", [0, 0.5, 10])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_plain_one(seed, bias):
    """The same nodes, of which it holds nothing else, and the same answers. Without bias it is fuzzy ARTMAP."""
    order = np.random.default_rng(seed).permutation(240)
    spec = cell("bartmap", OPTIONS["bartmap"] | {"bias": bias}, "mlp", batch=5)
    learner = Way(spec, DATA, [stream(order)]).walk()
    w, classes, rises = biased_artmap(DATA.train_x.reshape(240, -1)[order] * (1 / 255), DATA.train_y[order], bias)
    np.testing.assert_allclose(learner.w, w, rtol=1e-12)
    assert learner.labels.tolist() == classes
    assert rises > 50
    assert len(w) > 10
    test = DATA.test_x.reshape(120, -1) / 255
    A = np.concatenate([test, 1 - test], axis=1)
    T = np.minimum(A[:, None], w).sum(axis=2) + (1 - ALPHA) * (6 - w.sum(axis=1))
    scores = answers(learner, test)[0]
    for c in range(4):
        np.testing.assert_allclose(scores[:, c], T[:, np.array(classes) == c].max(axis=1), rtol=0, atol=1e-12)
    held = len(w) * (12 + 1) * 8  # weights, and M - |w|
    assert learner_bytes(learner, 0) == {"training": held, "testing": held}


def test_a_node_is_found_behind_more_than_are_searched_at_once():
    """Boxes of other classes around the input, of different sizes, come first; none but the smallest is attended."""
    n = NODES_AT_ONCE + 6

    def at(feature, shift):
        return tuple(0.5 + shift * np.eye(n)[feature])

    corners = [(at(i, sign * (0.1 + 0.001 * i)), i) for i in range(n) for sign in (-1, 1)]
    learner = shown(fresh(n, bias=0), [*corners, (at(0, 0.01), n), (at(0, 0), n)])
    assert learner.labels.tolist() == [*range(n + 1)]
    assert learner.w[-1, [0, n]].tolist() == pytest.approx([0.5, 0.49])


@pytest.mark.parametrize("wrong", [-0.1, 1.5, math.nan])
def test_inputs_outside_of_0_to_1_are_refused(wrong):
    with pytest.raises(
        ScenarioError, match=r"^learner bartmap: inputs from .* to .*, but it needs them in \[0, 1\]; .*$"
    ):
        shown(fresh(2, bias=10), [((0.5, wrong), 0)])
