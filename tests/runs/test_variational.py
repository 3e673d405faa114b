"""Mean-field posteriors against torch.distributions, closed forms and ordinary modules."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence

from clpapers.runs import nets
from clpapers.runs.losses import backward
from clpapers.runs.nets.stacked import stack
from clpapers.runs.variational import Gaussian, Posterior, entropy, kl, likelihood_loss, mutual_information, standard

SHAPE, CLASSES = (1, 2, 3), 4


def posterior(seeds=(0, 1, 2), hidden=(5, 3), variance=0.01, classes=CLASSES):
    spec = {"name": "mlp", "hidden": list(hidden), "init": "truncated_normal"}
    net = stack(lambda: nets.build(spec, SHAPE, classes), seeds).double()
    return Posterior(net, len(seeds), variance)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def moved(q, seed=1):
    """The same posterior, away from where it began, and a prior elsewhere."""
    with torch.no_grad():
        q.mean += normal(*q.mean.shape, seed=seed) / 3
        q.log_variance += normal(*q.mean.shape, seed=seed + 1)
    return q, Gaussian(*(normal(*q.mean.shape, seed=seed + i) for i in (2, 3)))


def ordinary(q, weights):
    """The nets of one row of weights [P], as an ordinary module."""
    net = nets.build({"name": "mlp", "hidden": [5, 3]}, SHAPE, CLASSES).double()
    torch.nn.utils.vector_to_parameters(weights, net.parameters())
    return net


def test_a_posterior_begins_at_the_nets():
    q = posterior(variance=1e-6)
    x = normal(3, 7, *SHAPE)
    net = stack(
        lambda: nets.build({"name": "mlp", "hidden": [5, 3], "init": "truncated_normal"}, SHAPE, CLASSES), (0, 1, 2)
    ).double()
    torch.testing.assert_close(q.mean_logits(x), net(x).detach())
    torch.testing.assert_close(q.log_variance.exp(), torch.full_like(q.mean, 1e-6))
    assert q.mean.shape == (3, sum(p.numel() for p in net.parameters()) // 3)


def test_kl_is_that_of_torch():
    q, p = moved(posterior())
    expected = kl_divergence(
        Normal(q.mean, (q.log_variance / 2).exp()), Normal(p.mean, (p.log_variance / 2).exp())
    ).sum(dim=1)
    torch.testing.assert_close(kl(q, p), expected)
    torch.testing.assert_close(
        kl(q, standard(q)), kl_divergence(Normal(q.mean, (q.log_variance / 2).exp()), Normal(0, 1)).sum(dim=1)
    )


def test_kl_to_itself_is_zero_and_so_is_its_gradient():
    q, _ = moved(posterior())
    divergence = kl(q, q.now)
    assert (divergence == 0).all()
    backward(divergence)
    assert (q.mean.grad == 0).all()
    assert (q.log_variance.grad == 0).all()


@pytest.mark.parametrize("seeds", [(4,), (4, 5)], ids=len)
def test_each_net_of_each_seed_is_an_ordinary_one(seeds):
    """Logits, loss and gradients are those of the plain loop over seeds and samples."""
    q, p = moved(posterior(seeds))
    x, y = normal(len(seeds), 6, *SHAPE), torch.arange(6).expand(len(seeds), 6) % CLASSES
    noise = normal(len(seeds), 3, q.mean.shape[1], seed=9)
    logits = q.logits(q.draw(noise), x)
    loss = likelihood_loss(logits, y) + kl(q, p) / 50
    backward(loss)
    for s in range(len(seeds)):
        mean, log_variance = (v[s].detach().clone().requires_grad_() for v in (q.mean, q.log_variance))
        total = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(p.mean[s], (p.log_variance[s] / 2).exp()))
        total = total.sum() / 50
        for k in range(3):
            weights = mean + noise[s, k] * (log_variance / 2).exp()
            hidden, at = x[s].flatten(1), 0
            for n_in, n_out in ((6, 5), (5, 3), (3, CLASSES)):
                weight = weights[at : at + n_in * n_out].view(n_out, n_in)
                bias = weights[at + n_in * n_out : at + n_in * n_out + n_out]
                hidden, at = F.linear(hidden.relu() if at else hidden, weight, bias), at + n_in * n_out + n_out
            torch.testing.assert_close(hidden, logits[s, k])
            torch.testing.assert_close(ordinary(q, weights.detach())(x[s]), hidden)
            total = total + F.cross_entropy(hidden, y[s]) / 3
        torch.testing.assert_close(total, loss[s])
        total.backward()
        torch.testing.assert_close(mean.grad, q.mean.grad[s])
        torch.testing.assert_close(log_variance.grad, q.log_variance.grad[s])


@pytest.mark.parametrize("alone", [False, True])
def test_only_competing_classes_get_gradients(alone):
    """Classes 1 and 3 of seed 0, 0 and 1 of seed 1: the others' weights and biases have no part in either term."""
    mask = torch.tensor([[False, True, False, True], [True, True, False, False]])
    y = torch.tensor([[1, 3, 3], [0, 1, 1]])
    which = slice(0, 1) if alone else slice(0, 2)
    q, p = moved(posterior(seeds=(0,) if alone else (0, 1)))
    mask, y = mask[which], y[which]
    noise = normal(len(y), 2, q.mean.shape[1])
    logits = q.logits(q.draw(noise), normal(len(y), 3, *SHAPE))
    backward(likelihood_loss(logits, y, mask) + kl(q, p, q.parameters_of(mask)))
    for gradient in (q.mean.grad, q.log_variance.grad):
        weight, bias = gradient[:, -16:-4].view(-1, 4, 3), gradient[:, -4:]
        assert torch.equal(weight.abs().amin(dim=2) > 0, mask)
        assert torch.equal(weight.abs().amax(dim=2) > 0, mask)
        assert torch.equal(bias != 0, mask)
        assert (gradient[:, :-16] != 0).any(dim=1).all()
    for s, allowed in enumerate(mask):
        chosen = allowed.nonzero()[:, 0].tolist()
        expected = [
            F.cross_entropy(said[:, chosen], torch.tensor([chosen.index(c) for c in y[s].tolist()]))
            for said in logits[s]
        ]
        torch.testing.assert_close(likelihood_loss(logits, y, mask)[s], sum(expected) / 2)


def test_information_and_entropy_by_hand():
    """Two nets of two classes: certain of different answers, certain of the same, undecided both."""
    p = torch.tensor([[[1.0, 0], [0, 1], [0.5, 0.5]], [[0, 1], [0, 1], [0.5, 0.5]]], dtype=torch.float64)
    log2 = math.log(2)
    expected = torch.tensor([[log2, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(mutual_information(p[None]), expected)
    torch.testing.assert_close(entropy(p[0]), torch.tensor([0, 0, log2], dtype=torch.float64))
