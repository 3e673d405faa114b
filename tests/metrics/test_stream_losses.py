"""Loss curves by hand, and how alike several are, against scipy and a jackknife that leaves out run by run."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import pearsonr

from clpapers.metrics.stream_losses import curve_correlation, measure, stretches

FACTORS = {"dataset": "cifar100", "learner": "er", "order": {"name": "split", "tasks": 10}}


def result(*curves):
    return {"seeds": [{"seed": seed, "online": {"loss": curve}} for seed, curve in enumerate(curves)]}


def measured(*curves, metrics=("stream_loss", "loss_correlation"), **options):
    return measure({"metrics": list(metrics), **options}, [(FACTORS, "abc", result(*curves))])


def test_a_curve_is_averaged_over_stretches():
    assert stretches([4, 2, 3, 1], 2).tolist() == [3, 2]
    assert stretches([4, 2, 3], 2).tolist() == [3, 3]
    assert stretches([4, 2, 3], 99).tolist() == stretches([4, 2, 3], None).tolist() == [4, 2, 3]
    assert stretches([], 2).size == 0


def test_a_curve_has_a_row_a_stretch():
    rows = measured([4, 2, 3, 1], points=2)
    assert rows.to_dict("records")[0] == {
        **{"dataset": "cifar100", "learner": "er", "order": "split", "cell": "abc", "seed": 0},
        **{"metric": "stream_loss", "time": 0.25, "value": 3},
    }
    assert list(zip(rows["time"], rows["value"])) == [(0.25, 3), (0.75, 2)]


def test_how_alike_three_curves_are_by_hand():
    """Pairs: 1, −1, −1, whose mean is −1/3; to the others: 0, 0, −1; with n = 3, 4 times that plus 1."""
    values = curve_correlation([[0, 1, 2], [0, 2, 4], [2, 1, 0]])
    np.testing.assert_allclose(values, [1, 1, -3])
    np.testing.assert_allclose(values.mean(), -1 / 3)


@pytest.mark.parametrize("n", [3, 4, 7])
def test_values_are_the_jackknifes_of_the_mean_over_pairs(n):
    curves = np.random.default_rng(n).normal(size=(n, 20)) + np.sin(np.arange(20))

    def mean_over_pairs(those):
        return np.mean([pearsonr(one, other).statistic for one, other in combinations(those, 2)])

    without = np.array([mean_over_pairs(np.delete(curves, i, axis=0)) for i in range(n)])
    whole = mean_over_pairs(curves)
    np.testing.assert_allclose(curve_correlation(curves), n * whole - (n - 1) * without)
    np.testing.assert_allclose(curve_correlation(curves).mean(), whole)


def test_two_curves_have_one_value_and_one_has_none():
    """Two values of one pair would look as if nothing varied."""
    assert curve_correlation([[0, 1, 2], [1, 2, 4]]) == pytest.approx([pearsonr([0, 1, 2], [1, 2, 4]).statistic])
    assert curve_correlation([[0, 1, 2]]).size == 0
    assert list(measured([0, 1, 2], [1, 2, 4], metrics=["loss_correlation"])["seed"]) == [0]


@pytest.mark.parametrize("broken", [[1, 1, 1], [1, np.inf, 2], [1, np.nan, 2]])
def test_a_curve_that_has_no_correlation_leaves_none(broken):
    assert np.isnan(curve_correlation([[0, 1, 2], [0, 2, 3], broken])).all()


def test_only_curves_of_one_cell_are_compared():
    inputs = [(FACTORS, "abc", result([0, 1, 2], [0, 1, 3])), (FACTORS, "def", result([2, 1, 0], [3, 1, 0]))]
    rows = measure({"metrics": ["loss_correlation"]}, inputs)
    assert (rows["value"] > 0.9).all()
    assert list(rows["cell"]) == ["abc", "def"]


def test_seeds_of_a_cell_may_come_from_several_files():
    inputs = [(FACTORS, "abc", result([0, 1, 2])), (FACTORS, "abc", {"seeds": [result([], [2, 1, 0])["seeds"][1]]})]
    assert measure({"metrics": ["loss_correlation"]}, inputs)["value"].tolist() == pytest.approx([-1])


def test_streams_of_unequal_numbers_of_steps_are_compared_over_equal_stretches():
    """Of two stretches, the means 2 and 4, and 1 and 2."""
    rows = measured([1, 3, 4, 4, 4], [1, 2], metrics=["loss_correlation"], points=99)
    assert rows["value"].tolist() == pytest.approx([1])


def test_a_run_without_losses_or_out_of_memory_has_no_curve():
    assert measured(None).empty
    inputs = [(FACTORS, "abc", {"seeds": [{"seed": 0, "out_of_memory": True}, *result(None, [0, 1, 2])["seeds"][1:]]})]
    rows = measure({"metrics": ["stream_loss", "loss_correlation"]}, inputs)
    assert list(rows["metric"]) == ["out_of_memory"] + ["stream_loss"] * 3
