"""Intervals, paired comparisons and Welch differences against scipy.stats."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clpapers.metrics import intervals

VALUES = np.random.default_rng(0).normal(50, 3, (4, 20))


def test_mean_interval_is_students():
    mean, half = intervals.mean_interval(VALUES)
    for row, m, h in zip(VALUES, mean, half):
        expected = stats.ttest_1samp(row, 0).confidence_interval(0.95)
        np.testing.assert_allclose([m - h, m + h], [expected.low, expected.high])


def test_one_value_has_no_interval():
    mean, half = intervals.mean_interval([[3.0], [4.0]])
    np.testing.assert_array_equal(mean, [3, 4])
    assert np.isnan(half).all()


def test_mean_interval_of_two_by_hand():
    mean, half = intervals.mean_interval([1.0, 3.0])
    assert (mean, half) == (2, pytest.approx(12.7062, abs=1e-4))  # s = √2, s/√2 = 1, t₁ = 12.7062


def test_the_interval_covers_the_mean_as_often_as_it_says():
    samples = np.random.default_rng(1).normal(0, 1, (20_000, 4))
    mean, half = intervals.mean_interval(samples)
    assert np.mean(np.abs(mean) <= half) == pytest.approx(0.95, abs=0.006)


def test_summarise_keeps_order_and_ignores_missing_values():
    data = pd.DataFrame({"learner": list("bbaab"), "value": [1.0, 3.0, 5.0, 7.0, np.nan]})
    summary = intervals.summarise(data, ["learner"])
    assert list(summary["learner"]) == ["b", "a"]
    assert list(summary["mean"]) == [2, 6]
    assert list(summary["n"]) == [2, 2]
    np.testing.assert_allclose(summary["sd"], np.sqrt(2))  # ddof 1
    np.testing.assert_allclose(summary["se"], 1)
    np.testing.assert_allclose(summary["half_width"], intervals.mean_interval([1.0, 3.0])[1])


def test_summarise_one_seed_has_no_spread():
    summary = intervals.summarise(pd.DataFrame({"learner": ["a"], "value": [1.0]}), ["learner"])
    assert summary[["sd", "se", "half_width"]].isna().all(axis=None)


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


def test_welch_without_spread():
    assert intervals.welch(2, 0, 5, 1, 0, 5).interval() == (1, 1)
    assert np.isnan(intervals.welch(2, np.nan, 1, 1, 0.5, 20).interval()).all()


def test_paired_is_scipys_over_the_common_seeds():
    a, b = pd.Series(VALUES[0], range(20)), pd.Series(VALUES[1], range(5, 25))
    first, second = a.loc[5:19], b.loc[5:19]
    theirs = stats.ttest_rel(first, second)
    ours = intervals.paired(a, b)
    assert ours.n == 15
    assert ours.p == pytest.approx(theirs.pvalue)
    np.testing.assert_allclose(ours[1:3], theirs.confidence_interval(0.95))
    assert ours.effect == pytest.approx(theirs.statistic / np.sqrt(15))


def test_paired_with_too_little_to_compare():
    one = intervals.paired(pd.Series([1.0, 2.0], [0, 1]), pd.Series([5.0], [1]))
    assert (one.difference, one.n) == (-3, 1)
    assert np.isnan([one.low, one.high, one.p, one.effect]).all()
    none = intervals.paired(pd.Series([1.0], [0]), pd.Series([1.0], [1]))
    assert none.n == 0
    assert np.isnan(none.difference)
    same = intervals.paired(pd.Series([1.0, 2.0]), pd.Series([1.0, 2.0]))
    assert (same.difference, same.low, same.high) == (0, 0, 0)
    assert np.isnan(same.p)


def test_shares_of_the_level_by_hand():
    """Of three at 5 %, 0.01 is within a third and 0.03 not within a half: from there on it stays a half."""
    np.testing.assert_array_equal(intervals.holm_shares([0.01, 0.04, 0.03, np.nan], 0.05), [3, 2, 2, 1])
    np.testing.assert_array_equal(intervals.holm_shares([0.04, 0.001, 0.02], 0.05), [1, 3, 2])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_a_share_rejects_what_holms_p_does(p):
    np.testing.assert_array_equal(np.array(p) * intervals.holm_shares(p, 0.05) <= 0.05, intervals.holm(p) <= 0.05)


def test_holm_by_hand():
    np.testing.assert_allclose(intervals.holm([0.01, 0.04, 0.03, np.nan]), [0.03, 0.06, 0.06, np.nan])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_and_keeps_the_order(p):
    adjusted = intervals.holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()
