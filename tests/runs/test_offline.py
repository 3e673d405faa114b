"""The offline learner and its net against a plain PyTorch loop on the same draws."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from plain_loop import descend
from tiny import CPU, Way, assert_same_net, cell
from torch import nn

from clpapers.randomness import generator
from clpapers.runs import loop
from clpapers.runs.scenario import ScenarioError

NET = {"name": "exstream_mlp", "hidden": [11, 6], "batch_norm": True, "dropout": 0.25}


def spec_of(every=20, *, batch=7, net=NET):
    options = {"epochs": 2, "batch": batch}
    spec = cell("offline", options, batch=1, optimizer="adam", learning_rate=2e-3) | {"net": net}
    spec["evaluation"] |= {"every": every, "points": 1}
    return spec


class Mask(nn.Module):
    """Dropout of a share of 1/4 whose masks are drawn by a generator, unit by unit of one item after the other."""

    def __init__(self, rng):
        super().__init__()
        self.rng = rng

    def forward(self, x):
        if not self.training:
            return x
        kept = torch.rand(len(x), x.shape[1], generator=self.rng) >= 0.25
        return x * kept / 0.75


def plain_net(seed):
    """ExStream's net of 192 values, 11, 6 and 4 units, layer by layer, of one seed for PyTorch."""
    rng = torch.Generator().manual_seed(int(generator(seed, "dropout").integers(2**63)))
    torch.manual_seed(seed)
    layers = [nn.Flatten()]
    for n_in, n_out in ((192, 11), (11, 6), (6, 4)):
        linear = nn.Linear(n_in, n_out)
        linear.weight.data.normal_(0, np.sqrt(2 / (n_in + n_out)))
        linear.bias.data.fill_(1)
        layers += [linear] if n_out == 4 else [linear, nn.BatchNorm1d(n_out), nn.ELU(), Mask(rng)]
    return nn.Sequential(*layers).double().train()


def plain_fit(way, s, seed, n, epochs, batch):
    """What a net of one seed is after training on its first n items."""
    purpose = f"offline after {n}"
    net = plain_net(int(generator(seed, purpose).integers(2**63)))
    optimizer, rng = torch.optim.Adam(net.parameters(), lr=2e-3), generator(seed, f"{purpose} items")
    x, y = way.setting.images(way.setting.items[s, :n]), way.setting.labels[s, :n]
    for _ in range(epochs):
        left, taken = rng.permutation(n).tolist(), []
        while left:
            taken, left = [*taken, *left[:batch]][-batch:], left[batch:]  # the last batch has some of the one before
            descend(optimizer, F.cross_entropy(net(x[taken]), y[taken]))
    return net


@pytest.mark.parametrize("batch", [7, 13, 5, 100])  # 20 items leave 6, 7, none; 40 leave 5, 1, none
def test_equals_a_plain_loop(batch, data, streams):
    seeds = [0, 2]
    ours = Way(spec_of(batch=batch), data, [streams[seed] for seed in seeds])
    for n in (20, 40):
        while ours.t < n:
            ours.step()
        ours.learner.prepare()
        x = ours.setting.images(ours.setting.items[:, 40:])
        for s, seed in enumerate(seeds):
            plain = plain_fit(ours, s, seed, n, 2, batch)
            assert_same_net(ours.learner.net, plain, s)
            with ours.learner.evaluation(), torch.no_grad():
                torch.testing.assert_close(ours.learner.scores(x, None)[s], plain.eval()(x[s]))
        assert ours.learner.net.training


def test_the_draws_of_a_test_do_not_depend_on_the_tests_before(data, streams):
    """A net is trained from scratch for each moment at which a test comes and something came."""
    found = {every: loop.train(spec_of(every), data, {0: streams[0]}, CPU)[0] for every in (10, 20)}
    often, seldom = (found[every]["events"] for every in (10, 20))
    assert (often["time"], seldom["time"]) == ([10, 20, 30, 40, 50, 53], [20, 40, 53])
    for key in ("correct", "unknown_auroc", "learner_bytes"):
        assert [often[key][often["time"].index(time)] for time in seldom["time"]] == seldom[key]
    assert found[10]["test"] == found[20]["test"]
    assert found[10]["online"] == {"correct": None, "loss": None}


def test_it_holds_all_that_came(data, streams):
    (result,) = loop.train(spec_of(), data, {0: streams[0]}, CPU)
    labels, floats = data.train_y[streams[0].indices], 2 * (11 + 6)  # running statistics
    parameters = 192 * 11 + 11 + 11 * 6 + 6 + 6 * 4 + 4 + floats
    assert result["memory"] == {"items": 53, "bytes": 53 * 192, "per_class": np.bincount(labels, minlength=4).tolist()}
    for time, held in zip(result["events"]["time"], result["events"]["learner_bytes"], strict=True):
        assert held == {"training": 8 * (parameters + floats) + 192 * time, "testing": 8 * (parameters + floats)}


def test_one_item_is_too_few_for_batch_norm_alone(data, streams):
    with pytest.raises(ScenarioError, match=r"^net\.batch_norm: nothing can be learnt from one item"):
        loop.train(spec_of(every=1), data, streams, CPU)
    (result,) = loop.train(spec_of(every=1, net=NET | {"batch_norm": False}), data, {0: streams[0]}, CPU)
    assert result["events"]["time"] == list(range(1, 54))
