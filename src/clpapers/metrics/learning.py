"""Measures learning: one tidy row a cell, seed, metric and time, from the result files of runs."""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from clpapers.metrics import accuracy, forgetting, lifelong
from clpapers.metrics.factors import flat

MEASURE = {"named_by": "metrics", "needs": ["grid", "metrics"], "reads": ["per_class", "undefined"]}
METRICS = {
    "final_accuracy": {"unit": "%", "better": "larger", "competing": "test"},
    "per_class_accuracy": {"unit": "%", "better": "larger", "competing": "test"},
    "average_information_retention": {"unit": "%", "better": "larger", "competing": "all"},
    "online_accuracy": {"unit": "%", "better": "larger", "competing": "all"},
    "forgetting_events": {"unit": "events", "judged": "count", "better": "smaller", "competing": "all"},
    "never_learnt": {"unit": "%", "better": "smaller", "competing": "all"},
    "unforgettable": {"unit": "%", "better": "larger", "competing": "all"},
    "average_accuracy": {"unit": "%", "better": "larger", "competing": "task", "tasks": 1},
    "forgetting": {"bounds": (-1, 1), "better": "smaller", "competing": "task", "tasks": 2},
    "worst_forgetting": {"bounds": (-1, 1), "better": "smaller", "competing": "task", "tasks": 2},
    "lca10": {"bounds": (0, 1), "better": "larger", "competing": "task", "tasks": 1},
    "zero_shot": {"unit": "%", "better": "larger", "competing": "task", "tasks": 1},
    "single_head_accuracy": {"unit": "%", "better": "larger", "competing": "all", "tasks": 1},
    "seen_unseen_auc": {"bounds": (0, 1), "better": "larger", "tasks": 2},
    "seen_unseen_auc_early": {"bounds": (0, 1), "better": "larger", "tasks": 2},
    "seen_unseen_auc_by_model": {"bounds": (0, 1), "better": "larger", "tasks": 2},
    "memory_accuracy": {"unit": "%", "better": "larger", "competing": "task", "tasks": 1},
    "memory_worst_forgetting": {"bounds": (-1, 1), "better": "smaller", "competing": "task", "tasks": 2},
    "information_retention": {"unit": "%", "better": "larger", "competing": "all", "over": "time"},
    "average_accuracy_by_task": {"unit": "%", "better": "larger", "competing": "task", "over": "tasks", "tasks": 1},
    "single_head_accuracy_by_task": {"unit": "%", "better": "larger", "competing": "all", "over": "tasks", "tasks": 1},
    "forgetting_by_task": {"bounds": (-1, 1), "better": "smaller", "competing": "task", "over": "tasks", "tasks": 2},
    "zero_shot_by_task": {"unit": "%", "better": "larger", "competing": "task", "over": "tasks", "tasks": 1},
    "violations_by_task": {"bounds": (0, None), "unit": "steps", "better": "smaller", "over": "tasks"},
    "learning_curve": {"unit": "%", "better": "larger", "competing": "task", "over": "steps", "tasks": 1},
    "lca_by_step": {"bounds": (0, 1), "better": "larger", "competing": "task", "over": "steps", "tasks": 1},
    "roc": {"bounds": (0, 1), "better": "larger", "over": "false positives", "tasks": 2},
    "mutual_information_by_task": {"over": "models and tasks", "tasks": 1},
}

Curve = tuple[np.ndarray, np.ndarray]  # times, values
SHOTS = 10  # β of `agem`'s learning curves
DIVERGED, OUT_OF_MEMORY = "diverged", "out_of_memory"


def _online_accuracy(run: dict) -> float:
    counts = run["online"]["correct"]
    return np.nan if counts is None else 100 * accuracy.online_accuracy(counts, run["probes"]["time"][-1])


