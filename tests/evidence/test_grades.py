"""Grades, simulated: a wrong number is hardly ever the same, an equal one seldom differs; more runs say more."""

import functools
import itertools
import re

import numpy as np
import pytest

from clpapers.catalogue import metrics as catalogue
from clpapers.evidence.grades import ONE_MORE, OWN_SPREAD, WELCH, estimated, judge, nearest
from clpapers.evidence.verdict_names import DIFFERS, NEAR, OPEN, SAME
from clpapers.metrics.intervals import Estimate, welch

FIRST, SECOND = 2.0, 5.0
DRAWS, PRINTED = 20_000, 10
LARGEST = 0.055 + 2 * np.sqrt(0.055 / DRAWS)  # of wrong grades, with two errors of the simulation


@functools.cache
def drawn(n, seed):
    """The means of `n` standard normal values, and their errors [DRAWS]."""
    values = np.random.default_rng(seed).normal(size=(DRAWS, n))
    return values.mean(1), values.std(1, ddof=1) / np.sqrt(n) if n > 1 else np.nan


def simulated(rule, n, sd, difference, theirs=PRINTED, ratio=1.0):
    """Grades [DRAWS]: `n` runs around `difference`, and a printed mean of `theirs`, which spread 1/`ratio` as far."""
    (ours, se), (printed, printed_se) = drawn(n, 0), drawn(theirs, 1)
    told = printed_se * sd / ratio if rule != OWN_SPREAD else np.nan
    estimate, found = estimated(difference + ours * sd, se * sd, n, printed * sd / ratio, told, theirs)
    assert found == rule
    return judge(estimate, (FIRST, SECOND)).grade


COUNTS = [(rule, n, m) for rule in (WELCH, OWN_SPREAD) for n in (2, 3, 5, 20) for m in (5, 20)]
COUNTS += [(ONE_MORE, 1, 5), (ONE_MORE, 1, 20), (OWN_SPREAD, 3, 1)]


@pytest.mark.parametrize(("rule", "n", "theirs"), COUNTS)
@pytest.mark.parametrize("ratio", [0.5, 1, 2])
@pytest.mark.parametrize("sd", [0.1, 1, 10])
def test_each_wrong_grade_is_seldom(rule, n, theirs, ratio, sd):
    """No difference that `differs`, the first margin as `same`, the second as `near`: at any spread of either side."""
    for difference, grade in ((0, DIFFERS), (FIRST, SAME), (SECOND, NEAR)):
        assert np.mean(simulated(rule, n, sd, difference, theirs, ratio) == grade) <= LARGEST


@pytest.mark.parametrize("rule", [WELCH, OWN_SPREAD])
@pytest.mark.parametrize("sd", [1, 2, 4])
def test_more_runs_of_an_equal_number_say_more(rule, sd):
    """`same` grows, and so does what is at least `near`; `open` falls."""
    grades = [simulated(rule, n, sd, 0.0) for n in (3, 5, 10, 40)]
    same = [np.mean(each == SAME) for each in grades]
    near = [np.mean((each == SAME) | (each == NEAR)) for each in grades]
    unsure = [np.mean(each == OPEN) for each in grades]
    slack = 0.02
    for before, after in itertools.pairwise(range(4)):
        assert same[after] >= same[before] - slack
        assert near[after] >= near[before] - slack
        assert unsure[after] <= unsure[before] + slack
    assert same[-1] + near[-1] > same[0] + near[0]


def test_the_estimates_of_each_rule_by_hand():
    """Deviation 3 of nine runs is an error of 1, and of the paper's four 1.5; the other side at most twice as far."""
    found, rule = estimated(51.0, 1.0, 9, 50.0, np.nan, 4)
    assert (rule, found.effect, found.degrees) == (OWN_SPREAD, 1, 8)
    assert found.se == pytest.approx(3 * np.sqrt(1 / 9 + 4 / 4))
    assert estimated(51.0, 1.0, 9, 50.0, np.nan, 0)[0].se == pytest.approx(3 * np.sqrt(1 / 9 + 4))
    found, rule = estimated(51.0, np.nan, 1, 50.0, 1.5, 4)
    assert (rule, found.effect, found.degrees) == (ONE_MORE, 1, 3)
    assert found.se == pytest.approx(3 * np.sqrt(4 + 1 / 4))
    found, rule = estimated(51.0, 1.0, 9, 50.0, 1.0, 9)
    assert (rule, found.se) == (WELCH, pytest.approx(np.sqrt(2)))
    assert found.degrees == pytest.approx(1.25 * 8)  # and not 16, as by Welch
    assert estimated(51.0, 5.0, 9, 50.0, 0.1, 9)[0].degrees == pytest.approx(welch(51.0, 5.0, 9, 50.0, 0.1, 9).degrees)


def test_each_grade_by_hand():
    """Standard errors that give 90 % intervals of ±1 and ±4 and the wider 95 % ones, with very many runs."""
    narrow, wide = 1 / 1.6449, 4 / 1.6449
    differences = np.array([0.9, 1.5, 1.5, 0.5, 1.5, 9.0])
    errors = np.array([narrow, narrow / 10, narrow, wide, wide, wide])
    found = judge(Estimate(differences, errors, 1e9), (FIRST, SECOND))
    assert list(found.grade) == [SAME, SAME, DIFFERS, NEAR, OPEN, DIFFERS]
    np.testing.assert_allclose(found.distance, [1.9, 1.6, 2.5, 4.5, 5.5, 13], atol=1e-3)
    np.testing.assert_allclose(
        nearest(found.low, found.high)[:3], [0, 1.5 - 1.96 * errors[1], 1.5 - 1.96 * narrow], atol=1e-3
    )


def test_the_distance_is_that_of_two_one_sided_tests():
    """The 90 % interval lies within ±m just if both one-sided tests at 5 % exclude a difference of m."""
    from scipy import stats

    estimate = Estimate(1.0, 0.7, 4)
    m = float(judge(estimate, (FIRST, SECOND)).distance)
    assert stats.t.sf((m - 1.0) / 0.7, 4) == pytest.approx(0.05)
    assert stats.t.sf((m + 1.0) / 0.7, 4) < 0.05


def test_what_is_rounded_widens_both_ends():
    plain, wider = (judge(Estimate(1.0, 0.1, 9), (FIRST, SECOND), *by) for by in ((0, 0), (0.5, 0.2)))
    assert (wider.low - plain.low, wider.high - plain.high) == pytest.approx((-0.2, 0.5))
    assert wider.distance - plain.distance == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("metric", "printed", "margins"),
    [
        ("final_accuracy", 80.0, (2, 5)),
        ("final_accuracy", 10.0, (1, 2)),
        ("forgetting", -0.3, (0.02, 0.05)),
        ("omega_all", 0.9, (0.02, 0.05)),
        ("forgetting_events", 40.0, (2, 4)),
        ("violations_by_task", 1000.0, (50, 100)),
        ("total", 20.0, (1, 2)),
    ],
)
def test_margins_are_the_metrics_own(metric, printed, margins):
    assert catalogue.margins_of(metric, printed) == pytest.approx(margins)


def test_the_margins_of_all_metrics_are_those_that_are_told():
    told = re.findall(r"[\d.]*\d", catalogue.margins_told())
    assert [float(number) for number in told] == [2, 5, 10, 20, 0.02, 0.05, 5, 10]
    declared = {(metric.margins, metric.shares) for metric in catalogue.metrics().values()}
    assert declared <= {((2, 5), (0.1, 0.2)), ((0.02, 0.05), None), (None, (0.05, 0.1)), (None, None)}
