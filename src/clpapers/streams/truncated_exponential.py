"""The truncated exponential E(λ, γ), density ∝ exp(λx) on [0, γ]: equations 2, 3 and 11 of `stf`.

All formulas use exp(−|λ|γ) ≤ 1, so that nothing overflows. E(λ) for λ > 0 is the mirror image γ − x of E(−λ). The
paper leaves λ = 0 out; here it is the limit, the uniform distribution.
"""

import math

import numpy as np
from numpy.typing import ArrayLike


def _lower_mean(a: float) -> float:
    """Mean of E(−a, 1), a ≥ 0, which falls from 1/2 to 0: 1/a − 1/(e^a − 1)."""
    if a < 0.1:  # the two terms cancel; the series' first omitted term is a⁹/47900160
        return 1 / 2 - a / 12 + a**3 / 720 - a**5 / 30240 + a**7 / 1209600
    return 1 / a + math.exp(-a) / math.expm1(-a)


def rate(mean: float, gamma: float = 0.5) -> float:
    """The rate λ at which E(λ, gamma) has this mean: eq. 3 solved, so that rate(γ − μ) = −rate(μ).

    Raises ValueError for a mean outside (0, gamma), which no rate has.
    """
    if not 0 < mean < gamma:
        raise ValueError(f"mean {mean} is not inside (0, {gamma}): no truncated exponential has it")
    if mean > gamma / 2:
        return -rate(gamma - mean, gamma)
    share = mean / gamma
    if share < 1 / 50:  # 1/(e^a − 1) is lost beside 1/a in double precision
        return -1 / mean
    from scipy.optimize import brentq  # here, since the Snakefile imports this package and scipy is slow to import

    # 1/(a + 2) ≤ _lower_mean(a) ≤ 1/a puts the root between 1/share − 2 and 1/share; one more for rounding.
    a = brentq(lambda a: _lower_mean(a) - share, max(0.0, 1 / share - 3), 1 / share + 1, xtol=1e-15)
    return -a / gamma


def quantile(u: ArrayLike, rate: float, gamma: float = 0.5) -> np.ndarray:
    """The value in [0, gamma] below which a share `u` in [0, 1] of E(rate, gamma) lies; eq. 11."""
    share = np.asarray(u, dtype=float)
    a = abs(rate) * gamma
    if a < 1e-16:  # uniform, to double precision
        return gamma * share
    with np.errstate(divide="ignore"):  # at the far end the logarithm of a rounded 0, cut off by the minimum
        distance = np.minimum(-np.log1p(math.expm1(-a) * (share if rate < 0 else 1 - share)) / abs(rate), gamma)
    return distance if rate < 0 else gamma - distance


def sample(rate: float, gamma: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """`size` independent draws from E(rate, gamma), one uniform number each; float64 [size]."""
    return quantile(rng.random(size), rate, gamma)
