"""Metrics of a sequence of tasks: average accuracy, forgetting, learning speed and uncertainty.

Definitions: Chaudhry et al. (2019), section 3, on fractions in [0, 1]; Farquhar and Gal (2019), B.8. `tasks` is that
section of a run's result. Its counts per class:

- `total[j]`: test items of task j;
- `correct[k][j]`: right answers on them after task k with only the task's classes competing;
- `open[k][j]`: the same with all outputs competing;
- `shots[k][b]`: right answers on task k before its step b + 1.

`memory`: `total` and `correct[k][j]`, j ≤ k, of the memory's items of task j, not per class.
`mutual_information[k][j]`: mean over the items of task j after task k, nats, if the learner has it.

In a stream of cycles the T tasks recur: k counts C = cycles · T visits, and visit k is to task k mod T. Else C = T.
"""

import itertools

import numpy as np

from clpapers.metrics.accuracy import final_accuracy, per_class_accuracy


def accuracies(tasks: dict, per_class: bool = False, view: str = "correct") -> np.ndarray:
    """a[k, j], the accuracy on task j after task k, also on tasks still to come: float [C, T].

    per_class: take the mean over a task's classes (AWA2) instead of over its items.
    view: `correct`, or `open` where all outputs compete.
    """
    share = per_class_accuracy if per_class else final_accuracy
    return np.array([[share(right, total) for right, total in zip(row, tasks["total"])] for row in tasks[view]])


def memory_accuracies(tasks: dict) -> np.ndarray:
    """The accuracy on the memory's items of task j after task k: float [T, T], NaN for k < j."""
    total = np.array(tasks["memory"]["total"])
    a = np.full((len(total), len(total)), np.nan)
    for k, right in enumerate(tasks["memory"]["correct"]):
        a[k, : k + 1] = np.divide(right, total[: k + 1])
    return a


def shot_accuracies(tasks: dict, shots: int, steps: int, per_class: bool = False) -> np.ndarray:
    """The accuracy on each task after b of its own steps, b = 0 … shots: float [C, shots + 1].

    A task of fewer steps, on which the paper is silent, keeps the accuracy after its last step.

    steps: of the whole run. Raises `ValueError` where the run followed fewer shots, though its tasks had more steps.
    """
    followed = max(map(len, tasks["shots"])) - 1
    if followed < shots and sum(map(len, tasks["shots"])) < steps:
        raise ValueError(f"the run followed {followed} shots a task, not {shots}; set its evaluation.shots")
    share = per_class_accuracy if per_class else final_accuracy
    a = accuracies(tasks, per_class)
    visits = np.arange(len(a))
    ends = a[visits, visits % a.shape[1]]
    curves = np.repeat(ends[:, None], shots + 1, axis=1)
    for curve, counts, total in zip(curves, tasks["shots"], itertools.cycle(tasks["total"])):
        known = [share(right, total) for right in counts[: shots + 1]]
        curve[: len(known)] = known
    return curves


def average_accuracies(a: np.ndarray) -> np.ndarray:
    """A_k (eq. 1), the mean accuracy after task k on the tasks up to it: float [C], from `accuracies`."""
    visits, tasks = a.shape
    return np.tril(a).sum(axis=1) / np.arange(1, visits + 1).clip(max=tasks)


def forgetting(a: np.ndarray) -> np.ndarray:
    """f_j (eq. 3) of each task but the last learnt: float [T − 1]; its mean is F_T (eq. 2), its maximum the worst case.

    The best accuracy after any earlier visit, even before task j was learnt (NaN ignored), minus the final accuracy.
    """
    visits, tasks = a.shape
    before = np.arange(tasks) != (visits - 1) % tasks
    return np.nanmax(a[:-1, before], axis=0) - a[-1, before]


def learning_curve_trapezoids(z: np.ndarray) -> np.ndarray:
    """LCA_β as the authors' notebook has it, for each β: the trapezoid under Z_0 … Z_β, over β (0: Z_0): float [B].

    z: float [B], the mean of `shot_accuracies` over tasks.
    """
    areas = np.cumsum((z[1:] + z[:-1]) / 2)
    return np.concatenate([z[:1], areas / np.arange(1, len(z))])


def mutual_information(tasks: dict) -> np.ndarray:
    """The mean mutual information on task j after task k: float [C, T], nats; NaN if the learner has none."""
    none = np.full((len(tasks["correct"]), len(tasks["total"])), np.nan)
    return np.array(tasks.get("mutual_information", none), dtype=float)


def roc(information: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ROC of detecting unseen tasks by a threshold on `mutual_information` [C, T] (Farquhar and Gal 2019, B.8).

    The sample is all pairs (k, j); task j is seen after task k if j ≤ k.

    Returns
    -------
    false: float [n + 1], the false positive rate 0, 1/n, … 1 over the n seen pairs.
    detected: float [n + 1], the best true positive rate at each; ties count half.

    The curve has steps, so the mean of `detected` without its last value is the area under it. The area is the
    probability that a random unseen pair is more uncertain than a random seen one.
    """
    seen = np.tril(np.ones(information.shape, dtype=bool))
    return _roc(information[seen], information[~seen])


def areas_by_model(information: np.ndarray) -> np.ndarray:
    """The area under a `roc` of each model's own, after all tasks but the last: float [T - 1].

    In later cycles no task is unseen, so their models have none.
    """
    unseen = information[: information.shape[1] - 1]
    return np.array([_roc(row[: k + 1], row[k + 1 :])[1][:-1].mean() for k, row in enumerate(unseen)])


def _roc(seen: np.ndarray, unseen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    thresholds = np.sort(seen)[::-1]
    detected = np.heaviside(unseen - thresholds[:, None], 0.5).mean(axis=1)
    return np.arange(len(thresholds) + 1) / len(thresholds), np.append(detected, 1.0)
