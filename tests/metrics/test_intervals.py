"""Intervals, paired comparisons and Welch differences against scipy.stats."""

import by_hand
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clpapers.metrics import intervals

VALUES = np.random.default_rng(0).normal(50, 3, (4, 20))
SPREADS = ["sd", "se", "half_width"]
test_by_hand = by_hand.tests(globals())


def test_mean_interval_is_students():
    mean, half = intervals.mean_interval(VALUES)
    for row, m, h in zip(VALUES, mean, half):
        expected = stats.ttest_1samp(row, 0).confidence_interval(0.95)
        np.testing.assert_allclose([m - h, m + h], [expected.low, expected.high])


def test_the_interval_covers_the_mean_as_often_as_it_says():
    samples = np.random.default_rng(1).normal(0, 1, (20_000, 4))
    mean, half = intervals.mean_interval(samples)
    assert np.mean(np.abs(mean) <= half) == pytest.approx(0.95, abs=0.006)


@pytest.mark.parametrize(("n1", "n2"), [(20, 3), (5, 20), (2, 2)])
def test_welch_is_scipys(n1, n2):
    a, b = VALUES[0, :n1], VALUES[1, :n2] + 2
    ours = intervals.welch(a.mean(), stats.sem(a), n1, b.mean(), stats.sem(b), n2)
    for confidence in (0.95, 0.9):
        theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval(confidence)
        np.testing.assert_allclose(ours.interval(confidence), [theirs.low, theirs.high])
    assert ours.effect == pytest.approx(a.mean() - b.mean())


def test_welch_on_arrays_is_welch_on_numbers():
    means, errors = np.array([10.5, 11.5, 12.5]), np.array([1.0, 0.5, 2.0])
    lows, highs = intervals.welch(means, errors, 20, 10, 1.0, 5).interval()
    for i in range(3):
        low, high = intervals.welch(means[i], errors[i], 20, 10, 1.0, 5).interval()
        assert (lows[i], highs[i]) == pytest.approx((low, high))


def test_paired_is_scipys_over_the_common_seeds():
    a, b = pd.Series(VALUES[0], range(20)), pd.Series(VALUES[1], range(5, 25))
    first, second = a.loc[5:19], b.loc[5:19]
    theirs = stats.ttest_rel(first, second)
    ours = intervals.paired(a, b)
    assert ours.n == 15
    assert ours.p == pytest.approx(theirs.pvalue)
    np.testing.assert_allclose(ours[1:3], theirs.confidence_interval(0.95))
    assert ours.effect == pytest.approx(theirs.statistic / np.sqrt(15))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_a_share_rejects_what_holms_p_does(p):
    np.testing.assert_array_equal(np.array(p) * intervals.holm_shares(p, 0.05) <= 0.05, intervals.holm(p) <= 0.05)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_and_keeps_the_order(p):
    adjusted = intervals.holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()
