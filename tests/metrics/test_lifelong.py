"""Accuracies after each task, forgetting and learning curves, by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from clpapers.metrics import learning, lifelong
from clpapers.metrics.intervals import paired

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


def test_average_accuracy_is_that_of_the_tasks_so_far():
    assert lifelong.average_accuracies(A) == pytest.approx([0.9, (0.6 + 0.8) / 2, (0.7 + 0.4 + 1.0) / 3])


def test_forgetting_is_measured_from_the_best_of_all_earlier_accuracies():
    assert lifelong.forgetting(A) == pytest.approx([0.9 - 0.7, 0.8 - 0.4])
    assert lifelong.forgetting(A[:2, :2]) == pytest.approx([0.9 - 0.6])
    before_it_was_learnt = np.array([[1, 0.9, 0], [1, 0.5, 0], [1, 0.4, 1]])  # eq. 3: l runs from the first task
    assert lifelong.forgetting(before_it_was_learnt) == pytest.approx([0, 0.5])


def test_what_gets_better_to_the_last_is_forgotten_less_than_not_at_all():
    """The best of the earlier visits alone counts: a task that the last one improved has a negative forgetting."""
    assert lifelong.forgetting(np.array([[0.2, 0.1], [0.5, 0.9]])) == pytest.approx([0.2 - 0.5])
    assert lifelong.forgetting(np.array([[0.2, 0, 0], [0.4, 0.3, 0], [0.6, 0.1, 1]])) == pytest.approx([-0.2, 0.2])


# Two tasks, visited twice.
CYCLES = np.array([[0.9, 0.1], [0.4, 0.8], [1.0, 0.5], [0.7, 0.6]])


def test_tasks_that_recur_by_hand():
    """After the second visit both have been seen, whichever is learnt; the one learnt last is not forgotten."""
    assert lifelong.average_accuracies(CYCLES) == pytest.approx([0.9, 0.6, 0.75, 0.65])
    assert lifelong.forgetting(CYCLES) == pytest.approx([1.0 - 0.7])
    assert lifelong.forgetting(CYCLES[:3]) == pytest.approx([0.8 - 0.5])
    tenths = [[[round(10 * share)] for share in row] for row in CYCLES]
    tasks = {"classes": [[0], [1]], "total": [[10], [10]], "correct": tenths, "open": tenths}
    tasks["shots"] = [[[1], [9]], [[1], [8]], [[4], [5], [10]], [[5], [6]]]
    curves = lifelong.shot_accuracies(tasks, 3, 9)
    np.testing.assert_allclose(curves, [[0.1, 0.9, 0.9, 0.9], [0.1, *[0.8] * 3], [0.4, 0.5, 1, 1], [0.5, *[0.6] * 3]])
    run = RUN | {"tasks": tasks}
    for metric in ("average_accuracy_by_task", "single_head_accuracy_by_task"):
        rows = measured(metric, run).dropna(subset="time")
        assert list(rows["time"]) == [1, 2, 3, 4]
        assert list(rows["value"]) == pytest.approx([90, 60, 75, 65])
    assert list(measured("forgetting_by_task", run)["value"]) == pytest.approx([0.9 - 0.4, 0.8 - 0.5, 0.3])
    false, detected = lifelong.roc(CYCLES)  # seven seen, and one unseen of 0.1
    assert (len(false), detected.tolist()) == (8, [0] * 7 + [1])


def test_learning_curve_areas_by_hand():
    z = np.array([0.0, 0.6, 0.9])
    assert lifelong.learning_curve_trapezoids(z) == pytest.approx([0, 0.3, (0.3 + 0.75) / 2])


@given(st.floats(0, 1))
def test_the_area_under_a_flat_curve_is_its_height(height):
    z = np.full(11, height)
    assert lifelong.learning_curve_trapezoids(z) == pytest.approx(z)


def test_a_task_of_unbalanced_classes_by_items_and_by_classes():
    np.testing.assert_allclose(lifelong.accuracies(RUN["tasks"]), [[0.9, 0.1], [0.4, 0.9]])
    by_class = [[(1 + 0.5) / 2, 0.1], [(0.25 + 1) / 2, 0.9]]
    np.testing.assert_allclose(lifelong.accuracies(RUN["tasks"], per_class=True), by_class)


def test_the_curve_of_a_short_task_goes_on_as_it_ends():
    long, short = lifelong.shot_accuracies(RUN["tasks"], 10, RUN["steps"])
    assert long == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.8, 0.9])
    assert short == pytest.approx([0.1, 0.4, *[0.9] * 9])
    assert lifelong.shot_accuracies(RUN["tasks"], 1, RUN["steps"])[1] == pytest.approx([0.1, 0.4])


def test_a_curve_is_followed_to_the_end_of_the_longest_task():
    assert lifelong.shot_accuracies(RUN["tasks"], 11, 13).shape == (2, 12)  # the tasks have no more steps


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


def test_mean_and_worst_forgetting_are_told_apart():
    tenths = (10 * A).round().astype(int)
    tasks = {"classes": [[0]] * 3, "total": [[10]] * 3, "correct": tenths[..., None].tolist(), "shots": [[[0]]] * 3}
    run = RUN | {"tasks": tasks}
    assert measured("forgetting", run)["value"].item() == pytest.approx(0.3)
    assert measured("worst_forgetting", run)["value"].item() == pytest.approx(0.4)


# After each of three tasks; above the diagonal are those not yet seen.
INFORMATION = np.array([[0.1, 0.5, 0.4], [0.2, 0.3, 0.2], [0.45, 0.1, 0]])


def test_unseen_tasks_are_told_from_seen_ones_by_hand():
    """Of the 18 pairs of a seen and an unseen one, 0.5 is the larger in 6, 0.4 in 5, and 0.2 in 3 and once equal."""
    false, detected = lifelong.roc(INFORMATION)
    assert false == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1])
    assert detected == pytest.approx([1 / 3, 2 / 3, 2.5 / 3, 1, 1, 1, 1])
    tasks = RUN["tasks"] | {"mutual_information": INFORMATION.tolist()}
    assert measured("seen_unseen_auc", RUN | {"tasks": tasks})["value"].item() == pytest.approx(14.5 / 18)


def test_the_last_model_can_be_left_out():
    """Of the 9 pairs of seen 0.1, 0.2, 0.3 and unseen 0.5, 0.4, 0.2, the unseen is larger in 7, and once equal."""
    tasks = RUN["tasks"] | {"mutual_information": INFORMATION.tolist()}
    assert measured("seen_unseen_auc_early", RUN | {"tasks": tasks})["value"].item() == pytest.approx(7.5 / 9)


def test_a_model_may_have_a_threshold_of_its_own():
    """The first tells both unseen tasks from the seen one; of the second's two seen tasks one is above the unseen."""
    tasks = RUN["tasks"] | {"mutual_information": INFORMATION.tolist()}
    made = measured("seen_unseen_auc_by_model", RUN | {"tasks": tasks})
    assert made["value"].item() == pytest.approx((1 + 0.25) / 2)  # 0.2 is as uncertain as one and below the other
    np.testing.assert_array_equal(lifelong.areas_by_model(INFORMATION * [[9], [1], [5]]), [1, 0.25])  # in any unit


