"""The share of the truncated normal's entropy that the Beta captures: appendix E of `stf`."""

import numpy as np
from scipy.special import betainc, entr, ndtr

from clpapers.randomness import generator

BINS = 1000  # equal bins on [0, 1]; the Shannon entropies are those of their probabilities
CHUNK = 500  # simulations evaluated together; bounds the memory; results do not depend on it
SMALLEST = 1e-6  # of σ, smaller ones are raised to it: a thousandth of a bin, and the limit of betainc's accuracy
NOISE = 1e-12  # nats; a smaller entropy is rounding error


def entropy_captured(simulations: int, seed: int) -> np.ndarray:
    """H(Beta) / H(truncated normal) of each simulation, float64 [simulations].

    μ is uniform on [0, 1] and σ on [0, 0.5]. The paper's 99.84 % is the mean of 10⁵ such ratios. A
    truncated normal inside one bin (H < `NOISE`) has no entropy to capture; its ratio counts as 1. The first k ratios
    of a seed do not depend on `simulations`.
    """
    mu, sigma = generator(seed, "appendix e").random((simulations, 2)).T * [[1.0], [0.5]]
    normal, beta = entropies(mu, sigma)
    return np.divide(beta, normal, out=np.ones(simulations), where=normal > NOISE)


def entropies(mu: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shannon entropies over `BINS` bins, in nats, of normals cut to [0, 1] and of Betas of their moments.

    `mu` [n] in [0, 1] and `sigma` [n] in [0, 0.5] are the normals' own, before the cut. Both float64 [n].
    """
    starts = range(0, len(mu), CHUNK)
    chunks = [_entropies(mu[i : i + CHUNK, None], np.maximum(sigma[i : i + CHUNK, None], SMALLEST)) for i in starts]
    normal, beta = np.concatenate(chunks, axis=1)
    return normal, beta


def _entropies(mu: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    edges = np.arange(BINS + 1) / BINS
    low, high = (0 - mu) / sigma, (1 - mu) / sigma
    total = ndtr(high) - ndtr(low)
    normal = _bins(ndtr(-np.abs(edges - mu) / sigma), edges < mu) / total

    # Moments of the truncated normal, then eq. 5.
    phi_low, phi_high = (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) / total for z in (low, high))
    shift = phi_low - phi_high
    mean = mu + sigma * shift
    variance = sigma**2 * (1 + low * phi_low - high * phi_high - shift**2)
    bracket = mean * (1 - mean) / variance - 1
    alpha, beta = mean * bracket, (1 - mean) * bracket
    lower = edges < mean
    tail = betainc(np.where(lower, alpha, beta), np.where(lower, beta, alpha), np.where(lower, edges, edges[::-1]))
    return np.sum(entr(normal), axis=1), np.sum(entr(_bins(tail, lower)), axis=1)


def _bins(tail: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Probabilities of the bins, [n, BINS], from the smaller tail at each edge: the tail below the edge where `lower`.

    Differences of a distribution function near 1 would lose the small probabilities of the upper bins.
    """
    straddles = lower[:, :-1] != lower[:, 1:]
    return np.where(straddles, 1 - tail[:, :-1] - tail[:, 1:], np.abs(np.diff(tail)))
