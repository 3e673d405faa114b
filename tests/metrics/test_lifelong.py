"""Accuracies after each task, forgetting and learning curves, by hand."""

import by_hand
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from clpapers.metrics import learning, lifelong

A = np.array([[0.9, 0.1, 0.2], [0.6, 0.8, 0.5], [0.7, 0.4, 1.0]])
# Two tasks of two classes and ten items; the second task has two steps only.
RUN = {
    "seed": 5,
    "steps": 14,
    "tasks": {
        "classes": [[4, 7], [0, 2]],
        "total": [[8, 2], [5, 5]],
        "correct": [[[8, 1], [1, 0]], [[2, 2], [5, 4]]],
        "open": [[[6, 1], [0, 0]], [[0, 1], [4, 4]]],
        "shots": [[[b, 0] for b in range(9)] + [[8, 0], [8, 1]], [[1, 0], [2, 2]]],
        "mutual_information": [[0.2, 0.5], [0.3, 0.2]],
    },
    "test": {"total": [5, 0, 5, 0, 8, 0, 0, 2]},
    "learner": {"violations": [0, 1]},
    "diverged": None,
}


def measured(metric, run=RUN, **target):
    inputs = [({"dataset": "awa", "learner": "van"}, "abc", {"seeds": [run]})]
    return learning.measure({"metrics": [metric], **target}, inputs)


def values(metric, *run, **target):
    rows = measured(metric, *run, **target)
    return rows.loc[rows["metric"] == metric, "value"].tolist()


def points(metric, *run):
    """The curve of a metric: [time, value]."""
    return measured(metric, *run).dropna(subset="time")[["time", "value"]].to_numpy().tolist()


def tenths(shares):
    """Tasks of one class and ten items, of which these shares are right."""
    right = [[[round(10 * share)] for share in row] for row in shares]
    tasks = len(right[0])
    return {
        **{"classes": [[k] for k in range(tasks)], "total": [[10]] * tasks},
        **{"correct": right, "open": right, "shots": [[[0]]] * tasks},
    }


def of_tasks(**tasks):
    return RUN | {"tasks": RUN["tasks"] | tasks}


CYCLES = np.array([[0.9, 0.1], [0.4, 0.8], [1.0, 0.5], [0.7, 0.6]])  # two tasks, visited twice
INFORMATION = np.array([[0.1, 0.5, 0.4], [0.2, 0.3, 0.2], [0.45, 0.1, 0]])  # above the diagonal of tasks not yet seen
TOLD = of_tasks(mutual_information=INFORMATION.tolist())
test_by_hand = by_hand.tests(globals())


@given(st.floats(0, 1))
def test_the_area_under_a_flat_curve_is_its_height(height):
    z = np.full(11, height)
    assert lifelong.learning_curve_trapezoids(z) == pytest.approx(z)


@pytest.mark.parametrize(
    ("metric", "value", "chance"),
    [
        ("average_accuracy", (40 + 90) / 2, 50),
        ("single_head_accuracy", (10 + 80) / 2, 12.5),
        ("seen_unseen_auc", 1, None),
        ("seen_unseen_auc_early", 1, None),
        ("seen_unseen_auc_by_model", 1, None),
        ("forgetting", 0.5, None),
        ("worst_forgetting", 0.5, None),
        ("zero_shot", 5, 50),
        ("lca10", ((5.3 + 8.6) / 2 - (0.05 + 0.9) / 2) / 10, 0.5),  # a trapezoid's ends count half
    ],
)
@pytest.mark.parametrize("run", [RUN, {key: RUN[key] for key in RUN if key != "diverged"}])
def test_scalars_by_hand(metric, value, chance, run):
    rows = measured(metric, run).set_index("metric")["value"].to_dict()
    assert rows.pop(metric) == pytest.approx(value)
    assert rows == ({} if chance is None else {f"chance_{metric}": pytest.approx(chance)})


@given(arrays(float, st.integers(2, 6).map(lambda n: (n, n)), elements=st.integers(0, 9)))
def test_the_area_under_the_curve_is_the_rank_statistic(information):
    seen = np.tril(np.ones(information.shape, bool))
    statistic = stats.mannwhitneyu(information[~seen], information[seen]).statistic
    _, detected = lifelong.roc(information)
    assert detected[:-1].mean() == pytest.approx(statistic / seen.sum() / (~seen).sum())
    assert (np.diff(detected) >= 0).all()
    np.testing.assert_array_equal(lifelong.roc(np.exp(information))[1], detected)  # the order decides, not the unit


@pytest.mark.parametrize(
    "metric", ["seen_unseen_auc", "seen_unseen_auc_early", "seen_unseen_auc_by_model", "mutual_information_by_task"]
)
def test_what_a_learner_cannot_tell_or_told_no_number_for_is_no_number(metric):
    silent = {key: value for key, value in RUN["tasks"].items() if key != "mutual_information"}
    assert measured(metric, RUN | {"tasks": silent})["value"].isna().all()
    some = of_tasks(mutual_information=[[0.2, None], [0.3, 0.2]])
    assert measured(metric, some)["value"].isna().any()


Z = [0.05, 0.25, *(0.45 + b / 20 for b in range(2, 9)), 0.85, 0.9]  # the mean of both tasks' curves


@pytest.mark.parametrize(
    ("metric", "times", "values"),
    [
        ("average_accuracy_by_task", [1, 2], [90, 65]),
        ("single_head_accuracy_by_task", [1, 2], [70, 45]),
        ("forgetting_by_task", [2], [0.5]),
        ("roc", [0, 1 / 3, 2 / 3, 1], [1, 1, 1, 1]),
        ("mutual_information_by_task", [1, 1, 2, 2], [0.4, 1, 1, 2 / 3]),
        ("zero_shot_by_task", [1, 2], [0, 10]),
        ("violations_by_task", [1, 2], [0, 1]),
        ("learning_curve", range(11), [5, 25, *(50 * (0.9 + b / 10) for b in range(2, 9)), 85, 90]),
        ("lca_by_step", range(11), [0.05, *(np.trapezoid(Z[: b + 1]) / b for b in range(1, 11))]),
    ],
)
def test_curves_by_hand(metric, times, values):
    curve = measured(metric).dropna(subset="time")
    assert list(curve["time"]) == list(times)
    assert list(curve["value"]) == pytest.approx(list(values))
    rows = measured(metric, RUN | {"diverged": 3})
    told, diverged = (rows[rows["metric"] == each] for each in ("diverged", metric))
    assert list(told["value"]) == [3]
    assert list(diverged["time"]) == list(times)
    assert np.isinf(diverged["value"]).all()


@pytest.mark.parametrize("metric", learning.LIFELONG)
@pytest.mark.parametrize("step", [0, 3])
def test_a_diverged_run_measures_infinity_and_says_when(metric, step):
    rows = measured(metric, RUN | {"diverged": step}).set_index("metric")["value"]
    assert rows[metric] == np.inf
    assert rows["diverged"] == step
    assert np.isfinite(rows.drop(metric)).all()