@given(arrays(float, st.integers(2, 6).map(lambda n: (n, n)), elements=st.integers(0, 9)))
def test_the_area_under_the_curve_is_the_rank_statistic(information):
    seen = np.tril(np.ones(information.shape, bool))
    statistic = stats.mannwhitneyu(information[~seen], information[seen]).statistic
    _, detected = lifelong.roc(information)
    assert detected[:-1].mean() == pytest.approx(statistic / seen.sum() / (~seen).sum())
    assert (np.diff(detected) >= 0).all()
    np.testing.assert_array_equal(lifelong.roc(np.exp(information))[1], detected)  # the order decides, not the unit


def test_a_grid_has_a_row_for_each_model_and_task():
    rows = measured("mutual_information_by_task")
    assert list(zip(rows["time"], rows["task"])) == [(1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize(
    "metric", ["seen_unseen_auc", "seen_unseen_auc_early", "seen_unseen_auc_by_model", "mutual_information_by_task"]
)
def test_what_a_learner_cannot_tell_or_told_no_number_for_is_no_number(metric):
    silent = {key: value for key, value in RUN["tasks"].items() if key != "mutual_information"}
    assert measured(metric, RUN | {"tasks": silent})["value"].isna().all()
    some = RUN["tasks"] | {"mutual_information": [[0.2, None], [0.3, 0.2]]}
    assert measured(metric, RUN | {"tasks": some})["value"].isna().any()


# Items that a memory holds of three tasks, and how many were right after each task.
MEMORY = {"total": [10, 20, 10], "correct": [[9], [10, 16], [8, 10, 10]]}


def test_accuracies_on_the_memory_by_hand():
    nan = np.nan
    a = lifelong.memory_accuracies({"memory": MEMORY})
    np.testing.assert_array_equal(a, [[0.9, nan, nan], [1, 0.8, nan], [0.8, 0.5, 1]])
    assert lifelong.forgetting(a) == pytest.approx([0.2, 0.3])
    run = RUN | {"tasks": RUN["tasks"] | {"memory": MEMORY}}
    assert measured("memory_accuracy", run)["value"].item() == pytest.approx(100 * (0.8 + 0.5 + 1) / 3)
    assert measured("memory_worst_forgetting", run)["value"].item() == pytest.approx(0.3)


@pytest.mark.parametrize("metric", ["memory_accuracy", "memory_worst_forgetting"])
def test_a_run_without_a_memory_has_no_accuracy_on_it(metric):
    assert np.isnan(measured(metric)["value"].item())


def test_chance_is_that_of_each_tasks_own_classes():
    run = RUN | {"tasks": RUN["tasks"] | {"classes": [[4, 7], [0, 2, 3, 5]]}}
    assert measured("average_accuracy", run)["value"].iloc[1] == pytest.approx((50 + 25) / 2)


def test_some_data_sets_are_scored_by_class():
    target = {"metric": "average_accuracy", "per_class": ["awa"]}
    assert measured(**target)["value"].iloc[0] == pytest.approx(100 * (0.625 + 0.9) / 2)
    assert measured(**target | {"per_class": ["cub"]})["value"].iloc[0] == pytest.approx(65)


@pytest.mark.parametrize("metric", ["forgetting", "forgetting_by_task"])
def test_what_is_undefined_of_a_learner_is_not_measured(metric):
    assert len(measured(metric, undefined={metric: ["a_gem"], "lca10": ["van"]})) == 1
    assert measured(metric, undefined={metric: ["a_gem", "van"]}).empty


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


def test_forgetting_after_two_of_three_tasks_leaves_the_third_out():
    """The third is answered well before it is learnt and worse after the second task; of the first a tenth is lost."""
    right = [[[9], [4], [8]], [[8], [9], [2]], [[6], [5], [9]]]
    tasks = {"classes": [[0], [1], [2]], "total": [[10], [10], [10]], "correct": right}
    curve = measured("forgetting_by_task", RUN | {"tasks": tasks})
    assert list(zip(curve["time"], curve["value"])) == [(2, pytest.approx(0.1)), (3, pytest.approx((0.3 + 0.4) / 2))]


@pytest.mark.parametrize(("metric", "chances"), [("average_accuracy_by_task", [50]), ("forgetting_by_task", [])])
def test_an_accuracy_by_task_comes_with_one_chance(metric, chances):
    rows = measured(metric)
    guesses = rows[rows["metric"] == f"chance_{metric}"]
    assert list(guesses["value"]) == chances
    assert guesses["time"].isna().all()
    assert set(rows["metric"]) <= {metric, f"chance_{metric}"}


@pytest.mark.parametrize("metric", learning.LIFELONG)
@pytest.mark.parametrize("step", [0, 3])
def test_a_diverged_run_measures_infinity_and_says_when(metric, step):
    rows = measured(metric, RUN | {"diverged": step}).set_index("metric")["value"]
    assert rows[metric] == np.inf
    assert rows["diverged"] == step
    assert np.isfinite(rows.drop(metric)).all()


def test_a_diverged_seed_is_no_pair():
    found = paired(pd.Series([np.inf, 2.0, 4.0, np.inf]), pd.Series([1.0, 1.0, 1.0, np.inf]))
    assert (found.difference, found.n) == (2, 2)
    assert np.isfinite(found).all()
    assert paired(pd.Series([np.inf]), pd.Series([1.0])).n == 0


def test_models_that_have_seen_every_task_have_no_area():
    """Two tasks in two cycles: only the first model has an unseen one, which is more uncertain than the seen."""
    information = np.array([[0.1, 0.5], [0.3, 0.2], [0.1, 0.2], [0.2, 0.1]])
    np.testing.assert_array_equal(lifelong.areas_by_model(information), [1.0])
