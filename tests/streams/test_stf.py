"""Algorithms 1 and 2 and the two extremes of section 4.4."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clpapers.streams import stf

CIFAR10 = math.sqrt(1 / 12) / 5
SIGMAS = [0.0, 5e-324, 1e-160, 1e-9, 0.1, 0.3, 0.49, 0.5 - 1e-9, 0.5 - 2**-54, 0.5]


def rng(seed=0):
    return np.random.default_rng(seed)


def permuted(labels, sigma, seed=0):
    """The labels in stream order, and the times, where every class has the standard deviation `sigma`."""
    draws = rng(seed)
    parameters = stf.distributions(np.full(labels.max() + 1, sigma), draws)
    times = stf.timestamps(labels, parameters, draws)
    order = stf.permute(times, draws)
    np.testing.assert_array_equal(np.sort(order), np.arange(labels.size))
    return labels[order], times


@pytest.mark.parametrize("factor", [0.5, 1, 2, 4])
@pytest.mark.parametrize("tasks", [12, 5, 10, 20])
def test_standard_deviations_average_mu_sigma(tasks, factor):
    mu_sigma = factor * math.sqrt(1 / 12) / tasks
    sigma = stf.class_distributions(50_000, mu_sigma, rng(tasks))[:, 1]
    assert abs(sigma.mean() - mu_sigma) < 3.5 * sigma.std() / math.sqrt(sigma.size)


def test_means_are_uniform_on_the_shrunk_support():
    mu, sigma, _, _ = stf.class_distributions(20_000, 0.2, rng()).T
    share = (mu - 0.5) / np.sqrt(0.25 - sigma**2)  # eq. 7: uniform on [−1, 1] whatever σ
    assert stats.kstest(share, stats.uniform(-1, 2).cdf).pvalue > 1e-3
    assert abs(stats.pearsonr(share, sigma).statistic) < 4 / math.sqrt(share.size)


@given(st.integers(0, 10**6), st.floats(1e-3, 0.499))
def test_betas_have_the_moments_drawn(seed, mu_sigma):
    mu, sigma, alpha, beta = stf.class_distributions(20, mu_sigma, rng(seed)).T
    assert (np.minimum(alpha, beta) > 0).all()
    mean, variance = stats.beta.stats(alpha, beta)
    np.testing.assert_allclose(mean, mu, rtol=1e-12)
    np.testing.assert_allclose(variance, sigma**2, rtol=1e-7, atol=1e-15)


@given(st.integers(0, 10**6), st.floats(0, 0.5))
def test_a_beta_of_the_moments_always_exists(seed, sigma):
    mu, _, alpha, beta = stf.distributions(np.full(50, sigma), rng(seed)).T
    assert (mu * (1 - mu) >= sigma**2 * (1 - 1e-12)).all()  # eq. 6, to the rounding of this very line
    assert ((mu >= 0) & (mu <= 1) & (alpha >= 0) & (beta >= 0)).all()


@given(st.floats(1e-300, 1), st.sampled_from([-1, 1]))
def test_what_machines_compute_otherwise_in_the_last_bit_is_drawn_alike(value, towards):
    kept = stf.rounded(np.array([value]))
    np.testing.assert_allclose(kept, value, rtol=2**-stf.BITS, atol=0)
    assert stf.rounded(kept) == kept
    other = np.nextafter(kept, towards * np.inf)
    assert stf.rounded(other) == kept


def test_equal_times_are_in_no_order_of_the_sort():
    """A sort that leaves equal times in another order gives another stream; ours is stable, so by index."""
    times = np.zeros(5000)
    expected = np.arange(5000)
    rng(3).shuffle(expected)
    np.testing.assert_array_equal(stf.permute(times, rng(3)), expected)


def test_larger_mu_sigma_spreads_every_class_of_a_seed():
    narrow, wide = (stf.class_distributions(30, mu_sigma, rng(4)) for mu_sigma in (CIFAR10, 2 * CIFAR10))
    assert (wide[:, 1] > narrow[:, 1]).all()


def test_timestamps_follow_each_class_distribution():
    parameters = stf.class_distributions(6, CIFAR10, rng(1))
    labels = rng(2).permutation(np.repeat(np.arange(6), 3000))
    times = stf.timestamps(labels, parameters, rng(3))
    for j, (_, _, alpha, beta) in enumerate(parameters):
        assert stats.kstest(times[labels == j], stats.beta(alpha, beta).cdf).pvalue > 1e-3


def test_arrangement_of_labels_only_moves_the_timestamps_and_classes_without_items_are_passed_over():
    labels = rng(5).integers(0, 4, 500) * 2
    parameters = stf.class_distributions(8, CIFAR10, rng(1))
    ascending = np.argsort(labels, kind="stable")
    np.testing.assert_array_equal(
        stf.timestamps(labels, parameters, rng(6))[ascending], stf.timestamps(labels[ascending], parameters, rng(6))
    )


@pytest.mark.parametrize("sigma", SIGMAS)
def test_any_standard_deviation_gives_a_stream(sigma):
    stream, times = permuted(np.repeat(np.arange(10), 100), sigma)
    assert np.bincount(stream).tolist() == [100] * 10
    assert (np.diff(times, prepend=0, append=1) >= 0).all()


@pytest.mark.parametrize("sigma", [s for s in SIGMAS if s <= 1e-9])
@pytest.mark.parametrize("arrange", [np.sort, rng(8).permutation])
def test_no_dispersion_is_one_class_a_task(sigma, arrange):
    stream, _ = permuted(arrange(np.repeat(np.arange(20), 50)), sigma)
    assert np.count_nonzero(np.diff(stream)) == 19


@pytest.mark.parametrize("sigma", [s for s in SIGMAS if s >= 0.5 - 1e-9])
def test_full_dispersion_is_iid(sigma):
    stream, _ = permuted(np.repeat(np.arange(5), 4000), sigma, seed=1)
    tenth = np.repeat(np.arange(10), 2000)
    assert stats.chi2_contingency(stats.contingency.crosstab(stream, tenth).count).pvalue > 1e-3
    follows = stats.contingency.crosstab(stream[:-1], stream[1:]).count  # each class after each other one
    assert stats.chi2_contingency(follows).pvalue > 1e-3


def test_ties_are_shuffled_and_nothing_else_is():
    """A million items are shuffled together; ties that are larger, or lie across that, are whole all the same."""
    sizes = [40, 1, 1, stf.TIES_AT_ONCE - 100, 3, 200, stf.TIES_AT_ONCE + 50, 300]
    values = np.repeat([0.0, 0.1, 0.2, 0.2001, 0.9, 0.91, 0.92, 1.0], sizes)
    times = values.copy()
    order = stf.permute(times, rng(1))
    np.testing.assert_array_equal(times, values)
    np.testing.assert_array_equal(values[order], values)
    for tie in np.split(order, np.cumsum(sizes)[:-1]):
        assert tie.size < 40 or abs(np.corrcoef(tie, np.arange(tie.size))[0, 1]) < 4 / math.sqrt(tie.size)


def test_every_order_of_a_tie_is_equally_likely():
    draws, count = rng(0), np.zeros((3, 3))
    for _ in range(3000):
        order = stf.permute(np.array([0.1, 0.5, 0.5, 0.5, 0.7]), draws)
        count[order[1:4] - 1, [0, 1, 2]] += 1
    assert (np.abs(count - 1000) < 4 * math.sqrt(3000 * 2 / 9)).all()


def test_at_the_largest_deviation_a_share_of_the_mean_comes_last():
    """Beta's limit at σ = 0.5 is a coin: 1 with probability μ, else 0."""
    times = stf.timestamps(np.zeros(4000, int), np.array([[0.9, 0.5, 0.0, 0.0]]), rng())
    np.testing.assert_array_equal(times, rng().random(4000) < 0.9)
