"""A detector of new tasks: its jumps by hand, and its thresholds against detectors that are run."""

import by_hand
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clpapers.metrics.boundary_detection import jumps, measure, thresholds

TRACE, TASKS = [2, 1, 3, 12, 6, 3], [0, 3]
test_by_hand = by_hand.tests(globals())


def detected(values, threshold):
    """The starts that a detector with one threshold finds, value by value, knowing nothing of tasks."""
    found, before = [], []
    for t, value in enumerate(values):
        if before and value / (np.cumsum(before)[-1] / len(before)) > threshold:  # rounded as `jumps` rounds
            found.append(t)
            before = []
        before.append(value)
    return found


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=12), st.data(), st.floats(0.01, 50))
def test_a_detector_finds_just_the_starts_from_the_lower_threshold_up_to_below_the_upper(values, data, other):
    starts = sorted(data.draw(st.sets(st.integers(1, len(values) - 1))))
    ratios = jumps(values, starts)
    low, high = thresholds(ratios, starts)
    for threshold in (low, (low + high) / 2, high, high * 0.999, low * 0.999, other, *ratios[1:]):
        if np.isfinite(threshold):
            assert (detected(values, threshold) == starts) == (low <= threshold < high)


def test_rows_are_those_of_the_trace():
    run = {"seed": 3, "learner": {"trace": {"mutual_information": TRACE, "tasks": TASKS}}}
    rows = measure({}, [({"dataset": "mnist", "learner": "vgr"}, "abc", {"seeds": [run]})])
    assert set(zip(rows["dataset"], rows["learner"], rows["cell"], rows["seed"])) == {("mnist", "vgr", "abc", 3)}
    of = {metric: part.set_index("time")["value"] for metric, part in rows.groupby("metric")}
    assert of["mutual_information"].to_dict() == dict(enumerate(TRACE))
    pd.testing.assert_series_equal(of["jump"], pd.Series(jumps(TRACE, [3])), check_names=False, check_index=False)
    assert list(of["task_start"].index) == TASKS
    assert (of["threshold_from"].item(), of["threshold_below"].item()) == pytest.approx((2, 6))
