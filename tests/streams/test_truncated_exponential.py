"""The truncated exponential against exact arithmetic, its own equations and its samples."""

import math
from decimal import MAX_EMAX, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from clpapers.streams.truncated_exponential import quantile, rate, sample

RATES = (-2e6, -1e3, -41.57, -1.0, -0.21, -0.19, -1e-3, -1e-9, -1e-200, 0.0, 1e-12, 0.1, 3.0, 69.28, 800.0, 2e6)


def exact(function, *arguments):
    """`function` of exact decimals, at so many digits that no cancellation reaches the first 16."""
    with localcontext(prec=80, Emax=MAX_EMAX):
        return float(function(*map(Decimal, arguments)))


def exact_mean(rate, gamma):  # eq. 9; its series' first terms where 80 digits are not enough
    if abs(rate) < Decimal("1e-20"):
        return gamma / 2 + rate * gamma**2 / 12
    return gamma / (1 - (-rate * gamma).exp()) - 1 / rate


@pytest.mark.parametrize(("tasks", "expected"), [(12, -41.57), (5, -17.29), (10, -34.64), (20, -69.28), (5 / 4, -0.92)])
def test_rates_of_the_papers_data_sets(tasks, expected):
    """The last is CIFAR-10's, times four."""
    assert rate(math.sqrt(1 / 12) / tasks) == pytest.approx(expected, abs=0.005)


@given(st.floats(1e-12, 1, exclude_max=True), st.floats(1e-3, 1e3))
def test_rate_inverts_equation_9(share, gamma):
    mu = share * gamma
    assume(0 < mu < gamma)
    assert exact(exact_mean, rate(mu, gamma), gamma) == pytest.approx(mu, rel=1e-13)


@given(st.floats(0.25, 0.5, exclude_max=True))
def test_rate_is_antisymmetric(mu):
    assert rate(0.5 - mu) == -rate(mu)  # 0.5 − μ is exact here


def test_rate_at_the_ends():
    assert rate(0.25) == 0
    assert rate(1e-300) == pytest.approx(-1e300)
    assert rate(0.5 - 2**-52) == pytest.approx(2.0**52)


@given(st.floats(0.19, 0.31))
def test_rate_is_continuous_where_the_series_takes_over(mu):
    step = 1e-9
    slope = (rate(mu + step) - rate(mu - step)) / (2 * step)
    assert 48 * (1 - 1e-5) < slope < 70  # dλ/dμ = 12/γ² at the middle, and more further out


@pytest.mark.parametrize("lam", [-2e6, -40.0, -0.3, -1e-7, 1e-7, 0.3, 40.0, 2e6])
@pytest.mark.parametrize("u", [2**-20, 0.125, 0.5, 0.875, 1 - 2**-20])
def test_quantile_is_equation_11(lam, u):
    def equation(lam, u):
        return (((lam / 2).exp() - 1) * u + 1).ln() / lam

    expected = exact(equation, lam, u) if lam < 1e3 else 0.5 - exact(equation, -lam, 1 - u)
    assert quantile(u, lam) == pytest.approx(expected, rel=1e-9)


@given(st.sampled_from(RATES), st.floats(0, 1), st.floats(0, 1))
def test_quantile_ascends_within_the_support(lam, a, b):
    low, high = quantile([min(a, b), max(a, b)], lam)
    assert 0 <= low <= high <= 0.5


def falling(lam):
    """scipy's E(−|λ|); it has falling densities only."""
    scale = 1 / abs(lam) if lam else 1e12
    return stats.truncexpon(0.5 / scale, scale=scale)


@pytest.mark.parametrize("lam", [-2e6, -17.29, -0.92, 0.0])
def test_quantiles_are_scipys(lam):
    u = np.linspace(0, 1, 7)
    np.testing.assert_allclose(quantile(u, lam), falling(lam).ppf(u), rtol=1e-6)


@pytest.mark.parametrize("lam", [-1e6, -17.29, -1e-9, 0.0, 1e-3, 20.0, 1e4])
def test_samples_have_the_distribution(lam):
    x = sample(lam, 0.5, 20_000, np.random.default_rng(1))
    assert stats.kstest(0.5 - x if lam > 0 else x, falling(lam).cdf).pvalue > 1e-3
