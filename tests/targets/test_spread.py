"""Few runs as dots, more as intervals that end where the metric can be no lower or higher."""

import numpy as np
import pandas as pd
import pytest

from clpapers.targets.spread import ends, few, whiskers


@pytest.mark.parametrize(("n", "shown_one_by_one"), [([1], True), ([4, 4], True), ([2, 5], False), ([], True)])
def test_five_runs_make_an_interval(n, shown_one_by_one):
    assert few(pd.DataFrame({"n": n})) == shown_one_by_one


@pytest.mark.parametrize(
    ("metric", "low", "high"),
    [
        ("final_accuracy", 0, 100),
        ("forgetting", -1, 1),
        ("lca10", 0, 1),
        ("roc", 0, 1),
        ("stream_loss", 0, np.inf),
        ("training_seconds", 0, np.inf),
    ],
)
def test_limits_end_where_the_metric_does(metric, low, high):
    found = ends(metric, [0.5, 0.5, 0.5], [0.1, 1000.0, np.nan])
    np.testing.assert_allclose(found[0], [0.4, low, 0.5])
    np.testing.assert_allclose(found[1], [0.6, min(high, 1000.5), 0.5])


def test_whiskers_are_lengths_and_none_is_negative():
    lengths = whiskers("final_accuracy", np.array([99.0, 100.0 + 1e-12]), np.array([3.0, 3.0]))
    assert lengths.shape == (2, 2)
    np.testing.assert_allclose(lengths, [[3, 3], [1, 0]], atol=1e-9)
    assert (lengths >= 0).all()
    assert whiskers("final_accuracy", 1.0, 3.0).shape == (2, 1)
