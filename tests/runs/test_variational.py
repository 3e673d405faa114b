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


def test_the_elbos_gradient_is_that_of_the_closed_form():
    """A linear net with unit Gaussian noise on its outputs: E ½‖y - Xw‖² = ½‖y - Xm‖² + ½·Σσ²·diag(XᵀX).

    The estimate is a mean of 40 that are independent, so that it lies within five of its standard errors (a normal's
    share outside is 6e-7, and there are 28 numbers), which are 1 to 2 % of the gradient here.
    """
    q, p = moved(posterior(seeds=(0, 1), hidden=(), classes=2))
    x, y = normal(2, 8, *SHAPE), normal(2, 8, 2, seed=5)
    estimates = []
    for i in range(40):
        weights = q.draw(normal(2, 500, q.mean.shape[1], seed=100 + i))
        loss = (y[:, None] - q.logits(weights, x)).square().sum(dim=(2, 3)).mean(dim=1) / 2 + kl(q, p)
        estimates.append(torch.cat(torch.autograd.grad(loss.sum(), [q.mean, q.log_variance]), dim=1))
    estimates = torch.stack(estimates)
    mean, log_variance = q.mean.detach(), q.log_variance.detach()
    weight, bias = mean[:, :12].view(2, 2, 6), mean[:, 12:]
    residual = x.flatten(2) @ weight.mT + bias[:, None] - y  # [S, B, C]
    by_mean = torch.cat([(residual.mT @ x.flatten(2)).flatten(1), residual.sum(dim=1)], dim=1)
    squares = x.flatten(2).square().sum(dim=1)  # diag(XᵀX), [S, in]
    by_variance = torch.cat([squares, squares, torch.full((2, 2), 8.0)], dim=1) * log_variance.exp() / 2
    by_mean = by_mean + (mean - p.mean) / p.log_variance.exp()
    by_variance = by_variance + ((log_variance - p.log_variance).exp() - 1) / 2
    expected = torch.cat([by_mean, by_variance], dim=1)
    error = estimates.std(dim=0) / math.sqrt(len(estimates))
    assert ((estimates.mean(dim=0) - expected).abs() < 5 * error + 1e-9).all()
    assert (error.norm() / expected.norm()) < 0.02


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


def test_stacked_is_single():
    """Each seed's loss and gradients alone and in a stack of three, in float64."""
    rows = normal(3, 2, posterior().mean.shape[1])
    x, y = normal(3, 5, *SHAPE), torch.arange(15).view(3, 5) % CLASSES

    def gradients(seeds):
        q = posterior(seeds)
        loss = likelihood_loss(q.logits(q.draw(rows[list(seeds)]), x[list(seeds)]), y[list(seeds)])
        loss = loss + kl(q, standard(q)) / 7
        backward(loss)
        return loss.detach(), q.mean.grad, q.log_variance.grad

    together = gradients((0, 1, 2))
    for s in range(3):
        for mine, all_ in zip(gradients((s,)), together):
            torch.testing.assert_close(mine[0], all_[s], rtol=1e-12, atol=1e-14)


def test_information_and_entropy_by_hand():
    """Two nets of two classes: certain of different answers, certain of the same, undecided both."""
    p = torch.tensor([[[1.0, 0], [0, 1], [0.5, 0.5]], [[0, 1], [0, 1], [0.5, 0.5]]], dtype=torch.float64)
    log2 = math.log(2)
    expected = torch.tensor([[log2, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(mutual_information(p[None]), expected)
    torch.testing.assert_close(entropy(p[0]), torch.tensor([0, 0, log2], dtype=torch.float64))


def test_information_lies_between_0_and_log_c():
    q, _ = moved(posterior())
    x = normal(3, 50, *SHAPE)
    said = q.logits(q.draw(30 * normal(3, 40, q.mean.shape[1])), x).softmax(dim=3)
    information = mutual_information(said)
    assert information.shape == (3, 50)
    assert (information > 0).all()
    assert (information <= math.log(CLASSES)).all()
    sure = posterior(variance=1e-300)
    same = sure.logits(sure.draw(normal(3, 40, q.mean.shape[1])), x).softmax(dim=3)
    torch.testing.assert_close(mutual_information(same), torch.zeros(3, 50, dtype=torch.float64), rtol=0, atol=1e-12)
