"""Small measured frames of every kind, and the circumstances they are rendered under."""

import numpy as np
import pandas as pd
import pytest

from clpapers.metrics import boundary_detection
from clpapers.targets.footnotes import Notes

NAMES = {
    "er": "ER",
    "ace": "ACE",
    "emnist": "EMNIST",
    "cifar10": "CIFAR-10",
    "final_accuracy": "Fin. Acc.",
    "learner": "Method",
    "dataset": "Data set",
    "split": "disjoint tasks",
    "stf": "STF",
}


@pytest.fixture
def real():
    """The paper's own settings on real data."""
    return Notes("paper", seeds=3)


@pytest.fixture
def reduced():
    """Everything that must be said: a stand-in and a reduction."""
    return Notes("small", {"emnist": "synthetic glyphs"}, ["order.length 1000 (paper: all)"], 3)


@pytest.fixture
def table_target():
    return {
        "title": "Table 1: A & B",
        "caption": "Means of {seeds} runs in %.",
        "metrics": ["final_accuracy"],
        "grid": {"dataset": ["emnist", "cifar10"], "learner": ["er", "ace"]},
        "names": NAMES,
    }


@pytest.fixture
def learnt():
    """Final accuracy of two learners on two data sets, three seeds; ACE is the better one by ten."""
    rows = [
        {"dataset": d, "learner": l, "seed": s, "metric": "final_accuracy", "time": np.nan, "value": v + gain}
        for d, values in {"cifar10": [38.0, 40.0, 42.0], "emnist": [79.0, 80.0, 81.0]}.items()
        for l, gain in {"ace": 10, "er": 0}.items()
        for s, v in enumerate(values)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(
    params=[
        "dispersion",
        "class_frequency",
        "prevalence",
        "stream_loss",
        "timestamps",
        "sequence",
        "curves",
        "factor_curves",
        "cycles",
        "deviations",
        "scatter",
        "boundary_trace",
        "uncertainty_grid",
        "roc",
        "schematic",
        "bars",
        "diagram",
        "bursts",
        "columns",
    ]
)
def figure_case(request, learnt):
    """(render module's name, target, data) of every kind of figure."""
    rng = np.random.default_rng(0)
    if request.param == "dispersion":
        grid = {"dataset": ["emnist", "cifar10"], "learner": ["er", "ace"], "scale": [0.5, 1, 2, 4]}
        target = {"grid": grid, "metrics": ["final_accuracy"], "names": NAMES}
        data = pd.concat([learnt.assign(scale=x, value=learnt["value"] + 3 * x) for x in (0.5, 1, 2, 4)])
        return "dispersion", target, data
    if request.param == "sequence":
        cells = [
            {"chunk": k, "class": c, "task": c // 4, "value": 0.55 if c == k else 0.05}
            for k in range(10)
            for c in range(10)
        ]
        data = pd.DataFrame(cells).assign(dataset="emnist", order="split", metric="share")
        return "sequence", {"chunks": 10, "names": NAMES}, data
    if request.param == "curves":
        data = learnt.assign(metric="learning_curve")
        names = NAMES | {"learning_curve": "Accuracy (%)", "learning_curve over": "Steps"}
        grid = {"dataset": ["emnist", "cifar10"], "learner": ["er", "ace"]}
        data = pd.concat([data.assign(time=b, value=data["value"] / 2 + b) for b in range(11)])
        return "curves", {"metrics": ["learning_curve"], "grid": grid, "names": names}, data
    if request.param == "cycles":
        metric = "average_accuracy_by_task"
        names = NAMES | {metric: "Accuracy (%)", f"{metric} over": "Tasks", "chance": "Guess"}
        target = {"metrics": [metric], "grid": {"dataset": ["emnist"], "learner": ["er", "ace"]}, "names": names}
        data = learnt[learnt["dataset"] == "emnist"].assign(metric=metric)
        guess = data.assign(metric=f"chance_{metric}", value=12.5)
        data = pd.concat([*(data.assign(time=t, value=data["value"] - t) for t in range(1, 7)), guess])
        return "curves", target | {"cell": {"order": {"cycles": 3}}}, data
    if request.param == "deviations":
        names = NAMES | {"likelihood_gradient": "Gradient", "likelihood_gradient over": "Batches"}
        grid = {"dataset": ["emnist"], "learner": ["er"], "order": [{"name": "split"}, {"name": "stf", "tasks": 2}]}
        target = {"metrics": ["likelihood_gradient"], "rows": "order", "spread": "sd", "grid": grid, "names": names}
        cells = [
            {"order": order, "repetition": r, "time": batch, "value": value * (1 + r) / batch}
            for order, value in (("stf", 1), ("split", 10))
            for r in range(3)
            for batch in range(1, 16)
        ]
        data = pd.DataFrame(cells).assign(dataset="emnist", learner="er", seed=0, metric="likelihood_gradient")
        return "curves", target, data
    if request.param == "scatter":
        names = NAMES | {"training_minutes": "Minutes", "chance": "Guess"}
        grid = {"dataset": ["emnist", "cifar10"], "learner": ["er", "ace"], "learner.epochs": [1, 10]}
        target = {"metrics": ["final_accuracy", "training_minutes"], "grid": grid, "names": names}
        data = [
            learnt.assign(cell=learnt["dataset"] + learnt["learner"] + str(e), value=learnt["value"] + e / 10)
            for e in (1, 10)
        ]
        minutes = [
            d.assign(metric="training_minutes", hardware="Abacus", value=d["cell"].str.len() * 10.0) for d in data
        ]
        guess = data[0].assign(metric="chance_final_accuracy", value=10.0)
        return "scatter", target, pd.concat([*data, *minutes, guess])
    if request.param == "boundary_trace":
        traces = {0: [2, 1, 3, 12, 6, 3, 30], 1: [2, 1, 1, 9, 6, 3, 40]}
        seeds = [
            {"seed": seed, "learner": {"trace": {"mutual_information": trace, "tasks": [0, 3, 6]}}}
            for seed, trace in traces.items()
        ]
        data = boundary_detection.measure({}, [({"dataset": "emnist", "learner": "er"}, "abc", {"seeds": seeds})])
        return "boundary_trace", {"names": NAMES | {"time": "Epochs"}}, data
    if request.param == "uncertainty_grid":
        cells = [
            {"seed": s, "time": float(k), "task": j, "value": 0.9 - 0.1 * s if j > k else 0.1 * (k - j)}
            for s in range(3)
            for k in range(1, 5)
            for j in range(1, 5)
        ]
        data = pd.DataFrame(cells).assign(dataset="emnist", learner="er", metric="mutual_information_by_task")
        return "uncertainty_grid", {"metrics": ["mutual_information_by_task"], "names": NAMES}, data
    if request.param == "roc":
        heights = {"er": [[0.5, 0.5, 1], [0, 1, 1]], "ace": [[1, 1, 1], [1, 1, 1]]}
        curve = [
            {"learner": l, "seed": s, "metric": "roc", "time": i / 2, "value": v}
            for l, seeds in heights.items()
            for s, curve in enumerate(seeds)
            for i, v in enumerate(curve)
        ]
        area = [
            {"learner": l, "seed": s, "metric": "seen_unseen_auc", "value": np.mean(curve[:-1])}
            for l, seeds in heights.items()
            for s, curve in enumerate(seeds)
        ]
        grid = {"dataset": ["emnist"], "learner": ["er", "ace"]}
        return "roc", {"grid": grid, "names": NAMES}, pd.DataFrame(curve + area).assign(dataset="emnist")
    if request.param == "schematic":
        data = pd.DataFrame({"chunk": [0, 0, 1, 1, 2], "class": [7, 0, 2, 5, 4], "task": 0, "value": 0.5})
        return "schematic", {"names": {"prior_focused": "Prior", "likelihood_focused": "Likelihood"}}, data
    if request.param == "factor_curves":
        names = NAMES | {f"{metric} over": "Epochs" for metric in ("final_accuracy", "forgetting")}
        grid = {"dataset": ["emnist"], "learner": ["er", "ace"], "order.epochs": [1, 10, 30]}
        target = {"metrics": ["final_accuracy", "forgetting"], "grid": grid, "names": names}
        data = pd.concat([learnt.assign(**{"order.epochs": e}, value=learnt["value"] + e) for e in (10, 1, 30)])
        data = data[data["dataset"] == "emnist"]
        return "curves", target, pd.concat([data, data.assign(metric="forgetting", value=data["value"] / 100)])
    if request.param == "diagram":
        layers = [
            ("stem.0", "Conv2D(3, 8), 7×7, stride 2", "8×32×32", 1176),
            ("stem.1", "MaxPooling2D(3, 2)", "8×16×16", 0),
            ("stage1.0.residual.0", "Conv2D(8, 16), 3×3, stride 1", "16×16×16", 1152),
            ("stage1.0.relu", "ReLU", "16×16×16", 0),
            ("pool", "AveragePooling", "16×1×1", 0),
            ("flatten", "Flatten", "16", 0),
            ("head", "JointEmbedding(16, 85)", "50", 1410),
        ]
        data = pd.DataFrame(layers, columns=["block", "layer", "output", "parameters"])
        data = data.assign(net="awa2", input="3×64×64", classes=50, total=3738)
        return "diagram", {"names": {"awa2": "Split AWA", "stage1": "stage 1"}}, data
    if request.param == "bursts":
        cells = [
            {"order": order, "chunk": chunk, "class": c, "instance": 3 * c + i, "value": value}
            for order, runs in {
                "split": [(c, c, i % 3, 5) for c in range(10) for i in range(12)],
                "instances": [(k, k * 7 % 10, k % 3, 20) for k in range(30)],
            }.items()
            for chunk, c, i, value in runs
        ]
        data = pd.DataFrame(cells).assign(dataset="emnist", seed=0, metric="items")
        return "bursts", {"names": NAMES | {"instances": "bursts", "category": "Category"}}, data
    if request.param == "columns":
        metrics = ["accuracy_by_time", "memory_by_time"]
        names = NAMES | {"chance": "Guess"} | {metric: metric for metric in metrics}
        names |= {f"{metric} over": "Items seen" for metric in metrics}
        target = {"metrics": metrics, "columns": "order", "spread": "sd", "names": names}
        grid = {"dataset": ["emnist"], "learner": ["er", "ace"], "order": [{"name": "split"}, {"name": "stf"}]}
        data = [
            learnt[learnt["dataset"] == "emnist"].assign(order=o, metric=m, time=t, value=learnt["value"] * x + t / 20)
            for o, x in (("stf", 1), ("split", 0.5))
            for m in metrics
            for t in (100, 200, 300)
        ]
        guess = data[0].assign(metric="chance_accuracy_by_time", value=10.0)
        return "curves", target | {"grid": grid}, pd.concat([*data, guess])
    if request.param == "bars":
        grid = {"dataset": ["emnist", "cifar10"], "learner": ["er", "ace"]}
        target = {"metrics": ["final_accuracy", "training_seconds"], "grid": grid, "names": NAMES}
        return "bars", target, pd.concat([learnt, learnt.assign(metric="training_seconds", value=learnt["value"] * 9)])
    if request.param == "timestamps":
        data = pd.DataFrame({"position": range(40), "timestamp": np.sort(rng.random(40))})
        data["class"] = rng.permutation(np.repeat([0, 1, 2], [13, 17, 10]))
        data["alpha"], data["beta"] = data["class"] + 0.5, 2.0
        return "timestamps", {"names": {"class 0": "Class 1"}}, data
    streams = [("split", 0), ("stf", 0)]
    if request.param == "class_frequency":
        cells = [
            {"order": o, "seed": s, "class": c, "time": (k + 0.5) / 20, "value": v}
            for o, s in streams
            for k in range(20)
            for c, v in enumerate(rng.dirichlet(np.ones(10)))
        ]
        return "class_frequency", {"chunks": 20, "names": NAMES}, pd.DataFrame(cells).assign(dataset="emnist")
    cells = [
        {"order": o, "seed": s, "metric": request.param, "time": t, "value": rng.random()}
        for o, s in [*streams, ("split", 1), ("stf", 1)]
        for t in np.linspace(0, 1, 30)
    ]
    return "stream_curves", {"names": NAMES}, pd.DataFrame(cells).assign(dataset="emnist")
