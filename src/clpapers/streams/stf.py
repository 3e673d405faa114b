"""Simulated task-free streams: Algorithms 1 and 2 of `stf`."""

import numpy as np

from clpapers.streams import truncated_exponential

GAMMA = 0.5  # no distribution on [0, 1] has a larger standard deviation (Popoviciu)
TIES_AT_ONCE = 1 << 20  # items whose ties are broken together; bounds the memory
BITS = 32  # of a stored number: machines' logarithms differ in the last of 53


def class_distributions(classes: int, mu_sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 1: float64 [classes, 4], for each class μ, σ, α, β of its time distribution Beta(α, β).

    The σ come from the truncated exponential of mean `mu_sigma`; ValueError unless 0 < mu_sigma < 0.5.
    One uniform number is used for each σ, then one for each μ. So at one seed a larger `mu_sigma` makes every σ
    larger, and leaves each μ at the same place in its support.
    """
    rate = truncated_exponential.rate(mu_sigma, GAMMA)
    return distributions(truncated_exponential.sample(rate, GAMMA, classes, rng), rng)


def rounded(numbers: np.ndarray) -> np.ndarray:
    """Numbers rounded to `BITS` binary digits, so that a seed's stream has the same bytes on all machines.

    Two that differ in the 53rd digit stay apart with a probability of 2⁻²¹. Times that ascend still do.
    """
    mantissa, exponent = np.frexp(numbers)
    return np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS)


def distributions(sigma: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Lines 4 to 8 of Algorithm 1: [c, 4] μ, σ, α, β for given standard deviations σ [c] in [0, 0.5].

    With μ = 0.5 + r(2u − 1) on the shrunk support (eq. 7), μ(1 − μ) − σ² equals 4r²u(1 − u). Written so, the
    bracket of eq. 5 is never negative: eq. 6 holds for every draw, however near σ is to 0 or 0.5.
    The extremes themselves (section 4.4) are the limits: σ = 0 gives α = β = ∞ and σ = 0.5 gives α = β = 0.
    """
    sigma = np.asarray(sigma, dtype=float)
    u = rng.random(sigma.size)
    r = np.sqrt((0.5 - sigma) * (0.5 + sigma))
    mu = 0.5 + r * (2 * u - 1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        bracket = 4 * u * (1 - u) * (r / sigma) ** 2
    return np.column_stack([mu, sigma, mu * bracket, (1 - mu) * bracket])


def timestamps(labels: np.ndarray, parameters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Lines 1 to 4 of Algorithm 2: a time in [0, 1] for every item, float64 [n], in the items' own order.

    `labels` are integers [n] in 0 … c − 1, `parameters` the rows [c, 4] of `class_distributions`. Each class
    is drawn at once, and into a slice where the labels ascend.
    """
    items = None if np.all(labels[:-1] <= labels[1:]) else np.argsort(labels, kind="stable")  # class by class
    ends = np.cumsum(np.bincount(labels, minlength=len(parameters)))
    times = np.empty(labels.size)
    for (mu, _, alpha, beta), start, end in zip(parameters, [0, *ends[:-1]], ends):
        members = slice(start, end) if items is None else items[start:end]
        times[members] = _beta(mu, alpha, beta, end - start, rng)
    return times


def _beta(mu: float, alpha: float, beta: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """`size` draws from Beta(alpha, beta), of mean `mu`, or from its limit for parameters 0 or infinite."""
    if not np.isfinite(alpha + beta):
        return np.full(size, mu)
    if min(alpha, beta) == 0:
        return (rng.random(size) < mu).astype(float)
    return rng.beta(alpha, beta, size)


def permute(times: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Line 5 of Algorithm 2: the permutation int64 [n] that sorts `times`, which are sorted too, in place.

    Items of equal time come in an order drawn at random. Without that, a stream of σ near 0.5, where most
    times are exactly 0 or 1, would keep the data set's own order, by class, instead of being iid.
    """
    order = np.argsort(times, kind="stable")  # others leave equal times in an order that the processor decides
    times.sort()
    start = 0
    while start < times.size:
        last = times[min(start + TIES_AT_ONCE, times.size) - 1]
        end = np.searchsorted(times, last)  # a block stops before the times that equal its last, …
        if (
            end == start or start + TIES_AT_ONCE >= times.size
        ):  # … unless the whole block has one time, or the stream ends
            end = np.searchsorted(times, last, side="right")
        _shuffle_ties(order[start:end], times[start:end], rng)
        start = end
    return order


def _shuffle_ties(order: np.ndarray, times: np.ndarray, rng: np.random.Generator) -> None:
    """Shuffle `order` in place within each group of equal values in `times`, which ascend."""
    if times[0] == times[-1]:
        rng.shuffle(order)
        return
    same = times[1:] == times[:-1]
    if same.any():
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        order[tied] = order[tied[np.lexsort((rng.random(tied.size), times[tied]))]]
