"""Metrics of a sequence of tasks: what is known in the end, what was lost, and how fast a new task is learnt.

They are those of Chaudhry et al. (2019), section 3, on fractions in [0, 1], and of Farquhar and Gal (2019), B.8.
`tasks` is the section of that name in a run's result: of each task j, per class, its `total` test items;
`correct[k][j]`, how many of them were right after task k, only the task's classes competing, and `open[k][j]`, all
outputs competing; `shots[k][b]`, how many of task k's were right before its step b + 1; in `memory`, not per class,
`total` and `correct[k][j]`, j ≤ k, of the items that an episodic memory holds of task j; `mutual_information[k][j]`, in
nats, the mean over the items of task j after task k, where a learner has it.

In a stream of cycles the T tasks come again and again, and k counts their C = cycles · T visits; visit k is of task
k mod T. Elsewhere C = T.
"""

from __future__ import annotations

import itertools

import numpy as np

from clpapers.metrics.accuracy import final_accuracy, per_class_accuracy


def accuracies(tasks: dict, per_class: bool = False, view: str = "correct") -> np.ndarray:
    """a[k, j], the accuracy on task j after task k, also on tasks still to come: float [C, T].

    per_class: whether a task's accuracy is the mean over its classes (AWA2) instead of the share of its items.
    view: `correct`, or `open` where all outputs compete.
    """
    share = per_class_accuracy if per_class else final_accuracy
    return np.array([[share(right, total) for right, total in zip(row, tasks["total"])] for row in tasks[view]])


def memory_accuracies(tasks: dict) -> np.ndarray:
    """The accuracy on the memory of task j after task k: float [T, T], NaN for k < j, when there is no such memory."""
    total = np.array(tasks["memory"]["total"])
    a = np.full((len(total), len(total)), np.nan)
    for k, right in enumerate(tasks["memory"]["correct"]):
        a[k, : k + 1] = np.divide(right, total[: k + 1])
    return a


def shot_accuracies(tasks: dict, shots: int, steps: int, per_class: bool = False) -> np.ndarray:
    """The accuracy on each task after b of its own steps, b = 0 … shots: float [C, shots + 1].

    The paper does not say what becomes of a task of fewer steps. Here its curve goes on as it ends, with the accuracy
    after its last step.

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
    """A_k (eq. 1), after each task k the mean accuracy on the tasks up to it: float [C], from `accuracies`."""
    visits, tasks = a.shape
    return np.tril(a).sum(axis=1) / np.arange(1, visits + 1).clip(max=tasks)


def forgetting(a: np.ndarray) -> np.ndarray:
    """f_j (eq. 3) of each task but the last learnt: float [T − 1]; its mean is F_T (eq. 2), its maximum the worst case.

    It is the best accuracy after any earlier task, also after those before task j where it is known (not NaN), minus
    the one in the end.
    """
    visits, tasks = a.shape
    before = np.arange(tasks) != (visits - 1) % tasks
    return np.nanmax(a[:-1, before], axis=0) - a[-1, before]


def learning_curve_areas(z: np.ndarray) -> np.ndarray:
    """LCA_β (eq. 5), the mean of Z_0 … Z_β, for each β: float [B], from Z, the mean of `shot_accuracies` over tasks."""
    return z.cumsum() / np.arange(1, len(z) + 1)


def learning_curve_trapezoid(z: np.ndarray) -> float:
    """LCA_β as the paper's tables have it by its code: the trapezoid under Z_0 … Z_β, divided by β."""
    return float(np.trapezoid(z) / (len(z) - 1))


def mutual_information(tasks: dict) -> np.ndarray:
    """The mean mutual information on task j after task k: float [C, T], nats; NaN where a learner has none."""
    none = np.full((len(tasks["correct"]), len(tasks["total"])), np.nan)
    return np.array(tasks.get("mutual_information", none), dtype=float)


def roc(information: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How well tasks not yet seen are told from those seen, by a threshold on `mutual_information` [C, T].

    Seen after task k are those up to it; all pairs of k and j are one sample (Farquhar and Gal 2019, B.8).

    Returns
    -------
    false: float [n + 1], 0, 1/n, … 1 of the n pairs seen that are called unseen. detected: float [n + 1], the share of
    the unseen that are then called so, at best; an unseen one as uncertain as a seen one counts half. Its mean without
    the last is the area under the curve, which is one of steps: the chance that of a random seen and unseen pair the
    latter is the more uncertain.
    """
    seen = np.tril(np.ones(information.shape, dtype=bool))
    known = np.sort(information[seen])[::-1]
    detected = np.heaviside(information[~seen] - known[:, None], 0.5).mean(axis=1)
    return np.arange(len(known) + 1) / len(known), np.append(detected, 1.0)
