"""Loss curves by hand, and how alike several are, against scipy and a jackknife that leaves out run by run."""

# ruff: noqa: F401, names that by_hand.yaml uses
from itertools import combinations

import by_hand
import numpy as np
import pytest
from scipy.stats import pearsonr

from clpapers.metrics.stream_losses import curve_correlation, measure, stretches

FACTORS = {"dataset": "cifar100", "learner": "er", "order": {"name": "split", "tasks": 10}}


OUT = {"out_of_memory": True}


def result(*curves):
    """A result of a run a curve; None has none."""
    runs = [curve if curve is OUT else {"online": {"loss": curve}} for curve in curves]
    return {"seeds": [{"seed": seed, **run} for seed, run in enumerate(runs)]}


def measured(*curves, metrics=("stream_loss", "loss_correlation"), **options):
    return measure({"metrics": list(metrics), **options}, [(FACTORS, "abc", result(*curves))])


def alike(*files):
    """How alike curves are, of files with a cell's name and the curves of its seeds."""
    return measure({"metrics": ["loss_correlation"]}, [(FACTORS, cell, result(*curves)) for cell, *curves in files])


test_by_hand = by_hand.tests(globals())


@pytest.mark.parametrize("n", [3, 4, 7])
def test_values_are_the_jackknifes_of_the_mean_over_pairs(n):
    curves = np.random.default_rng(n).normal(size=(n, 20)) + np.sin(np.arange(20))

    def mean_over_pairs(those):
        return np.mean([pearsonr(one, other).statistic for one, other in combinations(those, 2)])

    without = np.array([mean_over_pairs(np.delete(curves, i, axis=0)) for i in range(n)])
    whole = mean_over_pairs(curves)
    np.testing.assert_allclose(curve_correlation(curves), n * whole - (n - 1) * without)
    np.testing.assert_allclose(curve_correlation(curves).mean(), whole)
