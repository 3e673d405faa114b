"""Grades, simulated: a wrong number is hardly ever called the same, and more runs say more."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from clpapers.catalogue import metrics as catalogue
from clpapers.evidence.comparison import ONE_MORE, OWN_SPREAD, WELCH
from clpapers.evidence.grades import MARGINS, judge, nearest
from clpapers.evidence.verdict_names import DIFFERS, NEAR, OPEN, SAME
from clpapers.metrics.intervals import Estimate, welch

FIRST, SECOND = 2.0, 5.0
DRAWS, PRINTED = 2000, 10


def simulated(rule, n, sd, difference, seed=0):
    """Grades [DRAWS]: `n` runs around `difference`, and a printed mean of ten runs that vary as much around zero."""
    rng = np.random.default_rng(seed)
    ours, theirs = rng.normal(difference, sd, (DRAWS, n)), rng.normal(0, sd, (DRAWS, PRINTED))
    printed, printed_se = theirs.mean(1), theirs.std(1, ddof=1) / np.sqrt(PRINTED)
    if rule == ONE_MORE:
        estimate = Estimate(ours[:, 0] - printed, printed_se * np.sqrt(PRINTED + 1), PRINTED - 1)
    else:
        mean, se = ours.mean(1), ours.std(1, ddof=1) / np.sqrt(n)
        both = welch(mean, se, n, printed, printed_se, PRINTED)
        estimate = both if rule == WELCH else Estimate(mean - printed, se * np.sqrt(1 + n / PRINTED), n - 1)
    return judge(estimate, (FIRST, SECOND)).grade


CASES = [(rule, n) for rule in (WELCH, OWN_SPREAD) for n in (2, 3, 5, 20)] + [(ONE_MORE, 1)]


@pytest.mark.parametrize(("rule", "n"), CASES)
@pytest.mark.parametrize("sd", [0.01, 0.3, 1, 2, 4, 10, 40])
def test_twice_the_margin_is_hardly_ever_the_same(rule, n, sd):
    for sign in (-1, 1):
        assert np.mean(simulated(rule, n, sd, sign * 2 * FIRST) == SAME) <= 0.05


@pytest.mark.parametrize("rule", [WELCH, OWN_SPREAD])
@pytest.mark.parametrize("sd", [1, 2, 4])
def test_more_runs_of_an_equal_number_say_more(rule, sd):
    """`same` grows, and so does what is at least `near`; `open` falls."""
    grades = [simulated(rule, n, sd, 0.0) for n in (3, 5, 10, 40)]
    same = [np.mean(each == SAME) for each in grades]
    near = [np.mean((each == SAME) | (each == NEAR)) for each in grades]
    unsure = [np.mean(each == OPEN) for each in grades]
    slack = 0.02  # of 2,000 draws
    for before, after in itertools.pairwise(range(4)):
        assert same[after] >= same[before] - slack
        assert near[after] >= near[before] - slack
        assert unsure[after] <= unsure[before] + slack


@pytest.mark.parametrize(("rule", "n"), [(WELCH, 3), (WELCH, 10), (OWN_SPREAD, 3), (OWN_SPREAD, 10), (ONE_MORE, 1)])
@pytest.mark.parametrize("sd", [0.1, 1, 4])
def test_an_equal_number_seldom_differs(rule, n, sd):
    """By the 95 % interval: in some 5 % of draws."""
    assert np.mean(simulated(rule, n, sd, 0.0) == DIFFERS) <= 0.07


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
        ("violations_by_task", 1000.0, (50, 100)),
        ("total", 20.0, (1, 2)),
    ],
)
def test_margins_are_the_metrics_own(metric, printed, margins):
    assert catalogue.margins_of(metric, printed) == pytest.approx(margins)


def test_the_glossary_says_the_margins_that_metrics_declare():
    assert MARGINS in Path(__file__).parents[2].joinpath("docs/glossary.md").read_text(encoding="utf-8")
    declared = {(metric.margins, metric.shares) for metric in catalogue.metrics().values()}
    assert declared <= {((2, 5), (0.1, 0.2)), ((0.02, 0.05), None), (None, (0.05, 0.1)), (None, None)}