def _probes(run: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    position, time = np.array(run["probes"]["position"]), np.array(run["probes"]["time"])
    return accuracy.unpack(run["probes"]["correct"], position, time), position, time


def _answers(run: dict) -> tuple[np.ndarray, np.ndarray]:
    correct, position, time = _probes(run)
    return correct, accuracy.seen(position, time)


def _information_retention(run: dict) -> Curve:
    correct, position, time = _probes(run)
    return time / time[-1], 100 * accuracy.information_retention(correct, position, time)


def _after_tasks(run: dict) -> np.ndarray:
    return lifelong.accuracies(run["tasks"], run["per_class"])


def _shots(run: dict) -> np.ndarray:
    return lifelong.shot_accuracies(run["tasks"], SHOTS, run["steps"], run["per_class"])


def _unless_diverged(scalar: Callable[[dict], float]) -> Callable[[dict], float]:
    """`scalar`, or ∞ for a run that diverged, as `agem` prints it (Table 4)."""
    return lambda run: scalar(run) if run.get(DIVERGED) is None else np.inf


def _lifelong_curve(first: int, values: Callable[[dict], np.ndarray]) -> Callable[[dict], Curve]:
    """A curve over tasks or steps, numbered from `first`; ∞ throughout for a run that diverged."""

    def measured(run: dict) -> Curve:
        curve = values(run)
        return first + np.arange(len(curve)), curve if run.get(DIVERGED) is None else np.full(len(curve), np.inf)

    return measured


def _average_accuracies(run: dict) -> np.ndarray:
    return 100 * lifelong.average_accuracies(_after_tasks(run))


def _single_head_accuracies(run: dict) -> np.ndarray:
    return 100 * lifelong.average_accuracies(lifelong.accuracies(run["tasks"], run["per_class"], "open"))


def _roc(run: dict) -> Curve:
    false, detected = lifelong.roc(lifelong.mutual_information(run["tasks"]))
    return false, detected if run.get(DIVERGED) is None else np.full(len(detected), np.inf)


def _relative_information(run: dict) -> np.ndarray:
    information = lifelong.mutual_information(run["tasks"])
    if run.get(DIVERGED) is not None:
        return np.full(information.shape, np.inf)
    return information / information.max(axis=1, keepdims=True)


def _forgettings(run: dict) -> np.ndarray:
    a = _after_tasks(run)
    return np.array([lifelong.forgetting(a[:k, :k]).mean() for k in range(2, len(a) + 1)])


def _of_memory(scalar: Callable[[np.ndarray], float]) -> Callable[[dict], float]:
    """A scalar from the accuracies on the episodic memory; NaN for a run without one."""
    return lambda run: scalar(lifelong.memory_accuracies(run["tasks"])) if "memory" in run["tasks"] else np.nan


LIFELONG: dict[str, Callable[[dict], float]] = {
    "average_accuracy": lambda run: _average_accuracies(run)[-1],
    "forgetting": lambda run: lifelong.forgetting(_after_tasks(run)).mean(),
    "worst_forgetting": lambda run: lifelong.forgetting(_after_tasks(run)).max(),
    "lca10": lambda run: lifelong.learning_curve_trapezoids(_shots(run).mean(axis=0))[-1],
    "zero_shot": lambda run: 100 * _shots(run)[:, 0].mean(),
    "single_head_accuracy": lambda run: _single_head_accuracies(run)[-1],
    "seen_unseen_auc": lambda run: lifelong.roc(lifelong.mutual_information(run["tasks"]))[1][:-1].mean(),
    # of all models but the last, which has seen every task
    "seen_unseen_auc_early": lambda run: lifelong.roc(lifelong.mutual_information(run["tasks"])[:-1])[1][:-1].mean(),
    "seen_unseen_auc_by_model": lambda run: lifelong.areas_by_model(lifelong.mutual_information(run["tasks"])).mean(),
    "memory_accuracy": _of_memory(lambda a: 100 * a[-1].mean()),
    "memory_worst_forgetting": _of_memory(lambda a: lifelong.forgetting(a).max()),
}
SCALARS: dict[str, Callable[[dict], float]] = {
    "final_accuracy": lambda run: 100 * float(accuracy.final_accuracy(run["test"]["correct"], run["test"]["total"])),
    "per_class_accuracy": lambda run: (
        100 * float(accuracy.per_class_accuracy(run["test"]["correct"], run["test"]["total"]))
    ),
    "average_information_retention": lambda run: 100 * accuracy.average_information_retention(*_probes(run)),
    "online_accuracy": _online_accuracy,  # NaN where the learner does not answer online
    "forgetting_events": lambda run: forgetting.forgetting_events(*_answers(run)).mean(),  # a probe
    "never_learnt": lambda run: 100 * forgetting.never_learnt(*_answers(run)).mean(),  # of the probes
    "unforgettable": lambda run: 100 * float(forgetting.unforgettable_fraction(*_answers(run))),  # of the probes
    **{metric: _unless_diverged(scalar) for metric, scalar in LIFELONG.items()},
}
LIFELONG_CURVES: dict[str, Callable[[dict], Curve]] = {
    # Over visits to tasks, from 1; forgetting from 2.
    "average_accuracy_by_task": _lifelong_curve(1, _average_accuracies),
    "single_head_accuracy_by_task": _lifelong_curve(1, _single_head_accuracies),
    "forgetting_by_task": _lifelong_curve(2, _forgettings),
    "zero_shot_by_task": _lifelong_curve(1, lambda run: 100 * _shots(run)[:, 0]),
    "violations_by_task": _lifelong_curve(1, lambda run: np.array(run["learner"].get("violations", ()))),
    # Over a task's steps, from 0.
    "learning_curve": _lifelong_curve(0, lambda run: 100 * _shots(run).mean(axis=0)),
    "lca_by_step": _lifelong_curve(0, lambda run: lifelong.learning_curve_trapezoids(_shots(run).mean(axis=0))),
    "roc": _roc,  # over the false positive rate
}
GRIDS: dict[str, Callable[[dict], np.ndarray]] = {  # tasks learnt × tasks tested
    "mutual_information_by_task": _relative_information,  # as a share of the row's largest
}
CURVES: dict[str, Callable[[dict], Curve]] = {
    "information_retention": _information_retention,
    **LIFELONG_CURVES,
}


def _masked_chance(run: dict) -> float:
    return 100 * run["test"]["chance"]


def _open_chance(run: dict) -> float:
    return 100 / len(run["test"]["total"])


def _task_chance(run: dict) -> float:
    return 100 * float(np.mean([1 / len(classes) for classes in run["tasks"]["classes"]]))


CHANCE_PREFIX = "chance_"
CHANCES: dict[str, Callable[[dict], float]] = {  # chance level: a uniform guess among the competing classes
    "final_accuracy": _masked_chance,
    "per_class_accuracy": _masked_chance,
    "average_information_retention": _open_chance,  # on probes and stream batches all classes compete
    "online_accuracy": _open_chance,
    "average_accuracy": _task_chance,
    "single_head_accuracy": _open_chance,
    "lca10": lambda run: _task_chance(run) / 100,  # a guess's learning curve is flat
    "zero_shot": _task_chance,
}


def measure(target: dict, inputs: Iterable[tuple[dict, str, dict]]) -> pd.DataFrame:
    """Measure every seed of every run.

    target: keys `metrics` (names of `SCALARS`, `CURVES` and `GRIDS`); optional `per_class` (data sets on which a task's
        accuracy is the mean over its classes) and `undefined` (by metric, learners that it is not measured on).
    inputs: (factors, cell hash, parsed run result), one a result file.

    Returns columns: the factors, `cell`, `seed`, `metric`, `time`, `value`. A curve's `time` is a fraction of the
    stream, or a number of tasks or of steps (see `CURVES`); it is NaN for scalars. `GRIDS` also have the column `task`:
    the task tested after `time` tasks, from 1. Each accuracy comes with its chance level, `chance_<accuracy>` (rule 2
    of `rules`; of a curve, over all tasks). If a run diverged, the metrics of its task sequence are ∞, and `diverged`
    counts the steps until then. A run that exceeded the memory has only `out_of_memory`, 1.
    """
    rows = []
    for factors, cell, result in inputs:
        per_class = factors.get("dataset") in target.get("per_class", [])
        for run in result["seeds"]:
            run = run | {"per_class": per_class}
            key = {**flat(factors), "cell": cell, "seed": run["seed"]}
            if run.get(OUT_OF_MEMORY):
                rows.append({**key, "metric": OUT_OF_MEMORY, "time": np.nan, "value": 1.0})
                continue
            if run.get(DIVERGED) is not None and (LIFELONG | LIFELONG_CURVES | GRIDS).keys() & target["metrics"]:
                rows.append({**key, "metric": DIVERGED, "time": np.nan, "value": float(run[DIVERGED])})
            for metric in target["metrics"]:
                if factors.get("learner") in target.get("undefined", {}).get(metric, []):
                    continue
                if metric in SCALARS:
                    rows.append({**key, "metric": metric, "time": np.nan, "value": float(SCALARS[metric](run))})
                elif metric in GRIDS:
                    rows += [
                        {**key, "metric": metric, "time": k + 1.0, "task": j + 1, "value": float(value)}
                        for (k, j), value in np.ndenumerate(GRIDS[metric](run))
                    ]
                else:
                    times, values = CURVES[metric](run)
                    rows += [
                        {**key, "metric": metric, "time": float(time), "value": float(value)}
                        for time, value in zip(times, values)
                    ]
                if (scalar := metric.removesuffix("_by_task")) in CHANCES:
                    guess = float(CHANCES[scalar](run))
                    rows.append({**key, "metric": CHANCE_PREFIX + metric, "time": np.nan, "value": guess})
    return pd.DataFrame(rows)
