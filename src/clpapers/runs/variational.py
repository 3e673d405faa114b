"""Mean-field variational inference over weights: the common part of VCL, its coresets and VGR."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.learner import Learner, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.nets.stacked import Stack

ITEMS_AT_ONCE = 4096  # items that pass the mean net together


class Gaussian(NamedTuple):
    """Independent normals over all P parameters of S nets: means and log-variances [S, P]."""

    mean: torch.Tensor
    log_variance: torch.Tensor


class Posterior:
    """Independent normals over all parameters of a stack of MLPs (`nets/mlp.py`), trained by their ELBO.

    A net is a row of P numbers, layer by layer, so that a prior, a sample or a copy is one tensor.

    Parameters
    ----------
    net: a stack of S nets with the initial means; it is not kept.
    seeds: S.
    variance: the initial variance of every parameter.
    """

    def __init__(self, net: Stack, seeds: int, variance: float):
        parameters = [p.detach() for p in net.parameters()]
        self.sizes = [p.numel() // seeds for p in parameters]  # weight, bias, weight, bias, …
        self.mean = torch.cat([p.reshape(seeds, -1) for p in parameters], dim=1).requires_grad_()
        self.log_variance = torch.full_like(self.mean, math.log(variance)).requires_grad_()

    @property
    def now(self) -> Gaussian:
        """A copy of the present means and log-variances."""
        return Gaussian(self.mean.detach().clone(), self.log_variance.detach().clone())

    def copy(self) -> Posterior:
        """A copy to train separately."""
        other = object.__new__(Posterior)
        other.sizes = self.sizes
        other.mean, other.log_variance = (each.requires_grad_() for each in self.now)
        return other

    def draw(self, noise: torch.Tensor) -> torch.Tensor:
        """Weights of K nets a seed, [S, K, P], from standard normal noise of that shape."""
        return torch.addcmul(self.mean[:, None], noise, (self.log_variance / 2).exp()[:, None])

    def logits(self, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Logits [S, K, B, C] of images [S, B, …] by nets of these weights [S, K, P].

        Activations are [S·K, units, B], so that a layer of all seeds and samples is one batched matrix product without
        a transposition. The first layer has samples among its units, so that their common input is stored once.
        """
        parts, hidden = weights.split(self.sizes, dim=2), x.flatten(2).mT
        for i, (weight, bias) in enumerate(zip(parts[::2], parts[1::2])):
            if i:
                hidden = hidden.view(len(weights) * weights.shape[1], -1, x.shape[1]).relu()
            weight = weight.reshape(len(hidden), -1, hidden.shape[1])
            hidden = torch.baddbmm(bias.reshape(len(hidden), -1, 1), weight, hidden)
        return hidden.view(*weights.shape[:2], -1, x.shape[1]).mT

    @torch.no_grad()
    def mean_logits(self, x: torch.Tensor) -> torch.Tensor:
        """Logits [S, B, C] of images [S, B, …] by the nets whose weights are the means."""
        weights = self.mean[:, None]
        return torch.cat([self.logits(weights, part).squeeze(1) for part in x.split(ITEMS_AT_ONCE, dim=1)], dim=1)

    def parameters_of(self, mask: torch.Tensor) -> torch.Tensor:
        """The parameters that classes `mask` [S, C] have: all but the other outputs' own, bool [S, P]."""
        weight, bias = self.sizes[-2:]
        trunk = mask.new_ones(len(mask), sum(self.sizes) - weight - bias)
        return torch.cat([trunk, mask.repeat_interleave(weight // bias, dim=1), mask], dim=1)


def standard(q: Posterior) -> Gaussian:
    """N(0, 1) for every parameter."""
    return Gaussian(torch.zeros_like(q.mean), torch.zeros_like(q.mean))


def kl(q: Posterior, p: Gaussian, mask: torch.Tensor | None = None) -> torch.Tensor:
    """KL(q‖p) of each seed in nats, [S]; of the parameters in `mask` [S, P] alone, where given.

    Where q equals p its gradient is exactly 0, so that Adam, which magnifies small gradients, does not move.
    """
    square = (q.mean - p.mean).square() * (-p.log_variance).exp()
    each = (p.log_variance - q.log_variance + (q.log_variance - p.log_variance).exp() + square - 1) / 2
    return (each if mask is None else each * mask).sum(dim=1)


def likelihood_loss(logits: torch.Tensor, y: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """Each seed's cross-entropy, the mean over K nets and B items: logits [S, K, B, C], labels [S, B] → [S].

    mask: bool [S, C], the classes that compete; or [S, C, C], those that do for an item of each class; None for all.
    """
    s, k, b, c = logits.shape
    if mask is not None:
        of_items = mask[:, None] if mask.dim() == 2 else mask.gather(1, y[..., None].expand(s, b, c))
        logits = logits.masked_fill(~of_items[:, None], -torch.inf)
    logits, y = logits.flatten(0, 1), y[:, None].expand(s, k, b).reshape(s * k, b)
    return cross_entropy(logits, y).view(s, k).mean(dim=1)


def entropy(p: torch.Tensor) -> torch.Tensor:
    """The entropy in nats of probabilities [..., C]: […]."""
    return torch.special.entr(p).sum(dim=-1)


def mutual_information(p: torch.Tensor) -> torch.Tensor:
    """The mutual information of answer and weights in nats, H[mean p] - mean H[p] (BALD): p [S, K, B, C] → [S, B]."""
    return entropy(p.mean(dim=1)) - entropy(p).mean(dim=1)


class Noise:
    """Standard normal numbers, from each seed's own generator for a purpose."""

    def __init__(self, setting: Setting, purpose: str):
        device = setting.items.device
        self.sources = [torch.Generator(device).manual_seed(seed) for seed in setting.init(purpose)]

    def __call__(self, like: torch.Tensor, count: int) -> torch.Tensor:
        """`count` rows for each of `like` [S, P]: [S, count, P]."""
        drawn = like.new_empty(len(like), count, like.shape[1])
        for row, source in zip(drawn, self.sources):
            row.normal_(generator=source)
        return drawn


class Randomness:
    """The random draws of one training: weights from `noise`, the order of items from `rngs`, one a seed."""

    def __init__(self, setting: Setting, purpose: str):
        self.noise = Noise(setting, f"{purpose} weights")
        self.rngs = [generator(seed, f"{purpose} items") for seed in setting.seeds]

    def batches(
        self, x: torch.Tensor, y: torch.Tensor, batch: int | str, epochs: int
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Batches of images [S, n, …] and labels [S, n], epoch by epoch; `full` means one batch of all items.

        Each epoch shuffles items afresh; its last batch may be smaller.
        """
        n, rows = x.shape[1], torch.arange(len(x), device=x.device)[:, None]
        for _ in range(epochs):
            if isinstance(batch, str) or batch >= n:
                yield x, y
                continue
            order = torch.from_numpy(np.stack([rng.permutation(n) for rng in self.rngs])).to(x.device)
            for chosen in order.split(batch, dim=1):
                yield x[rows, chosen], y.gather(1, chosen)


class Variational(Learner):
    """A learner with a posterior. It learns a whole task in a step (`budget.batch: task`), by the budget's optimiser.

    Answers are mean probabilities of `prediction_samples` nets, drawn once a test: after the same step, the same nets.

    Parameters
    ----------
    epochs, batch: of a task's training; `batch` may be `full`, all items.
    initial_variance: of every parameter.
    samples: nets drawn for a training step, each for the whole batch. prediction_samples: for a test.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        epochs: int,
        batch: int | str,
        initial_variance: float,
        samples: int,
        prediction_samples: int,
    ):
        super().__init__(setting)
        self.epochs, self.batch, self.samples, self.prediction_samples = epochs, batch, samples, prediction_samples
        self.posterior = Posterior(setting.net(), len(setting.seeds), initial_variance)
        self.randomness = Randomness(setting, "variational")
        self.steps = 0  # steps learnt
        self.drawn: torch.Tensor | None = None  # during a test, [S, K, P]

    def fit_mean(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor | None, batch: int | str) -> None:
        """Train the means alone, by maximum likelihood; `mask` as for `likelihood_loss`."""
        q = self.posterior
        optimizer = self.optimize([q.mean])
        for x_, y_ in self.randomness.batches(x, y, batch, self.epochs):
            optimizer.descend(likelihood_loss(q.logits(q.mean[:, None], x_), y_, mask))
        optimizer.zero_grad()  # the next task does not need the last gradient

    def fit(
        self,
        q: Posterior,
        prior: Gaussian,
        x: torch.Tensor,
        y: torch.Tensor,
        mask: torch.Tensor | None,
        randomness: Randomness,
        epochs: int,
        prior_weight: float = 1.0,
    ) -> None:
        """Train q on n items from a fresh state of the optimiser: cross-entropy + prior_weight · KL(q‖prior)/n.

        Neither term includes outputs that do not compete (`mask` [S, C]).
        """
        optimizer, counted = self.optimize([q.mean, q.log_variance]), None if mask is None else q.parameters_of(mask)
        for x_, y_ in randomness.batches(x, y, self.batch, epochs):
            weights = q.draw(randomness.noise(q.mean, self.samples))
            penalty = prior_weight / x.shape[1] * kl(q, prior, counted)
            optimizer.descend(likelihood_loss(q.logits(weights, x_), y_, mask) + penalty)
        optimizer.zero_grad()

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        self.drawn = self.nets_of(self.answering())
        yield
        self.drawn = None

    def answering(self) -> Posterior:
        """The posterior whose nets answer a test."""
        return self.posterior

    @torch.no_grad()
    def nets_of(self, q: Posterior) -> torch.Tensor:
        """Weights of nets drawn from q to answer a test, [S, K, P]."""
        return q.draw(Noise(self.setting, f"predictions {self.steps}")(q.mean, self.prediction_samples))

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        assert self.drawn is not None  # during a test
        return self.probabilities(self.drawn, x).mean(dim=1)

    def confidence(self, scores: torch.Tensor) -> torch.Tensor:
        return scores.amax(dim=2)

    def probabilities(self, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Probabilities [S, K, B, C] by nets of these weights [S, K, P]; head by head where training is masked."""
        logits = self.posterior.logits(weights, x)
        if self.setting.masks is None:
            return logits.softmax(dim=3)
        heads = self.setting.task_classes[:, :, None, None].unbind(dim=1)  # bool [S, 1, 1, C] each
        total = sum(logits.masked_fill(~head, -torch.inf).softmax(dim=3) for head in heads)
        assert isinstance(total, torch.Tensor)
        return total

    @torch.no_grad()
    def uncertainty(self, x: torch.Tensor) -> torch.Tensor:
        """The mutual information of answer and weights in nats, [S, B], all outputs competing; during a test."""
        assert self.drawn is not None
        return mutual_information(self.posterior.logits(self.drawn, x).softmax(dim=3))

    def uncounted(self) -> Sequence[object]:
        return [self.drawn]

    def needed_to_answer(self) -> Sequence[torch.Tensor]:
        return [self.posterior.mean, self.posterior.log_variance]
