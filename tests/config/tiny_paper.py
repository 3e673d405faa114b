"""A paper on toys, from which tests take something away or to which they add something."""

from pathlib import Path

import yaml

from clpapers.config.layers import merge
from clpapers.config.plan import Plan
from clpapers.config.settings import check_settings

ROOT = Path(__file__).parents[2]


PAPER, PRINTED, SCALE, SETTINGS, DATASETS, WEIGHTS = (
    "config/papers/tiny.yaml",
    "config/reported/tiny.csv",
    "config/scales/tiny.yaml",
    "config/config.yaml",
    "config/datasets.yaml",
    "config/weights.yaml",
)


TEXT = {
    PAPER: """\
paper: tiny
defaults:
  order: {name: stf, mu_sigma: 0.05, length: null}
  oracle: {name: none}
  restriction: {name: single_head}
  budget: {optimizer: sgd, learning_rate: 0.1, batch: 10, replay_batch: 10, memory: 10}
  scaling: symmetric
  evaluation: {points: 3, probes: 10, test: 20}
  precision: float32
datasets:
  mnist: {net: {name: mlp, hidden: [4]}}
  cifar10: {net: {name: cnn, width: 2}, learners: {ace: {cell: {budget: {memory: 7}}}}}
learners:
  er: {forward: separate}
  ace: {forward: separate}
targets:
  table1:
    title: Table 1
    caption: Both.
    section: "1"
    kind: table
    measure: learning
    render: results_table
    metrics: [final_accuracy]
    grid: {dataset: [mnist, cifar10], learner: [er, ace]}
  figure1:
    {title: Figure 1, caption: c, section: "2", kind: figure, measure: stream_classes, render: class_frequency,
     statistic: prevalence, chunks: 5, streams: [{dataset: toy-3-2, order: {name: split, tasks: 2}, seed: 0}]}
  table2:
    {title: Table 2, caption: c, section: "3", kind: table, measure: architecture, render: architecture_table,
     nets: [mnist]}
""",
    SCALE: """\
description: tiny
seeds: 0-3
seeds_per_job: 2
sources: stand_in
stand_ins:
  mnist: {train_per_class: 5, test_per_class: 2}
papers:
  tiny:
    datasets: {mnist: {order: {length: 30}}}
    targets: {figure1: {chunks: 4}}
""",
    SETTINGS: "scale: tiny\npapers: [tiny]\ndevice: cpu\ndata_folder: data\ndownloads: downloads\n",
}


REAL = "description: real\nseeds: 0-9\nseeds_per_job: auto\nsources: real\n"


def edit(file, old, new):
    text = Path(file).read_text()
    assert old in text, f"{file} holds no {old!r}"
    Path(file).write_text(text.replace(old, new, 1))


def printed(*lines):
    """Write down what the paper `tiny` prints."""
    Path(PRINTED).parent.mkdir(exist_ok=True)
    header = "paper,target,row,column,metric,value,spread,spread_kind,note"
    Path(PRINTED).write_text("".join(f"{line}\n" for line in (header, *lines)))


def plan(**options):
    return Plan("tiny", ["tiny"], **options)


def settings(**given):
    return check_settings(yaml.safe_load(TEXT[SETTINGS]) | given)


CELL = "targets.table1, cell dataset=mnist learner=er"


GRID = "learner: [er, ace]}"


COSTS = """\
  table7:
    {title: Table 7, caption: c, section: "4", kind: table, measure: cost, render: cost_table,
     metrics: [training_seconds], decimals: 2, ratios: [[er, ace]], grid: {dataset: [mnist], learner: [er, ace]},
     cell: {order: {name: split, tasks: 3}}}
"""


def hashes():
    return set(plan().cells)


ORACLES = {
    "none": {"name": "none"},
    "sp1": {"name": "split", "tasks": 1},
    "sp2": {"name": "split", "tasks": 2},
    "sp5": {"name": "split", "tasks": 5},
    "dom": {"name": "dominant_tasks", "shares": [0.2, 0.3, 0.5]},
    "rand": {"name": "random_tasks", "tasks": 4},
    "entropy": {"name": "entropy", "tasks": 2},
    "domains": {"name": "chunks"},
}


GR = {"latent": 2, "reconstruction": "bce", "generator_learning_rate": 0.1}


METHODS = {
    "er": {"forward": "separate"},
    "gmed": {"alpha": 1, "beta": 1, "decay": 0, "sign": "paper", "forward": "joint"},
    "single": {},
    "ewc": {"strength": 10, "gamma": 1, "fisher": "last_batch", "normalise": False, "half": True},
    "si": {"strength": 1, "damping": 1, "gradient": "whole", "clip": False},
    "icarl": {"loss": {"name": "binary", "temperature": 2}, "space": "features", "exemplars": "batch"},
    "gr": GR | {"new_share": "half"},
    "gr_by_tasks": GR | {"new_share": "by_tasks", "method": "gr"},
    "mm": {"method": "multi_model", "widths": {"1": 3, "2": 3, "3": 3, "4": 3, "5": 3}},
    "rand": {"method": "random"},
    "randmm": {"method": "random_multi_model"},
}


RANDOM, SPLIT = {"name": "random", "length": None}, {"name": "split", "tasks": 5, "length": None}


MIXING = [RANDOM, {"name": "offline", "items": 90, "length": None}, {"name": "dominant", "share": 0.5, "length": None}]


EVALUATED = ["sp2", "sp5", "dom", "rand"]


def write_grid(order, learners, defaults=(), evaluated=EVALUATED, without=(), **factors):
    """Let the paper be a grid on MNIST; its restrictions."""
    content = yaml.safe_load(TEXT[PAPER]) | {"oracles": ORACLES, "learners": METHODS}
    del content["datasets"]["cifar10"]
    content["defaults"] = merge(content["defaults"] | {"order": order, "scaling": "unit"}, dict(defaults))
    content["defaults"]["evaluation"]["oracles"] = evaluated
    restrictions = [{"name": name} for name in factors.pop("restriction", ["single_head"])]
    grid = {"dataset": ["mnist"], "learner": learners, **factors, "restriction": restrictions}
    content["targets"] = {"table1": content["targets"]["table1"] | {"grid": grid, "without": list(without)}}
    Path(PAPER).write_text(yaml.safe_dump(content, sort_keys=False))
    return restrictions


def cells(*arguments, **options):
    """The cells of a grid on MNIST, by the levels of its learner and its factors in the order given."""
    restrictions, found = write_grid(*arguments, **options), {}
    for levels, cell in Plan("real", ["tiny"]).targets["tiny/table1"].cells:
        _, *rest, restriction = levels.values()
        found[(*rest, restriction["name"]) if len(restrictions) > 1 else tuple(rest)] = cell
    return found


def distinct(found):
    return len({cell.hash for cell in found.values()})


SELECTION = """\
selection:
  use: cross_validated
  metric: final_accuracy
  seeds: 100-100
  datasets: {mnist: {order: {length: 20}}}
  grid:
    er: {budget.learning_rate: [0.1, 0.2], learner.forward: [separate, concatenated]}
targets:
"""


MNIST_ONLY = "grid: {dataset: [mnist], learner: [er, ace]}"
