"""Small measured frames of every kind, and the circumstances they are rendered under."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from clpapers.metrics import boundary_detection
from clpapers.targets.footnotes import Notes

NAMES = {
    **{"er": "ER", "ace": "ACE", "emnist": "EMNIST", "cifar10": "CIFAR-10", "split": "disjoint tasks", "stf": "STF"},
    **{"final_accuracy": "Fin. Acc.", "learner": "Method", "dataset": "Data set"},
}
EMNIST, BOTH = (
    {"dataset": ["emnist"], "learner": ["er", "ace"]},
    {"dataset": ["emnist", "cifar10"], "learner": ["er", "ace"]},
)
RATES = {"er": [[0.5, 0.5, 1], [0, 1, 1]], "ace": [[1, 1, 1], [1, 1, 1]]}  # a ROC of three points of each seed
LAYERS = [
    ("stem.0", "Conv2D(3, 8), 7×7, stride 2", "8×32×32", 1176),
    ("stem.1", "MaxPooling2D(3, 2)", "8×16×16", 0),
    ("stage1.0.residual.0", "Conv2D(8, 16), 3×3, stride 1", "16×16×16", 1152),
    ("stage1.0.relu", "ReLU", "16×16×16", 0),
    ("pool", "AveragePooling", "16×1×1", 0),
    ("flatten", "Flatten", "16", 0),
    ("head", "JointEmbedding(16, 85)", "50", 1410),
]


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
    target = {"title": "Table 1: A & B", "caption": "Means of {seeds} runs in %.", "metrics": ["final_accuracy"]}
    return target | {"grid": {**BOTH, "learner": ["er", "ace"]}, "names": NAMES}


def crossed(data=None, **levels):
    """Each line of a frame with each combination of levels; without a frame, the combinations alone."""
    made = pd.DataFrame(product(*levels.values()), columns=[*levels])
    return made if data is None else data.merge(made, how="cross")


@pytest.fixture
def learnt():
    """Final accuracy of two learners on two data sets, three seeds; ACE is the better one by ten."""
    data = crossed(dataset=["cifar10", "emnist"], learner=["ace", "er"], seed=range(3))
    data = data.assign(metric="final_accuracy", time=np.nan)
    base = np.where(data["dataset"] == "cifar10", 38 + 2 * data["seed"], 79 + data["seed"])
    return data.assign(value=base + 10.0 * (data["learner"] == "ace"))


def figure(kind, learnt):
    """(render module's name, target, data) of a kind of figure."""
    module, target, data = of_kind(kind, learnt)
    return module, target | {"names": NAMES | target.get("names", {})}, data.reset_index(drop=True)


def of_kind(kind, learnt):
    emnist, rng = learnt[learnt["dataset"] == "emnist"], np.random.default_rng(0)
    match kind:
        case "dispersion":
            target = {"grid": BOTH | {"scale": [0.5, 1, 2, 4]}, "metrics": ["final_accuracy"]}
            return kind, target, crossed(learnt, scale=[0.5, 1, 2, 4]).eval("value = value + 3 * scale")
        case "sequence":
            data = crossed(chunk=range(10), c=range(10)).eval("task = c // 4\nvalue = 0.05 + 0.5 * (c == chunk)")
            data = data.assign(dataset="emnist", order="split", metric="share")
            return kind, {"chunks": 10}, data.rename(columns={"c": "class"})
        case "curves":
            names = {"learning_curve": "Accuracy (%)", "learning_curve over": "Steps"}
            data = crossed(learnt.assign(metric="learning_curve").drop(columns="time"), time=range(11))
            target = {"metrics": ["learning_curve"], "grid": BOTH, "names": names}
            return kind, target, data.eval("value = value / 2 + time")
        case "cycles":
            metric = "average_accuracy_by_task"
            names = {metric: "Accuracy (%)", f"{metric} over": "Tasks", "chance": "Guess"}
            target = {"metrics": [metric], "grid": EMNIST, "names": names, "cell": {"order": {"cycles": 3}}}
            data = emnist.assign(metric=metric)
            guess = data.assign(metric=f"chance_{metric}", value=12.5)
            data = crossed(data.drop(columns="time"), time=range(1, 7)).eval("value = value - time")
            return "curves", target, pd.concat([data, guess])
        case "deviations":
            metric = "likelihood_gradient"
            grid = {"dataset": ["emnist"], "learner": ["er"]}
            grid |= {"order": [{"name": "split"}, {"name": "stf", "tasks": 2}]}
            names = {metric: "Gradient", f"{metric} over": "Batches"}
            target = {"metrics": [metric], "rows": "order", "spread": "sd", "grid": grid, "names": names}
            data = crossed(order=["stf", "split"], repetition=range(3), time=range(1, 16))
            data = data.eval("value = (1 + 9 * (order == 'split')) * (1 + repetition) / time")
            return "curves", target, data.assign(dataset="emnist", learner="er", seed=0, metric=metric)
        case "columns":
            metrics = ["accuracy_by_time", "memory_by_time"]
            names = {"chance": "Guess"} | {f"{metric} over": "Items seen" for metric in metrics}
            names |= dict(zip(metrics, metrics))
            target = {"metrics": metrics, "columns": "order", "spread": "sd", "names": names}
            target |= {"grid": EMNIST | {"order": [{"name": "split"}, {"name": "stf"}]}}
            across = {"order": ["stf", "split"], "metric": metrics, "time": [100, 200, 300]}
            data = crossed(emnist.drop(columns=["metric", "time"]), **across)
            data = data.eval("value = value * (1 - 0.5 * (order == 'split')) + time / 20")
            guess = data[(data["order"] == "stf") & (data["time"] == 100) & (data["metric"] == metrics[0])]
            return "curves", target, pd.concat([data, guess.assign(metric="chance_accuracy_by_time", value=10.0)])
        case "factor_curves":
            metrics = ["final_accuracy", "forgetting"]
            names = {f"{metric} over": "Epochs" for metric in metrics}
            target = {"metrics": metrics, "grid": EMNIST | {"order.epochs": [1, 10, 30]}, "names": names}
            data = crossed(emnist, **{"order.epochs": [10, 1, 30]}).eval("value = value + `order.epochs`")
            return "curves", target, pd.concat([data, data.assign(metric="forgetting", value=data["value"] / 100)])
        case "scatter":
            names = {"training_minutes": "Minutes", "chance": "Guess"}
            target = {"metrics": ["final_accuracy", "training_minutes"], "grid": BOTH | {"learner.epochs": [1, 10]}}
            data = crossed(learnt, e=[1, 10]).eval("value = value + e / 10")
            data = data.assign(cell=data["dataset"] + data["learner"] + data.pop("e").astype(str))
            minutes = data.assign(metric="training_minutes", hardware="Abacus", value=data["cell"].str.len() * 10.0)
            guess = data[data["cell"].str.endswith("1")].assign(metric="chance_final_accuracy", value=10.0)
            return kind, target | {"names": names}, pd.concat([data, minutes, guess])
        case "boundary_trace":
            traces = [2, 1, 3, 12, 6, 3, 30], [2, 1, 1, 9, 6, 3, 40]
            learners = [{"trace": {"mutual_information": trace, "tasks": [0, 3, 6]}} for trace in traces]
            seeds = [{"seed": seed, "learner": learner} for seed, learner in enumerate(learners)]
            factors = {"dataset": "emnist", "learner": "er"}
            data = boundary_detection.measure({}, [(factors, "abc", {"seeds": seeds})])
            return kind, {"names": {"time": "Epochs"}}, data
        case "uncertainty_grid":
            data = crossed(seed=range(3), time=[1.0, 2.0, 3.0, 4.0], task=range(1, 5))
            past = data["time"] - data["task"]
            data = data.assign(value=np.where(past < 0, 0.9 - 0.1 * data["seed"], 0.1 * past))
            data = data.assign(dataset="emnist", learner="er", metric="mutual_information_by_task")
            return kind, {"metrics": ["mutual_information_by_task"]}, data
        case "roc":
            data = crossed(learner=["er", "ace"], seed=range(2))
            of = [RATES[learner][seed] for learner, seed in data.itertuples(index=False)]
            area = data.assign(metric="seen_unseen_auc", value=[np.mean(heights[:-1]) for heights in of])
            curve = crossed(data.assign(metric="roc"), time=[0, 0.5, 1]).assign(value=np.concatenate(of))
            return kind, {"grid": EMNIST}, pd.concat([curve, area]).assign(dataset="emnist")
        case "schematic":
            data = pd.DataFrame({"chunk": [0, 0, 1, 1, 2], "class": [7, 0, 2, 5, 4], "task": 0, "value": 0.5})
            return kind, {"names": {"prior_focused": "Prior", "likelihood_focused": "Likelihood"}}, data
        case "diagram":
            data = pd.DataFrame(LAYERS, columns=["block", "layer", "output", "parameters"])
            data = data.assign(net="awa2", input="3×64×64", classes=50, total=3738)
            return kind, {"names": {"awa2": "Split AWA", "stage1": "stage 1"}}, data
        case "bursts":
            runs = [("split", c, c, 3 * c + i % 3, 5) for c in range(10) for i in range(12)]
            runs += [("instances", k, k * 7 % 10, 3 * (k * 7 % 10) + k % 3, 20) for k in range(30)]
            data = pd.DataFrame(runs, columns=["order", "chunk", "class", "instance", "value"])
            names = {"instances": "bursts", "category": "Category"}
            return kind, {"names": names}, data.assign(dataset="emnist", seed=0, metric="items")
        case "bars":
            target = {"metrics": ["final_accuracy", "training_seconds"], "grid": BOTH}
            seconds = learnt.assign(metric="training_seconds", value=learnt["value"] * 9)
            return kind, target, pd.concat([learnt, seconds])
        case "timestamps":
            data = pd.DataFrame({"position": range(40), "timestamp": np.sort(rng.random(40)), "beta": 2.0})
            data["class"] = rng.permutation(np.repeat([0, 1, 2], [13, 17, 10]))
            return kind, {"names": {"class 0": "Class 1"}}, data.assign(alpha=data["class"] + 0.5)
        case "class_frequency":
            data = crossed(order=["split", "stf"], seed=[0], time=(np.arange(20) + 0.5) / 20, c=range(10))
            data = data.assign(value=rng.dirichlet(np.ones(10), 40).ravel(), dataset="emnist")
            return kind, {"chunks": 20}, data.rename(columns={"c": "class"})
        case "prevalence" | "stream_loss":
            data = crossed(order=["split", "stf"], seed=[0, 1], time=np.linspace(0, 1, 30))
            return "stream_curves", {}, data.assign(value=rng.random(120), dataset="emnist", metric=kind)


KINDS = [
    *("dispersion", "class_frequency", "prevalence", "stream_loss", "timestamps", "sequence", "uncertainty_grid"),
    *("curves", "factor_curves", "cycles", "columns", "deviations", "scatter", "boundary_trace", "roc", "bars"),
    *("schematic", "diagram", "bursts"),
]


@pytest.fixture(params=KINDS)
def figure_case(request, learnt):
    """(render module's name, target, data) of every kind of figure."""
    return figure(request.param, learnt)
