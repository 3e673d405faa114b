"""Appendix E: the entropies by other means, and the paper's number."""

import math

import numpy as np
import pytest
from scipy import stats

from clpapers.streams import entropy


def entropies_by_scipy(mu, sigma):
    normal = stats.truncnorm((0 - mu) / sigma, (1 - mu) / sigma, mu, sigma)
    mean, variance = normal.stats()
    bracket = mean * (1 - mean) / variance - 1
    edges = np.linspace(0, 1, 1001)
    return [
        stats.entropy(np.diff(distribution.cdf(edges)))
        for distribution in (normal, stats.beta(mean * bracket, (1 - mean) * bracket))
    ]


@pytest.mark.parametrize("sigma", [0.5, 0.2, 0.01, 1e-3, 2e-4])
@pytest.mark.parametrize("mu", [0.0, 0.0103, 0.4, 0.5, 0.9999, 1.0])
def test_entropies_are_scipys(mu, sigma):
    ours = np.ravel(entropy.entropies(np.array([mu]), np.array([sigma])))
    np.testing.assert_allclose(ours, entropies_by_scipy(mu, sigma), rtol=1e-6)


def test_entropies_mirror():
    mu, sigma = np.random.default_rng(0).random((2, 200)) * [[1], [0.5]]
    np.testing.assert_allclose(entropy.entropies(mu, sigma), entropy.entropies(1 - mu, sigma), rtol=1e-6)


def test_wide_distributions_approach_the_log_of_the_bins():
    flat = np.ravel(entropy.entropies(np.array([0.5]), np.array([50.0])))  # out of appendix E's range
    np.testing.assert_allclose(flat, math.log(1000), atol=1e-6)


@pytest.mark.parametrize("sigma", [0.0, 1e-300, 1e-9])
@pytest.mark.parametrize("mu", [0.0005, 0.3, 0.0, 1.0, 0.5555])
def test_tiny_standard_deviations_stay_finite(mu, sigma):
    normal, beta = entropy.entropies(np.array([mu]), np.array([sigma]))
    assert np.isfinite([normal, beta]).all()
    if mu in (0.0005, 0.5555):  # the middle of a bin
        assert normal == beta == 0


def test_ratios_depend_neither_on_their_number_nor_on_what_is_evaluated_together():
    whole = entropy.entropy_captured(520, 4)
    np.testing.assert_array_equal(entropy.entropy_captured(20, 4), whole[:20])
    mu, sigma = np.random.default_rng(0).random((2, 520)) / 2
    apart = np.concatenate([entropy.entropies(mu[k : k + 7], sigma[k : k + 7]) for k in range(490, 520, 7)], axis=1)
    np.testing.assert_array_equal(np.array(entropy.entropies(mu, sigma))[:, 490:], apart)
    assert (entropy.entropy_captured(520, 5) != whole).any()


def test_nothing_to_capture_counts_as_captured():
    """Seed 376's number 21 has a deviation of 8e-6, a hundredth of a bin."""
    assert entropy.entropy_captured(22, 376)[21] == 1


def test_the_beta_captures_what_the_paper_says():
    ratios = entropy.entropy_captured(1000, 0)
    assert np.isfinite(ratios).all()
    assert abs(ratios.mean() - 0.9984) < 0.0005
