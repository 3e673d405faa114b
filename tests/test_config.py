"""The grammar: what is wrong is refused in one telling line; what is right becomes cells, blocks and targets."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from clpapers.cli import main
from clpapers.config import (
    SELECTED,
    Cell,
    ConfigError,
    Plan,
    block_name,
    block_seeds,
    check_settings,
    fill,
    merge,
    read_yaml,
    reductions,
)
from clpapers.datasets.arrays import instances
from clpapers.metrics import cost, gradients, learning, streaming
from clpapers.metrics.inputs import inputs_of
from clpapers.metrics.trade_offs import MINUTES
from clpapers.streams.stream import load

ROOT = Path(__file__).parents[1]
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
  ace: {mask: present}
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


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a small configuration."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "workflow/schemas", "workflow/schemas")
    for name, text in TEXT.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    for file in (DATASETS, WEIGHTS):
        shutil.copy(ROOT / file, file)
    Path("config/scales/real.yaml").write_text(REAL)


def edit(file, old, new):
    text = Path(file).read_text()
    assert old in text, f"{file} holds no {old!r}"
    Path(file).write_text(text.replace(old, new, 1))


def printed(*lines):
    """Write down what the paper `tiny` prints."""
    Path(PRINTED).parent.mkdir()
    header = "paper,target,row,column,metric,value,spread,spread_kind,note"
    Path(PRINTED).write_text("".join(f"{line}\n" for line in (header, *lines)))


def plan(**options):
    return Plan("tiny", ["tiny"], **options)


def settings(**given):
    return check_settings(yaml.safe_load(TEXT[SETTINGS]) | given)


# --- refusals: where, what is replaced by what, the line -------------------------------------------------------

CELL = "targets.table1, cell dataset=mnist learner=er"
GRID = "learner: [er, ace]}"
REFUSED = [
    # keys and values of a cell
    (PAPER, "memory: 10", "memroy: 10", "defaults.budget: unknown key 'memroy'; allowed: batch, learning_rate, memory, "
     "optimizer, replay_batch"),
    (PAPER, "memory: 10", "memory: -10", "defaults.budget.memory: -10 must be at least 1"),
    (PAPER, "memory: 10", "memory: 0", "defaults.budget.memory: 0 must be at least 1"),
    (PAPER, "memory: 10", "memory: 1.5", "defaults.budget.memory: 1.5 is not of type integer"),
    (PAPER, "memory: 10", "memory: ten", "defaults.budget.memory: 'ten' is not of type integer"),
    (PAPER, "memory: 10", "memory: true", "defaults.budget.memory: True is not of type integer"),
    (PAPER, "batch: 10,", "batch: 0,", "defaults.budget.batch: 0 must be at least 1"),
    (PAPER, "batch: 10,", "batch: tasks,", "defaults.budget.batch: 'tasks' must have the form ^task$"),
    (PAPER, "batch: 10, replay", "replay", f"{CELL}: budget needs a value for 'batch'"),
    (PAPER, ", memory: 10", "", f"{CELL}: budget needs a value for 'memory'"),
    (PAPER, "learning_rate: 0.1", "learning_rate: 1e-3", "defaults.budget.learning_rate: '1e-3' is not of type number; "
     "YAML reads 1e-3 as text, write 1.0e-3"),
    (PAPER, "learning_rate: 0.1", "learning_rate: 0", "defaults.budget.learning_rate: 0 must be greater than 0"),
    (PAPER, "learning_rate: 0.1", "learning_rate: .nan", "line 6 .nan is not a finite number"),
    (PAPER, "learning_rate: 0.1", "learning_rate: .inf", "line 6 .inf is not a finite number"),
    (PAPER, "precision: float32", "precision: float16", "defaults.precision: 'float16' is not one of float32, tf32, "
     "float64"),
    (PAPER, "  precision: float32\n", "", f"{CELL}: 'precision' is missing"),
    # orders
    (PAPER, "name: stf, mu_sigma: 0.05", "name: stff", "defaults.order.name: 'stff' is not one of stf, split, "
     "split_two, split_ordered, split_range, split_overlapping, dominant, random, offline, permuted_pixels, instances"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: instances", f"{CELL}: order instances needs a value for 'burst'"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: instances, burst: 0", "defaults.order.burst: 0 must be at least 1"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: instances, burst: null", f"{CELL}: order instances: mnist has none "
     "recorded, as icubworld or icubworld_demonstrator or "),
    (PAPER, "{name: split, tasks: 2}", "{name: instances, burst: null}", "targets.figure1.streams[0]: order instances: "
     "toy-3-2 has none recorded, as icubworld or icubworld_demonstrator or "),
    (PAPER, "mu_sigma: 0.05", "mu_sigma: 0.5", "defaults.order.mu_sigma: 0.5 must be less than 0.5"),
    (PAPER, "mu_sigma: 0.05", "mu_sigma: 0", "defaults.order.mu_sigma: 0 must be greater than 0"),
    (PAPER, "mu_sigma: 0.05", "mu_sigma: -0.1", "defaults.order.mu_sigma: -0.1 must be greater than 0"),
    (PAPER, "mu_sigma: 0.05", "mu_sigma: 0.05, mu_sigma_factor: 10", f"{CELL}: order.mu_sigma_factor 10 gives mu_sigma "
     "0.5; it must be less than 0.5"),
    (PAPER, "mu_sigma: 0.05", "mu_sigma: 0.05, mu_sigma_factor: 0", "defaults.order.mu_sigma_factor: 0 must be greater "
     "than 0"),
    (PAPER, "mu_sigma: 0.05, ", "", f"{CELL}: order stf needs a value for 'mu_sigma'"),
    (PAPER, "mu_sigma: 0.05", "mu_sigma: 0.05, tasks: 2", f"{CELL}: order stf takes no 'tasks'; it takes length, "
     "mu_sigma"),
    (PAPER, "length: null", "length: all", "defaults.order.length: 'all' is not of type integer or null"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: dominant", f"{CELL}: order dominant needs a value for 'share'"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: dominant, share: 1", "defaults.order.share: 1 must be less than 1"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: offline, items: 0", "defaults.order.items: 0 must be at least 1"),
    (PAPER, "mu_sigma: 0.05", "mu_sigma: 0.05, epochs: 2", f"{CELL}: order stf takes no 'epochs'; it takes length, "
     "mu_sigma"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split, tasks: 5, epochs: 0", "defaults.order.epochs: 0 must be at "
     "least 1"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split_overlapping, first: 0, last: 9, tasks: 5", f"{CELL}: order "
     "split_overlapping needs a value for 'per_task'"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split_overlapping, first: 0, last: 9, tasks: 5, per_task: 0",
     "defaults.order.per_task: 0 must be at least 1"),
    (PAPER, "mu_sigma: 0.05", "mu_sigma: 0.05, cycles: 2", f"{CELL}: order stf takes no 'cycles'; it takes length, "
     "mu_sigma"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split_ordered, tasks: 5, cycles: 0", "defaults.order.cycles: 0 must be "
     "at least 1"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split_ordered, cycles: 5", f"{CELL}: order split_ordered needs a value "
     "for 'tasks'"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split_ordered, tasks: 5, unpermuted_first: true", f"{CELL}: order "
     "split_ordered takes no 'unpermuted_first'; it takes cycles, epochs, length, tasks"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: permuted_pixels, tasks: 5, unpermuted_first: 1",
     "defaults.order.unpermuted_first: 1 is not of type boolean"),
    # oracles and restrictions
    (PAPER, "oracle: {name: none}", "oracle: sp9", f"{CELL}: oracle: 'sp9' is not one of none"),
    (PAPER, "oracle: {name: none}", "oracle: {name: split}", f"{CELL}: oracle split needs a value for 'tasks'"),
    (PAPER, "oracle: {name: none}", "oracle: {name: none, tasks: 2}", f"{CELL}: oracle none takes no 'tasks'; "
     "it takes "),
    (PAPER, "oracle: {name: none}", "oracle: {name: split, tasks: 11}", f"{CELL}: oracle.tasks: 11 is more than the 10 "
     "classes"),
    (PAPER, "oracle: {name: none}", "oracle: {name: dominant_tasks, shares: [0.2, 0.3]}", f"{CELL}: oracle: shares "
     "[0.2, 0.3] sum to 0.5, not to 1"),
    (PAPER, "oracle: {name: none}", "oracle: {name: dominant_tasks}", f"{CELL}: oracle dominant_tasks needs a value "
     "for 'shares'"),
    (PAPER, "name: single_head", "name: ess", "defaults.restriction.name: 'ess' is not one of single_head, es, es_ed, "
     "ea, td, td_es, td_es_ed"),
    (PAPER, "name: single_head", "name: td_es", f"{CELL}: restriction td_es needs an order of split or "
     "split_two or split_range or split_overlapping or split_ordered"),
    (PAPER, "restriction: {name: single_head}", "restriction: {}", "defaults.restriction: 'name' is missing"),
    (PAPER, "paper: tiny\n", "paper: tiny\noracles: {sp2: {name: splitt}}\n", "oracles.sp2.name: 'splitt' is not one "
     "of none, split, dominant_tasks, random_tasks, chunks, entropy"),
    (PAPER, "test: 20", "test: 20, oracles: [sp9]", f"{CELL}: oracle: 'sp9' is not one of none"),
    (PAPER, "test: 20", "test: 20, oracles: sp9", "defaults.evaluation.oracles: 'sp9' is not of type array"),
    # learners and nets
    (PAPER, "er: {forward: separate}", "mirr: {}", "learners.mirr.method: 'mirr' is not one of er, mir, cbrs, gdumb, "),
    (PAPER, "er: {forward: separate}", "er: {method: s_gem, write: ring, cell: {order: {name: split, tasks: 5, "
     "cycles: 2}}}", f"{CELL}: order.cycles: learner s_gem needs tasks that come once; leave it out"),
    (PAPER, "er: {forward: separate}", "er: {}", f"{CELL}: learner er needs a value for 'forward'"),
    (PAPER, "forward: separate", "forward: twice", "learners.er.forward: 'twice' is not one of separate, concatenated"),
    (PAPER, "forward: separate", "mask: present", "learners.er: unknown key 'mask'; allowed: cell, forward, method"),
    (PAPER, "learners: {ace: {cell", "learners: {aec: {cell", "datasets.cifar10.learners.aec: 'aec' is not one of er, "
     "ace"),
    (PAPER, "name: mlp, hidden: [4]", "name: mlp", "datasets.mnist: net mlp needs a value for 'hidden'"),
    (PAPER, "name: mlp, hidden: [4]", "name: mpl", "datasets.mnist.net.name: 'mpl' is not one of mlp, cnn, "
     "resnet18_reduced, resnet18, exstream_mlp"),
    (PAPER, "hidden: [4]", "hidden: [4], width: 2", "datasets.mnist: net mlp takes no 'width'; it takes hidden, init"),
    (PAPER, "hidden: [4]", "hidden: 4", "datasets.mnist.net.hidden: 4 is not of type array"),
    (PAPER, "name: cnn, width: 2", "name: resnet18_reduced, width: 2, head: joint_embedding", "datasets.cifar10: "
     "net.head joint_embedding: it needs attributes, which only cub200 or awa2 has"),
    (PAPER, "name: cnn, width: 2", "name: resnet18, width: 2, pool: true, head: linear", "datasets.cifar10: net "
     "resnet18 needs a value for 'weights'"),
    (PAPER, "name: cnn, width: 2", "name: resnet18, width: 2, pool: 3, head: linear, weights: none",
     "datasets.cifar10.net.pool: 3 is not of type boolean"),
    (PAPER, "name: cnn, width: 2", "name: resnet18, width: 2, pool: true, head: linear, weights: imagenet",
     "datasets.cifar10: net.weights imagenet needs width 64, not 2; or write weights: none"),
    (PAPER, "name: mlp, hidden: [4]", "name: resnet18, width: 64, pool: true, head: linear, weights: imagenet",
     "datasets.mnist: net.weights imagenet needs channels 3, not 1; or write weights: none"),
    (PAPER, GRID, GRID + "\n    cell: {net: {name: resnet18, width: 8, pool: true, head: linear, weights: imagenet}}",
     f"{CELL}: net.weights imagenet needs width 64, not 8; or write weights: none"),
    (PAPER, "scaling: symmetric", "scaling: imagenet", f"{CELL}: scaling imagenet: it needs 3 channels, mnist has 1"),
    (PAPER, GRID, GRID + "\n    cell: {scaling: centred, order: {name: permuted_pixels, tasks: 2}}",
     f"{CELL}: scaling centred: not with permuted_pixels; take unit or symmetric"),
    # data sets, grids and streams
    (PAPER, "  cifar10: {net", "  cifra10: {net", "datasets: 'cifra10' is not one of mnist, fashion_mnist, emnist, "),
    (PAPER, "dataset: [mnist, ", "dataset: [mnits, ", "targets.table1.grid.dataset[0]: 'mnits' is not one of mnist, "
     "cifar10"),
    (PAPER, GRID, "learner: [er, mir]}", "targets.table1.grid.learner[1]: 'mir' is not one of er, ace"),
    (PAPER, GRID, "learner: [er, [ace]]}", "targets.table1.grid.learner[1]: ['ace'] is not one of er, ace"),
    (PAPER, GRID, "learner: er}", "targets.table1.grid.learner: 'er' is not of type array"),
    (PAPER, ", " + GRID, "}", "targets.table1.grid: 'learner' is missing; a cell needs a dataset and a learner"),
    (PAPER, GRID, GRID[:-1] + ", order.mu_sigma_factor: [1, 12]}", "targets.table1, cell dataset=mnist learner=er "
     "order.mu_sigma_factor=12: order.mu_sigma_factor 12 gives mu_sigma 0.6; it must be less than 0.5"),
    (PAPER, GRID, GRID[:-1] + ", budget.memory: [5, -5]}", "targets.table1.grid.budget.memory[1]: budget.memory: -5 "
     "must be at least 1"),
    (PAPER, GRID, GRID[:-1] + ", budget.memroy: [5]}", "targets.table1.grid.budget.memroy[0]: budget: unknown key "
     "'memroy'; allowed: batch, learning_rate, memory, optimizer, replay_batch"),
    (PAPER, GRID, GRID[:-1] + ", learner.alpha: [1]}", "targets.table1.grid.learner.alpha: none of er, ace takes it"),
    (PAPER, GRID, GRID[:-1] + ", learner.cell.net: [1]}", "targets.table1.grid.learner.cell.net: none of er, ace "
     "takes it"),
    (PAPER, GRID, GRID[:-1] + ", learner.mask: [present, absent]}", "targets.table1.grid.learner.mask: 'absent' is not "
     "one of present"),
    (PAPER, GRID, GRID + "\n    without: [{learner: [mir]}]", "targets.table1.without[0].learner: 'mir' is not in "
     "the grid"),
    (PAPER, GRID, GRID + "\n    without: [{learner: [er]}, {oracle: [sp2]}]", "targets.table1.without[1].oracle: 'sp2' "
     "is not in the grid"),
    (PAPER, GRID, GRID + "\n    undefined: {forgetting: [er]}", "targets.table1.undefined: 'forgetting' is not one of "
     "final_accuracy"),
    (PAPER, GRID, GRID + "\n    undefined: {final_accuracy: [mir]}", "targets.table1.undefined.final_accuracy: "
     "'mir' is not one of er, ace"),
    (PAPER, GRID, GRID + "\n    undefined: {final_acuracy: [er]}", "targets.table1.undefined: 'final_acuracy' is not "
     "one of final_accuracy, "),
    (PAPER, "toy-3-2", "toy-3-0", "targets.figure1.streams[0].dataset: 'toy-3-0' is not one of mnist, cifar10"),
    (PAPER, ", seed: 0}", "}", "targets.figure1.streams[0]: 'seed' is missing"),
    (PAPER, "nets: [mnist]", "nets: [mnits]", "targets.table2.nets[0]: 'mnits' is not one of mnist, cifar10"),
    (PAPER, "nets: [mnist]", "nets: [mnist-mir]", "targets.table2.nets[0]: 'mir' is not one of er, ace"),
    (PAPER, "kind: table, measure: architecture, render: architecture_table", "kind: figure, measure: architecture, "
     "render: diagram", "targets.table2.nets[0]: 'mnist' has no head joint_embedding; write <data set>-<learner> for a "
     "learner whose net has one"),
    # targets
    (PAPER, "title: Table 1", "titel: Table 1", "targets.table1: unknown key 'titel'; allowed: "),
    (PAPER, "    kind: table\n", "", "targets.table1: 'kind' is missing"),
    (PAPER, "kind: table\n", "kind: tabel\n", "targets.table1.kind: 'tabel' is not one of table, figure"),
    (PAPER, "measure: learning", "measure: intervals", "targets.table1.measure: 'intervals' is not one of "
     "architecture, "),
    (PAPER, "render: results_table", "render: style", "targets.table1.render: 'style' is not one of "),
    (PAPER, "[final_accuracy]", "[final_acuracy]", "targets.table1.metrics[0]: 'final_acuracy' is not one of "
     "final_accuracy, "),
    (PAPER, "    metrics: [final_accuracy]\n", "", "targets.table1: 'metrics' is missing"),
    (PAPER, "statistic: prevalence, ", "", "targets.figure1: 'statistic' is missing"),
    (PAPER, "measure: stream_classes", "measure: stream_statistics", "targets.figure1.streams[0].dataset: 'toy-3-2' "
     "must have the form ^(?!toy-)"),
    (PAPER, "caption: Both.", "seeds: 3-1", "targets.table1: 'caption' is missing"),
    (PAPER, "section: \"1\"", "section: \"1\"\n    seeds: 3-1", "targets.table1.seeds: '3-1' holds no seed; write "
     "first-last, first not above last"),
    # files as such
    (PAPER, "learners:\n", "lerners:\n", "(top): unknown key 'lerners'; allowed: datasets, defaults, learners, "
     "oracles, paper, seeds, selection, targets, title"),
    (PAPER, "title: Table 1\n", "title: Table 1\n    title: Table I\n", "line 19 key 'title' stands twice"),
    (PAPER, "defaults:\n", "defaults: [\n", "line 4 did not find expected ',' or ']'"),
    (PAPER, "defaults:\n", "defaults:\n\tx: 1\n", "line 3 found character that cannot start any token"),
    (PAPER, TEXT[PAPER], "- a list", "holds no keys; expected a mapping"),
    (PAPER, TEXT[PAPER], "", "holds no keys; expected a mapping"),
    # the seeds of a paper
    (PAPER, "paper: tiny\n", "paper: tiny\nseeds: 3-1\n", "seeds: '3-1' holds no seed; write first-last, first not "
     "above last"),
    (PAPER, "paper: tiny\n", "paper: tiny\nseeds: 3\n", "seeds: 3 is not of type string"),
    # scales
    (SCALE, "seeds: 0-3", "seeds: 3-1", "seeds: '3-1' holds no seed; write first-last, first not above last"),
    (SCALE, "seeds: 0-3", "seeds: 3", "seeds: 3 is not of type string"),
    (SCALE, "seeds: 0-3", "seeds: '0'", r"seeds: '0' must have the form ^[0-9]{1,9}-[0-9]{1,9}$"),
    (SCALE, "seeds: 0-3", "seeds: a-b", r"seeds: 'a-b' must have the form ^[0-9]{1,9}-[0-9]{1,9}$"),
    (SCALE, "seeds: 0-3", "seeds: 0--3", r"seeds: '0--3' must have the form ^[0-9]{1,9}-[0-9]{1,9}$"),
    (SCALE, "seeds: 0-3\n", "", "(top): 'seeds' is missing"),
    (SCALE, "seeds_per_job: 2", "seeds_per_job: 0", "seeds_per_job: 0 must be at least 1"),
    (SCALE, "seeds_per_job: 2", "seeds_per_job: all", "seeds_per_job: 'all' must have the form ^auto$"),
    (SCALE, "sources: stand_in", "sources: fake", "sources: 'fake' is not one of real, any, stand_in"),
    (SCALE, "  mnist: {train", "  mnits: {train", "stand_ins: 'mnits' is not one of mnist, fashion_mnist, emnist, "),
    (SCALE, "train_per_class: 5", "train_per_class: 0", "stand_ins.mnist.train_per_class: 0 must be at least 1"),
    (SCALE, "  tiny:\n", "  tyni:\n", "papers: 'tyni' has no file in config/papers/"),
    (SCALE, "figure1: {", "figure9: {", "papers.tiny.targets: 'figure9' is not one of table1, figure1, table2"),
    (SCALE, "{mnist: {order", "{mnits: {order", "papers.tiny.datasets: 'mnits' is not one of mnist, cifar10"),
    (SCALE, "length: 30", "lenght: 30", "papers.tiny.datasets.mnist.order: unknown key 'lenght'; allowed: burst, "
     "cycles, epochs, first, items, last, length, mu_sigma, mu_sigma_factor, name, per_task, share, tasks, "
     "unpermuted_first"),
    (SCALE, "chunks: 4", "chunks: four", "papers.tiny.targets.figure1.chunks: 'four' is not of type integer"),
    (SCALE, "    targets:", "    learners: {er: {mask: present}}\n    targets:", "papers.tiny.learners.er: unknown key "
     "'mask'; allowed: cell, forward, method"),
    # data sets
    (DATASETS, "  train: 60000", "  train: -1", "mnist.train: -1 must be at least 1"),
    (DATASETS, "      formats: [idx]", "      formats: [xdi]", "mnist.sources[0].formats[0]: 'xdi' is not one of "
     "awa2, cifar_python, "),
    # data sets of features
    (DATASETS, "of: cifar100,", "of: cifar1000,", "cifar100_resnet50.features.of: 'cifar1000' is not one of mnist, "),
    (DATASETS, "of: cifar100,", "of: cifar100_resnet50,", "cifar100_resnet50.features.of: 'cifar100_resnet50' is not "
     "one of mnist, "),
    (DATASETS, "of: cifar100,", "of: mnist,", "cifar100_resnet50.features.of: mnist has 1 channels; take one of 3"),
    (DATASETS, "seal, whale]", "whale]", "cifar100_resnet50.categories: 'seal' must be a class of cifar100 that stands "
     "in one category"),
    (DATASETS, "[aquarium_fish, flat", "[whale, aquarium_fish, flat", "cifar100_resnet50.categories: 'whale' must be a "
     "class of cifar100 that stands in one category"),
    (DATASETS, "[aquarium_fish, flat", "[cod, aquarium_fish, flat", "cifar100_resnet50.categories: 'cod' must be a "
     "class of cifar100 that stands in one category"),
    (DATASETS, "weights: resnet50_imagenet", "weights: resnet50_places", "icubworld_resnet50.features.weights: "
     "'resnet50_places' is not one of resnet50_imagenet"),
    (SCALE, "  mnist: {train", "  cifar100_resnet50: {train", "stand_ins: 'cifar100_resnet50' is not one of mnist, "),
    (SCALE, "stand_ins:", "features: {size: 31}\nstand_ins:", "features.size: 31 must be at least 32"),
    (SCALE, "stand_ins:", "features: {of: mnist}\nstand_ins:", "features: unknown key 'of'; allowed: size, "
     "test_per_class, train_per_instance"),
    (DATASETS, "{of: icubworld, weights: resnet50_imagenet, size: 224}", "{of: cifar10, weights: resnet50_imagenet, "
     "size: 224, train_per_instance: 5}", "icubworld_resnet50.features.train_per_instance: cifar10 has no instances; "
     "leave it out"),
    # what would only fail when it is run
    (PAPER, "memory: 10", "memory: 10.0", "defaults.budget.memory: 10.0 is not of type integer"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split, tasks: 11", f"{CELL}: order split: tasks: 11 is more than the "
     "10 classes"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split_range, first: 5, last: 10, tasks: 2", f"{CELL}: order "
     "split_range: 5 to 10 are not among the 10 classes"),
    (PAPER, "name: stf, mu_sigma: 0.05", "name: split_overlapping, first: 5, last: 9, tasks: 2, per_task: 6",
     f"{CELL}: order split_overlapping: per_task: 6 is more than the 5 classes"),
    (PAPER, "length: null", "length: 50001", "targets.table1, cell dataset=cifar10 learner=er: order.length: 50001 is "
     "more than the 50000 items"),
    (PAPER, "er: {forward: separate}", "er: {method: s_gem, write: ring, cell: {budget: {memory: 9}}}", f"{CELL}: "
     "budget.memory: 9 is fewer than one item for each class of each task; take 10 or more"),
    (PAPER, "er: {forward: separate}", "er: {method: prog_nn}", "targets.table1, cell dataset=cifar10 learner=er: "
     "learner prog_nn needs net.name mlp or resnet18_reduced or resnet18, not cnn"),
    (PAPER, "er: {forward: separate}", "er: {method: multi_model, widths: {'2': 3}}", f"{CELL}: learner.widths: 1 "
     "models are not among 2"),
    (PAPER, "  cifar10: {net: {name", "  icubworld_resnet50: {net: {name", "datasets.icubworld_resnet50: net.name cnn: "
     "icubworld_resnet50 has features; take mlp or exstream_mlp"),
    (PAPER, "nets: [mnist]", "nets: ['']", "targets.table2.nets[0]: '' is not one of mnist, cifar10"),
    (PAPER, "nets: [mnist]", "nets: [mnist-]", "targets.table2.nets[0]: '' is not one of er, ace"),
    (PAPER, "kind: table\n", "kind: figure\n", "targets.table1.kind: render results_table draws no figure"),
    (PAPER, GRID, GRID + "\n    rows: learnr", "targets.table1.rows: 'learnr' is not a factor of the grid: dataset, "
     "learner"),
    (PAPER, GRID, GRID + "\n    per_class: [mnits]", "targets.table1.per_class: 'mnits' is not one of mnist, cifar10"),
    (PAPER, "  table1:\n", "  table 1:\n", r"targets: 'table 1' must have the form ^\w+$"),
    (PAPER, "  table1:\n", "  ../table1:\n", r"targets: '../table1' must have the form ^\w+$"),
    (PAPER, "paper: tiny\n", "paper: tyni\n", "paper: 'tyni' is not the file's name, tiny"),
    (SCALE, "length: 30", "length: 60001", f"papers.tiny: {CELL}: order.length: 60001 is more than the 60000 items"),
    (SCALE, "seeds: 0-3", "seeds: 0-1000", "seeds: '0-1000' holds 1001 seeds; take at most 1000"),
    # YAML that is more than JSON, or more than memory holds
    (PAPER, "memory: 10", "memory: 0x_", "line 6 '0x_' is not of type int"),
    (PAPER, "memory: 10", "memory: 99999999999", "line 6 '99999999999' is beyond ±2147483647"),
    (PAPER, "paper: tiny\n", "paper: tiny\n1: 2\n", "line 2 key '1' is not text; write it in quotes"),
    (PAPER, "paper: tiny\n", 'paper: tiny\n"a\\nb": 2\n', r"line 2 key 'a\nb' is not a line of text"),
    (PAPER, "paper: tiny\n", "paper: !!python/name:os.system\n", "line 1 could not determine a constructor for the "
     "tag 'tag:yaml.org,2002:python/name:os.system'"),
    (PAPER, "paper: tiny\n", "paper: &a [*a]\n", "line 1 found unconstructable recursive node"),
    (PAPER, "paper: tiny\n", f"paper: {'[' * 100}\n", "line 1 nests deeper than 30 levels"),
    (PAPER, "paper: tiny\n", "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9 * (i > 0)} 1]\n" for i in range(7)), "line 6 "
     "holds more than 50000 values, aliases counted as what they stand for"),
    # pre-trained weights
    (WEIGHTS, "width: 64", "width: 0", "resnet18_imagenet.width: 0 must be at least 1"),
    (WEIGHTS, "kind: standin", "kind: stand_in", "resnet18_imagenet.sources[2].kind: 'stand_in' is not one of folder, "
     "torchvision, npm, standin"),
]  # fmt: skip


def test_events_are_part_of_a_cell_only_where_they_are_asked_for():
    without = plan().cells
    assert not any("every" in cell.spec["evaluation"] for cell in without.values())
    edit(PAPER, "test: 20", "test: 20, every: 5")
    asked = plan().cells
    assert {cell.spec["evaluation"]["every"] for cell in asked.values()} == {5}
    assert len(asked) == len(without)
    assert not set(asked) & set(without)


@pytest.mark.parametrize(("file", "old", "new", "line"), REFUSED)
def test_what_is_wrong_is_refused_in_one_line(file, old, new, line):
    plan()
    edit(file, old, new)
    with pytest.raises(ConfigError) as refusal:
        plan()
    told = str(refusal.value)
    assert "\n" not in told
    assert told.startswith(f"{file}: {line}")
    assert told == f"{file}: {line}" or line.endswith(" ")  # a line that ends in a blank goes on with what there is


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["tiny,tabel1,ER,MNIST,x,80,,,"], "line 2.target: 'tabel1' is not one of table1, figure1, table2"),
        (["tyni,table1,ER,MNIST,final_accuracy,80,,,"], "line 2.paper: 'tyni' is not one of tiny"),
        (["tiny,table1,ER,MNIST,final_accuracy,80,,"], "line 2 does not have 9 columns; quote what holds a comma"),
        (["tiny,table1,E,R,MNIST,final_accuracy,80,,,"], "line 2 does not have 9 columns; quote what holds a comma"),
        (["tiny,table1,ER,MNIST,final_accuracy,8O,,,"], "line 2.value: '8O' must have the form "),
        (["tiny,table1,ER,MNIST,final_accuracy,80,1,spread_1_runs,"], "line 2.spread_kind: 'spread_1_runs' must have "),
        (["tiny,table1,ER,MNIST,final_accuracy,80,-1,spread_9_runs,"], "line 2.spread: '-1' must have the form "),
        (["tiny,table1,ER,MNIST,final_accuracy,80,,,"] * 2, "line 3 is of the same target, row, column and metric as "
         "line 2"),
        (['tiny,table1,"ER,MNIST,final_accuracy,80,,,'], "line 2: unexpected end of data"),
    ],
)  # fmt: skip
def test_a_wrong_line_of_a_transcription_is_refused_before_anything_starts(lines, told):
    printed(*lines)
    with pytest.raises(ConfigError) as refusal:
        plan()
    assert str(refusal.value).startswith(f"{PRINTED}: {told}")


def test_a_transcription_without_its_first_line_is_refused():
    printed()
    Path(PRINTED).write_text("paper,target\n")
    with pytest.raises(ConfigError, match=f"^{PRINTED}: line 1 is not paper,target,row,column,metric,value,spread,"):
        plan()


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"scale": "tyni"}, "scale: 'tyni' is not one of real, tiny"),
        ({"scale": 3}, "scale: 3 is not of type string"),
        ({"papers": ["tyni"]}, "papers: 'tyni' is not one of tiny"),
        ({"papers": "tiny"}, "papers: 'tiny' is not of type array"),
        ({"papers": []}, "papers: [] needs at least this many entries: 1"),
        ({"device": "tpu"}, "device: 'tpu' is not one of auto, cpu, cuda"),
        ({"sclae": "tiny"}, "(top): unknown key 'sclae'; allowed: data_folder, device, downloads, papers, scale"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(given, line):
    with pytest.raises(ConfigError) as refusal:
        settings(**given)
    assert str(refusal.value) == f"config/config.yaml or --config: {line}"


def test_weights_without_an_entry_are_refused():
    edit(WEIGHTS, "resnet18_imagenet:", "resnet18_places:")
    edit(PAPER, "name: cnn, width: 2", "name: resnet18, width: 64, pool: true, head: linear, weights: imagenet")
    with pytest.raises(ConfigError) as refusal:
        plan()
    line = "datasets.cifar10: net.weights: 'resnet18_imagenet' is not one of resnet18_places, resnet50_imagenet"
    assert str(refusal.value) == f"{PAPER}: {line}"


def test_a_cell_names_the_weights_that_its_net_starts_from():
    edit(PAPER, "name: cnn, width: 2", "name: resnet18, width: 64, pool: true, head: linear, weights: imagenet")
    found = {cell.spec["dataset"]: cell.weights for cell in plan().cells.values()}
    assert found == {"mnist": None, "cifar10": Path("results/tiny/weights/resnet18_imagenet.npz")}


def test_a_data_set_of_features_is_described_by_what_it_is_made_of():
    edit(SCALE, "stand_ins:", "features: {size: 40}\nstand_ins:")
    edit(
        PAPER,
        "mnist: {net: {name: mlp, hidden: [4]}}",
        "cifar100_resnet50: {net: {name: mlp, hidden: [4]}, scaling: none}",
    )
    for file in (PAPER, SCALE):
        Path(file).write_text(
            Path(file)
            .read_text()
            .replace("[mnist", "[cifar100_resnet50")
            .replace("datasets: {mnist:", "datasets: {cifar100_resnet50:")
        )
    mine, real = plan(), Plan("real", ["tiny"])
    facts = mine.datasets["cifar100_resnet50"]
    assert (facts["shape"], len(facts["classes"]), facts["instances"]) == ([1, 1, 2048], 20, 5)
    assert (facts["train"], facts["test"]) == (6_000, 2_000)
    cells = [cell for cell in mine.cells.values() if cell.spec["dataset"] == "cifar100_resnet50"]
    assert [cell.spec["features"]["size"] for cell in cells] == [40, 40]
    assert not any("features" in cell.spec for cell in mine.cells.values() if cell not in cells)
    told = reductions(mine.targets["tiny/table1"], real.targets["tiny/table1"])
    assert told == ["order.length 30 (paper: all)", "features.size 40 (paper: 224)"]


def test_features_are_scaled_no_further():
    edit(PAPER, "  mnist: {net", "  cifar100_resnet50: {net")
    for file in (PAPER, SCALE):
        Path(file).write_text(
            Path(file).read_text().replace("[mnist", "[cifar100_resnet50").replace("{mnist:", "{cifar100_resnet50:")
        )
    with pytest.raises(ConfigError) as refusal:
        plan()
    where = f"{PAPER}: targets.table1, cell dataset=cifar100_resnet50 learner=er"
    assert str(refusal.value) == f"{where}: scaling symmetric: cifar100_resnet50 has features; take none"


def test_a_setting_given_twice_is_refused_which_snakemake_would_let_pass():
    assert settings()["scale"] == "tiny"
    edit(SETTINGS, "scale: tiny\n", "scale: tiny\nscale: real\n")
    with pytest.raises(ConfigError, match=r"^config/config\.yaml: line 2 key 'scale' stands twice$"):
        settings()


@pytest.mark.parametrize(
    ("scale", "paper", "line"),
    [
        ("tyni", "tiny", "config/scales/tyni.yaml: no such file; there are: real, tiny"),
        ("tiny", "tyni", "config/papers/tyni.yaml: no such file; there are: tiny"),
    ],
)
def test_a_missing_file_is_told_with_those_there_are(scale, paper, line):
    with pytest.raises(ConfigError) as refusal:
        Plan(scale, [paper])
    assert str(refusal.value) == line


def test_a_file_that_is_not_utf8_is_refused():
    Path(PAPER).write_bytes(b"title: \xff\xfe")
    with pytest.raises(ConfigError, match=r"^config/papers/tiny\.yaml: .*invalid start byte"):
        read_yaml(Path(PAPER))


def test_the_schema_knows_every_metric():
    known = yaml.safe_load((ROOT / "workflow/schemas/paper.schema.yaml").read_text())["$defs"]["metric"]["enum"]
    assert {
        *learning.SCALARS,
        *learning.CURVES,
        *learning.GRIDS,
        *cost.METRICS,
        *gradients.METRICS,
        *streaming.METRICS,
        MINUTES,
        "entropy_captured",
    } == set(known)


COSTS = """\
  table7:
    {title: Table 7, caption: c, section: "4", kind: table, measure: cost, render: cost_table,
     metrics: [training_seconds], decimals: 2, ratios: [[er, ace]], grid: {dataset: [mnist], learner: [er, ace]},
     cell: {order: {name: split, tasks: 3}}}
"""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("[[er, ace]]", "[[er, gem]]", "targets.table7.ratios[0]: 'gem' is not in the grid"),
        ("[[er, ace]]", "[[er]]", "targets.table7.ratios[0]: ['er'] needs at least this many entries: 2"),
        (", ratios: [[er, ace]]", "", "targets.table7: 'ratios' is missing"),
        ("decimals: 2", "decimals: {lca10: 2}", "targets.table7.decimals: {'lca10': 2} is not of type integer"),
        ("tasks: 3}", "tasks: 3}, budget: {batch: task}", "targets.table7: measure cost needs a number for "
         "budget.batch, not task"),
        ("split, tasks: 3", "random", "targets.table7: measure cost needs orders of tasks, not random"),
        ("[training_seconds]", "[lca10]", "targets.table7.metrics[0]: 'lca10' is not one of training_seconds, "
         "training_memory, testing_memory"),
        ("measure: cost", "measure: learning", "targets.table7.metrics[0]: 'training_seconds' is what another measure "
         "takes"),
    ],
)  # fmt: skip
def test_costs_that_cannot_be_measured_are_refused_in_one_line(old, new, line):
    Path(PAPER).write_text(TEXT[PAPER] + COSTS)
    plan()
    edit(PAPER, old, new)
    with pytest.raises(ConfigError) as refusal:
        plan()
    assert str(refusal.value) == f"{PAPER}: {line}"


def test_results_are_read_with_what_stands_beside_them_though_a_seed_did_not_fit():
    Path(PAPER).write_text(TEXT[PAPER] + COSTS)
    here = plan()
    table = here.targets["tiny/table7"]
    files, inputs = inputs_of(here, table)
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        seeds = [{"seed": 0, "test": {"none": {"total": [1]}}}, {"seed": 1, "out_of_memory": True}]
        file.write_text(json.dumps({"name": file.name, "seeds": seeds}))
    factors, key, result, record, net = next(inputs())
    assert (factors["learner"], key) == ("er", table.cells[0][1].hash)
    assert result["seeds"] == [{"seed": 0, "test": {"total": [1]}}, {"seed": 1, "out_of_memory": True}]
    assert (record["name"], net["name"]) == ("seeds0-1.record.json", "mnist.json")


def test_costs_are_measured_from_results_their_records_and_nets():
    Path(PAPER).write_text(TEXT[PAPER] + COSTS)
    here = plan()
    table = here.targets["tiny/table7"]
    results = [path for _, cell in table.cells for path in here.results(cell)]
    assert len(results) == 4
    records = [path.with_suffix(".record.json") for path in results]
    net = Path("results/tiny/runs/nets/tiny/mnist.json")
    assert sorted(inputs_of(here, table)[0]) == sorted([*results, *records, net])
    assert inputs_of(here, here.targets["tiny/table1"])[0][0].name == "seeds0-1.json"


# --- merging -------------------------------------------------------------------------------------------------

STF = {"order": {"name": "stf", "mu_sigma": 0.05, "length": 30}}


@pytest.mark.parametrize(
    ("over", "merged"),
    [
        ({"order": {"length": 5}}, {"name": "stf", "mu_sigma": 0.05, "length": 5}),
        ({"order": {"name": "split", "tasks": 2}}, {"name": "split", "tasks": 2, "length": 30}),
        ({"order": {"name": "random"}}, {"name": "random", "length": 30}),
        ({"order": {"name": "stf", "length": None}}, {"name": "stf", "mu_sigma": 0.05, "length": None}),
        ({}, {"name": "stf", "mu_sigma": 0.05, "length": 30}),
    ],
)
def test_a_new_name_keeps_only_the_options_it_takes(over, merged):
    before = repr(STF)
    assert merge(STF, over) == {"order": merged}
    assert repr(STF) == before


def test_lists_and_scalars_are_replaced_and_mappings_merged():
    assert merge({"a": [1, 2], "b": {"x": 1, "y": 2}, "c": 3}, {"a": [4], "b": {"y": 5}, "d": 6}) == {
        "a": [4],
        "b": {"x": 1, "y": 5},
        "c": 3,
        "d": 6,
    }


def test_the_grid_lies_over_the_target_over_the_data_set_over_the_defaults():
    edit(PAPER, "mnist: {net", "mnist: {budget: {memory: 20}, net")
    edit(PAPER, "    grid: {", "    cell: {budget: {batch: 4}}\n    grid: {budget.replay_batch: [1], ")
    (spec,) = [
        c.spec for f, c in plan().targets["tiny/table1"].cells if (f["dataset"], f["learner"]) == ("mnist", "er")
    ]
    assert spec["budget"] == {"optimizer": "sgd", "learning_rate": 0.1, "batch": 4, "replay_batch": 1, "memory": 20}


def test_a_learner_may_bring_its_own_piece_of_the_cell():
    memory = {
        (factors["dataset"], factors["learner"]): cell.spec["budget"]["memory"]
        for factors, cell in plan().targets["tiny/table1"].cells
    }
    assert memory == {("mnist", "er"): 10, ("mnist", "ace"): 10, ("cifar10", "er"): 10, ("cifar10", "ace"): 7}


# --- cells ---------------------------------------------------------------------------------------------------


def hashes():
    return set(plan().cells)


def test_a_hash_does_not_depend_on_how_the_yaml_is_written():
    before = hashes()
    content = yaml.safe_load(Path(PAPER).read_text())
    backwards = {key: content[key] for key in reversed(content)}
    backwards["defaults"] = {key: content["defaults"][key] for key in reversed(content["defaults"])}
    Path(PAPER).write_text("# Other words.\n" + yaml.safe_dump(backwards, sort_keys=False, default_flow_style=False))
    assert hashes() == before


def test_one_mu_sigma_is_one_cell_however_it_is_come_by():
    before = hashes()
    edit(PAPER, "mu_sigma: 0.05", "mu_sigma: 0.025, mu_sigma_factor: 2")
    assert hashes() == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("learning_rate: 0.1", "learning_rate: 0.2"),
        ("mu_sigma: 0.05", "mu_sigma: 0.06"),
        ("precision: float32", "precision: float64"),
        ("probes: 10", "probes: null"),
    ],
)
def test_every_value_is_part_of_the_hash(old, new):
    before = hashes()
    edit(PAPER, old, new)
    assert not hashes() & before


def test_a_hash_is_of_all_but_the_seed_and_the_scale():
    spec = next(iter(plan().cells.values())).spec
    assert Cell.of("a", spec).hash == Cell.of("b", dict(reversed(spec.items()))).hash
    assert Cell.of("a", spec | {"precision": "float64"}).hash != Cell.of("a", spec).hash


def test_a_learners_own_net_is_described_beside_the_data_sets():
    edit(PAPER, "ace: {cell: {budget: {memory: 7}}}", "ace: {cell: {net: {width: 9}}}")
    edit(PAPER, "nets: [mnist]", "nets: [cifar10, cifar10-ace]")
    whole = plan()
    assert [net["width"] for net in whole.targets["tiny/table2"].nets] == [2, 9]
    assert whole.nets["tiny/cifar10-ace"] == {"name": "cnn", "width": 9}
    assert whole.net_file("tiny", "cifar10-ace") == Path("results/tiny/runs/nets/tiny/cifar10-ace.json")


def test_equal_cells_of_two_targets_are_trained_once_for_the_seeds_of_both():
    edit(PAPER, "  table2:", "  table3:\n    {title: T, caption: c, section: '4', kind: table, measure: learning, "
         "render: results_table,\n     metrics: [online_accuracy], seeds: 2-5, "
         "grid: {dataset: [mnist], learner: [er]}}\n  table2:")  # fmt: skip
    whole = plan()
    assert len(whole.cells) == 4
    ((_, shared),) = whole.targets["tiny/table3"].cells
    assert shared in [cell for _, cell in whole.targets["tiny/table1"].cells]
    assert whole.blocks(shared) == [range(0, 2), range(2, 4), range(4, 6)]
    assert [path.stem for path in whole.results(shared, whole.targets["tiny/table3"].seeds)] == ["seeds2-3", "seeds4-5"]


def test_paths_say_what_a_cell_is():
    (cell,) = [c for c in plan().cells.values() if c.spec["learner"]["name"] == "er" and c.spec["dataset"] == "mnist"]
    assert cell.folder == Path(f"results/tiny/runs/mnist/stf-0.05-n30/er-{cell.hash}")
    assert cell.stream(3) == Path("results/tiny/streams/mnist/stf-0.05-n30/seed3.npz")
    assert cell.dataset == Path("results/tiny/datasets/mnist.npz")


# --- oracles and restrictions --------------------------------------------------------------------------------

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
    "gmed": {"alpha": 1, "beta": 1, "decay": 0, "sign": "paper"},
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


def cells(order, learners, defaults=(), evaluated=EVALUATED, without=(), **factors):
    """The cells of a grid on MNIST, by the levels of its learner and its factors in the order given."""
    content = yaml.safe_load(TEXT[PAPER]) | {"oracles": ORACLES, "learners": METHODS}
    del content["datasets"]["cifar10"]
    content["defaults"] = merge(content["defaults"] | {"order": order, "scaling": "unit"}, dict(defaults))
    content["defaults"]["evaluation"]["oracles"] = evaluated
    restrictions = [{"name": name} for name in factors.pop("restriction", ["single_head"])]
    grid = {"dataset": ["mnist"], "learner": learners, **factors, "restriction": restrictions}
    content["targets"] = {"table1": content["targets"]["table1"] | {"grid": grid, "without": list(without)}}
    Path(PAPER).write_text(yaml.safe_dump(content, sort_keys=False))
    found = {}
    for levels, cell in Plan("real", ["tiny"]).targets["tiny/table1"].cells:
        _, *rest, restriction = levels.values()
        found[(*rest, restriction["name"]) if len(restrictions) > 1 else tuple(rest)] = cell
    return found


def distinct(found):
    return len({cell.hash for cell in found.values()})


def refusal(*arguments, **options):
    """The one line that refuses a grid, without the place."""
    with pytest.raises(ConfigError) as refused:
        cells(*arguments, **options)
    told = str(refused.value)
    assert "\n" not in told
    assert told.startswith(f"{PAPER}: targets.table1, cell dataset=mnist learner=")
    return told.split("'}: ", 1)[1]


def test_an_oracle_goes_by_its_name_or_its_description():
    named = cells(SPLIT, ["ewc"], oracle=["sp2"])["ewc", "sp2"]
    described = cells(SPLIT, ["ewc"], defaults={"oracle": {"name": "split", "tasks": 2}})["ewc",]
    assert named == described
    assert named.spec["oracle"] == {"name": "split", "tasks": 2, "aligned": True}


def test_who_looks_at_no_task_is_one_cell_under_all_oracles():
    oracles = [name for name in ORACLES if name != "entropy"]
    for order in (SPLIT, RANDOM):
        found = cells(order, ["single", "er", "rand"], oracle=oracles)
        assert distinct(found) == 3
        for cell in found.values():
            assert cell.view == "none"
            assert cell.spec["oracle"] == {"name": "none"}
            assert cell.spec["restriction"] == {"train": "none"}
            assert set(cell.spec["evaluation"]["oracles"]) == {*EVALUATED, "sp2-unaligned", "sp5-unaligned"}


@pytest.mark.parametrize("learner", ["ewc", "si"])
def test_one_task_makes_a_regulariser_the_plain_net(learner):
    found = cells(SPLIT, ["single", learner], oracle=["none", "sp1", "sp2"])
    assert found[learner, "none"] == found[learner, "sp1"] == found["single", "sp1"]
    assert found["single", "sp1"].spec["learner"] == {"name": "single"}
    assert found[learner, "sp2"] not in (found[learner, "sp1"], found["single", "sp2"])
    assert found[learner, "sp2"].spec["evaluation"]["oracles"] == {}


@pytest.mark.parametrize("order", MIXING)
@pytest.mark.parametrize("learner", ["ewc", "si", "icarl", "gr"])
def test_where_every_batch_mixes_the_tasks_it_is_one_cell_under_all_of_several(learner, order):
    found = cells(order, [learner], oracle=["sp2", "sp5", "dom", "rand", "sp1"])
    one_task = found.pop((learner, "sp1"))
    assert distinct(found) == 1
    assert found[learner, "sp2"].spec["oracle"] == {"name": "mixed"}
    assert one_task.hash != found[learner, "sp2"].hash
    assert distinct(cells(SPLIT, [learner], oracle=EVALUATED)) == 4


@pytest.mark.parametrize("learner", ["gr_by_tasks", "mm", "randmm"])
def test_who_looks_at_the_tasks_themselves_is_a_cell_for_each_oracle(learner):
    for order in (RANDOM, SPLIT):
        found = cells(order, [learner], oracle=EVALUATED)
        assert distinct(found) == 4
        assert all(cell.spec["evaluation"]["oracles"] == {} for cell in found.values())


@pytest.mark.parametrize("learner", ["single", "ewc", "si", "icarl", "gr", "mm"])
def test_restrictions_of_the_test_alone_share_their_training(learner):
    names = ["single_head", "es", "es_ed", "ea", "td", "td_es", "td_es_ed"]
    found = {name: cell for (_, _, name), cell in cells(SPLIT, [learner], oracle=["sp2"], restriction=names).items()}
    views = {name: cell.view for name, cell in found.items()}
    assert views == {
        "single_head": "none",
        "es": "oracle",
        "es_ed": "independent",
        "ea": "none",
        "td": "oracle",
        "td_es": "data",
        "td_es_ed": "independent",
    }
    for group in (["es", "es_ed", "ea"], ["td", "td_es", "td_es_ed"]):
        assert {found[name].hash for name in group} == {found[group[0]].hash}
        assert found[group[0]].spec["restriction"] == {"train": "oracle"}
    assert len({found[name].hash for name in ("single_head", "es", "td")}) == 3
    assert [found[name].spec["oracle"]["aligned"] for name in ("es", "td") if learner != "single"] in (
        [],
        [True, False],
    )


def test_who_cannot_be_restricted_is_one_run_seen_in_many_ways():
    """Of the oracle in the view's name: aligned with the data's own classes, or not."""
    names = ["single_head", "es", "es_ed", "ea", "td", "td_es", "td_es_ed"]
    for learner in ("er", "rand"):
        found = cells(SPLIT, [learner], oracle=["sp2", "dom"], restriction=names)
        assert distinct(found) == 1
        assert {name: cell.view for (_, oracle, name), cell in found.items() if oracle == "sp2"} == {
            "single_head": "none",
            "es": "sp2/oracle",
            "es_ed": "sp2/independent",
            "ea": "none",
            "td": "sp2-unaligned/oracle",
            "td_es": "sp2-unaligned/data",
            "td_es_ed": "sp2-unaligned/independent",
        }
        assert found[learner, "dom", "es"].view == found[learner, "dom", "td"].view == "dom/oracle"


@pytest.mark.parametrize("learner", ["single", "ewc", "icarl", "mm"])
def test_random_tasks_let_all_classes_compete(learner):
    found = cells(SPLIT, [learner], oracle=["rand"], restriction=["single_head", "es", "td"])
    assert distinct(found) == 1
    assert found[learner, "rand", "es"].spec["restriction"] == {"train": "none"}


@pytest.mark.parametrize(("learner", "runs"), [("single", 1), ("ewc", 3)])
def test_present_classes_restrict_training_whatever_the_oracle(learner, runs):
    """What looks at no task change is then one run under all oracles; without a restriction, another."""
    defaults = {"restriction": {"train": "present"}}
    found = cells(SPLIT, [learner], defaults, oracle=["sp2", "sp5", "rand"], restriction=["es", "ea"])
    assert distinct(found) == runs
    assert {cell.spec["restriction"]["train"] for cell in found.values()} == {"present"}
    assert found[learner, "rand", "ea"].view == "none"
    found = cells(SPLIT, [learner], defaults, oracle=["rand"], restriction=["single_head", "es"])
    assert found[learner, "rand", "single_head"].spec["restriction"] == {"train": "none"}
    assert distinct(found) == 2


def test_views_of_one_run_are_different_targets():
    """They share the run and not the measured numbers."""
    digests = set()
    for name in ("es", "es_ed", "ea"):
        cells(SPLIT, ["ewc"], oracle=["sp2"], restriction=[name])
        target = Plan("real", ["tiny"]).targets["tiny/table1"]
        digests.add(target.measured_digest)
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("order", "learner", "options", "line"),
    [
        (SPLIT, "ewc", {"oracle": ["sp9"]}, f"oracle: 'sp9' is not one of {', '.join(ORACLES)}"),
        (SPLIT, "ewc", {"oracle": ["entropy"]}, "learner ewc needs an oracle that names tasks, not entropy"),
        (SPLIT, "gr", {"oracle": ["entropy"]}, "learner gr needs an oracle that names tasks, not entropy"),
        (RANDOM, "ewc", {"oracle": ["sp2"], "restriction": ["td_es"]}, "restriction td_es needs an order of split or "
         "split_two or split_range or split_overlapping or split_ordered"),
        (SPLIT, "gmed", {"defaults": {"budget": {"optimizer": "adam"}}}, "learner gmed needs budget.optimizer sgd, not "
         "adam"),
        (SPLIT, "gr", {"defaults": {"scaling": "symmetric"}}, "learner gr needs scaling unit, not symmetric"),
        (SPLIT, "er", {"oracle": ["sp2"], "restriction": ["es"], "evaluated": ["sp5"]}, "evaluation.oracles: 'sp2' is "
         "missing, which restricts the test"),
        (SPLIT, "er", {"oracle": ["sp2"], "restriction": ["td"], "evaluated": []}, "evaluation.oracles: 'sp2' is "
         "missing, which restricts the test"),
        (SPLIT, "er", {"defaults": {"oracle": ORACLES["sp2"]}, "restriction": ["es"], "evaluated": ["sp5"]},
         "evaluation.oracles: {'name': 'split', 'tasks': 2} is missing, which restricts the test"),
    ],
)  # fmt: skip
def test_what_a_learner_an_order_or_a_run_cannot_do_is_refused_in_one_line(order, learner, options, line):
    assert refusal(order, [learner], **options) == line


def test_cells_are_left_out_of_a_grid_by_any_combination_of_levels():
    everything = cells(SPLIT, ["single", "ewc", "mm"], oracle=["sp2", "sp5", "dom"])
    fewer = cells(
        SPLIT,
        ["single", "ewc", "mm"],
        oracle=["sp2", "sp5", "dom"],
        without=[{"learner": ["single", "ewc"], "oracle": ["sp5"]}, {"oracle": ["dom"], "learner": ["mm"]}],
    )
    assert everything.keys() - fewer.keys() == {("single", "sp5"), ("ewc", "sp5"), ("mm", "dom")}
    assert all(everything[levels] == cell for levels, cell in fewer.items())


def test_a_left_out_cell_may_be_one_that_could_not_be():
    """It is not even looked at."""
    given = {"oracle": ["sp2", "entropy"]}
    assert "not entropy" in refusal(SPLIT, ["ewc", "mm"], **given)
    left = cells(SPLIT, ["ewc", "mm"], without=[{"learner": ["ewc"], "oracle": ["entropy"]}], **given)
    assert left.keys() == {("ewc", "sp2"), ("mm", "sp2"), ("mm", "entropy")}


def test_a_grid_varies_options_of_the_learners_that_have_them():
    forward = ["separate", "concatenated"]
    edit(PAPER, GRID, f"{GRID[:-1]}, learner.forward: {forward}, budget.memory: [5, 6]}}")
    found = plan().targets["tiny/table1"].cells
    factors = [tuple(each.values())[1:] for each, _ in found if each["dataset"] == "mnist"]
    assert factors == [*(("er", way, m) for way in forward for m in (5, 6)), ("ace", 5), ("ace", 6)]
    for each, cell in found:
        wanted = (
            {"name": "er", "forward": each["learner.forward"]}
            if each["learner"] == "er"
            else {"name": "ace", "mask": "present"}
        )
        assert cell.spec["learner"] == wanted
        assert cell.spec["budget"]["memory"] == each["budget.memory"]
    edit(PAPER, "memory: [5, 6]}", "memory: [5, 6]}\n    without: [{learner.forward: [separate]}]")
    kept = [each.get("learner.forward") for each, _ in plan().targets["tiny/table1"].cells]
    assert kept == ["concatenated", "concatenated", None, None] * 2


def test_a_grid_reaches_into_an_options_parts_and_leaves_the_others():
    loss = {"name": "softmax", "strength": 1}
    edit(PAPER, "  ace: {mask: present}", f"  ace: {{method: icarl, loss: {loss}, space: logits, exemplars: batch}}")
    edit(PAPER, "dataset: [mnist, cifar10], " + GRID, "dataset: [mnist], learner: [ace], learner.loss.name: [softmax]}")
    ((factors, cell),) = plan().targets["tiny/table1"].cells
    assert factors["learner.loss.name"] == "softmax"
    assert cell.spec["learner"]["loss"] == loss
    edit(PAPER, "name: [softmax]", "name: [hinge]")
    with pytest.raises(ConfigError, match=r"targets\.table1\.grid\.learner\.loss"):
        plan()


def test_a_toy_stream_may_be_told_its_tasks():
    edit(PAPER, "measure: stream_classes, render: class_frequency,", "measure: stream_tasks, render: schematic,")
    edit(PAPER, "tasks: 2}, seed: 0}", "tasks: 2}, oracle: {name: split, tasks: 2}, seed: 0}")
    assert plan().targets["tiny/figure1"].spec["streams"][0]["oracle"]["tasks"] == 2
    edit(PAPER, "oracle: {name: split, tasks: 2}", "oracle: {name: split, tasks: 3}")
    with pytest.raises(ConfigError, match=r"oracle\.tasks: 3 is more than the 2 classes"):
        plan()


def test_seeds_are_the_targets_or_the_papers_or_the_scales():
    def seeds():
        return plan().targets["tiny/table1"].seeds

    assert seeds() == range(0, 4)
    edit(PAPER, "paper: tiny\n", "paper: tiny\nseeds: 0-9\n")
    assert seeds() == range(0, 10)
    edit(SCALE, "  tiny:\n", "  tiny:\n    seeds: 0-5\n")
    assert seeds() == range(0, 6)
    edit(PAPER, "    caption: Both.\n", "    caption: Both.\n    seeds: 1-2\n")
    assert seeds() == range(1, 3)


# --- blocks --------------------------------------------------------------------------------------------------


def blocks(seeds, size, **options):
    Path(SCALE).write_text(TEXT[SCALE].replace("0-3", seeds).replace("seeds_per_job: 2", f"seeds_per_job: {size}"))
    whole = plan(**options)
    return [whole.blocks(cell) for cell in whole.cells.values()]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 20])
def test_blocks_cover_the_seeds_once_and_more_seeds_leave_whole_blocks_as_they_were(size):
    for first, last in [(0, 1), (0, 5), (1, 6), (3, 8), (4, 11)]:
        (each, *others) = blocks(f"{first}-{last}", size)
        assert others == [each] * len(others)
        assert list(itertools.chain(*each)) == list(range(first, last + 1))
        longer = blocks(f"{first}-{last + size}", size)[0]
        assert set(each[:-1]) <= set(longer)
        assert each[-1] in longer or (last + 1) % size  # only a block that was not full may grow


def test_auto_stacks_all_seeds_on_a_gpu_and_few_on_a_cpu():
    mlp, cnn = [range(0, 5), range(5, 10)], [range(k, k + 1) for k in range(10)]
    assert blocks("0-9", "auto") == [mlp, mlp, cnn, cnn]
    assert blocks("0-9", "auto", cuda=True) == [[range(0, 10)]] * 4


@pytest.mark.parametrize("size", [1, 2, 3, 5, 20])
def test_the_results_of_some_seeds_are_the_files_of_the_blocks_that_hold_any_of_them(size):
    Path(SCALE).write_text(TEXT[SCALE].replace("0-3", "2-11").replace("seeds_per_job: 2", f"seeds_per_job: {size}"))
    whole = plan()
    for cell, (first, last) in itertools.product(whole.cells.values(), [(2, 2), (3, 8), (4, 5), (0, 2), (11, 30)]):
        seeds = range(first, last + 1)
        found = [block_seeds(path.stem) for path in whole.results(cell, seeds)]
        assert found == [block for block in whole.blocks(cell) if set(block) & set(seeds)]


@pytest.mark.parametrize(("seeds", "name"), [(range(3, 4), "seed3"), (range(20), "seeds0-19"), (range(0, 1), "seed0")])
def test_a_blocks_name_and_back(seeds, name):
    assert block_name(seeds) == name
    assert block_seeds(name) == seeds


@pytest.mark.parametrize(
    "name",
    [
        *("", "3", "seed", "seeds0-", "seed3x", "index", "seed-1", "seed\u0663", "seed3\n"),
        *("seeds5-2", "seeds3-3", "seed3-5", "seeds3", "seed03", "seeds0-05", "seeds0-1000", "seeds0-999999999"),
        *("seed1000000000", "seed" + "9" * 23, "seeds0-" + "9" * 5000),
    ],
)
def test_what_is_no_blocks_name_is_refused(name):
    with pytest.raises(ConfigError, match="not the seeds of a file"):
        block_seeds(name)


def test_blocks_go_up_to_the_most_seeds_and_highest_numbers():
    assert block_seeds("seeds0-999") == range(1000)
    assert block_seeds("seed999999999") == range(999999999, 10**9)


@pytest.mark.parametrize("key", ["data_folder", "downloads"])
@pytest.mark.parametrize("place", ["-x", "--help", "a\0b", "\0", "a\nb", "\x7f", "", "x" * 1001])
def test_folders_that_no_command_could_be_given_are_refused(key, place):
    with pytest.raises(ConfigError, match=f"config.yaml or --config: {key}: "):
        settings(**{key: place})


@pytest.mark.parametrize("place", ["data", "/mnt/my data", "./-x", "~/données", "a-b"])
def test_any_other_folder_is_taken(place):
    assert settings(data_folder=place)["data_folder"] == place


# --- numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["017", "1:30", "0x1F", "0b11", "1_000", "-017", "+1:30", "190:20:30", "00", "0o17"])
def test_numbers_that_yaml_reads_otherwise_than_people_are_refused(number, tmp_path):
    (tmp_path / "a.yaml").write_text(f"key: {number}\nother: 1.0\n")
    if number == "0o17":  # which YAML 1.1 takes for text
        assert read_yaml(tmp_path / "a.yaml")["key"] == "0o17"
        return
    with pytest.raises(ConfigError, match=r"a\.yaml: line 1 .* is no plain decimal number; write it as one"):
        read_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("number", ["1:30.5", "1_0.5", "190:20:30.15", "1_000.0e+3"])
def test_so_are_those_with_a_point(number, tmp_path):
    (tmp_path / "a.yaml").write_text(f"key: {number}\n")
    with pytest.raises(ConfigError, match="is no plain decimal number"):
        read_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("number", ["1.0e+308", "-1.0e+31", "1.1e+30", "9" * 400 + ".0"])
def test_numbers_beyond_single_precision_are_refused(number, tmp_path):
    (tmp_path / "a.yaml").write_text(f"key: {number}\n")
    with pytest.raises(ConfigError, match=r"is beyond ±1e\+30|not a finite number"):
        read_yaml(tmp_path / "a.yaml")


@pytest.mark.parametrize("number", ["0", "-1", "+7", "10", "1.0e+30", "1.0e-8", ".5", "1.", "-0.0", "2147483647"])
def test_plain_numbers_are_read(number, tmp_path):
    (tmp_path / "a.yaml").write_text(f"key: {number}\n")
    assert read_yaml(tmp_path / "a.yaml")["key"] == float(number)


# --- targets -------------------------------------------------------------------------------------------------


def test_a_target_has_an_output_of_every_format_and_its_comparisons():
    printed("tiny,table1,ER,MNIST,final_accuracy,80,,,")
    edit(PAPER, "    render: results_table\n", "    render: results_table\n    paired: true\n")
    named = {name: [path.name for path in target.outputs] for name, target in plan().targets.items()}
    formats = ["csv", "md", "tex", "html"]
    assert named == {
        "tiny/table1": [f"table1.{ending}" for ending in [*formats, "reported.csv", "paired.csv"]],
        "tiny/figure1": ["figure1.pdf", "figure1.svg", "figure1.png"],
        "tiny/table2": [f"table2.{ending}" for ending in formats],
    }


@pytest.mark.parametrize(
    ("old", "new", "rendered", "measured"),
    [
        ("caption: Both.", "caption: Two.", True, False),
        ("metrics: [final_accuracy]", "metrics: [online_accuracy]", True, True),
        ("learning_rate: 0.1", "learning_rate: 0.2", True, True),
        ("title: Table 2", "title: Table II", False, False),
        ("toy-3-2", "toy-3-3", False, False),
    ],
)
def test_a_targets_digests_change_with_what_they_are_of(old, new, rendered, measured):
    before = plan().targets["tiny/table1"]
    edit(PAPER, old, new)
    after = plan().targets["tiny/table1"]
    assert (before.digest != after.digest) == rendered
    assert (before.measured_digest != after.measured_digest) == measured


def test_reductions_tell_each_difference_from_the_papers_scale_once():
    edit(SCALE, "{order: {length: 30}}", "{order: {length: 30}, net: {hidden: [2]}, budget: {memory: 5}}")
    ours, theirs = plan().targets, Plan("real", ["tiny"]).targets
    assert sorted(reductions(ours["tiny/table1"], theirs["tiny/table1"])) == [
        "budget.memory 5 (paper: 10)",
        "net.hidden [2] (paper: [4])",
        "order.length 30 (paper: all)",
    ]
    assert reductions(ours["tiny/figure1"], theirs["tiny/figure1"]) == ["chunks 4 (paper: 5)"]
    assert reductions(ours["tiny/table2"], theirs["tiny/table2"]) == ["net.hidden [2] (paper: [4])"]


def test_a_cell_is_compared_with_its_own_counterpart():
    """Where a scale leaves cells out, the others are still compared with themselves, and the lack is told."""
    edit(SCALE, "targets: {figure1: {chunks: 4}}", "targets: {table1: {without: [{learner: [er], dataset: [mnist]}]}}")
    edit(
        SCALE,
        "mnist: {order: {length: 30}}",
        "cifar10: {budget: {memory: 5}, learners: {ace: {cell: {budget: {memory: 6}}}}}",
    )
    ours, theirs = plan().targets["tiny/table1"], Plan("real", ["tiny"]).targets["tiny/table1"]
    assert reductions(ours, theirs) == [
        "3 cells (paper: 4)",
        "budget.memory 5 (paper: 10)",
        "budget.memory 6 (paper: 7)",
    ]


def test_a_level_that_the_paper_does_not_have_is_told_and_so_is_what_else_differs():
    edit(PAPER, GRID, f"{GRID[:-1]}, learner.forward: [separate, concatenated], budget.memory: [5, 6]}}")
    edit(
        SCALE,
        "{figure1: {chunks: 4}}",
        "{table1: {grid: {learner.forward: [concatenated], budget.memory: [3]}, cell: {scaling: unit}}}",
    )
    ours, theirs = plan().targets["tiny/table1"], Plan("real", ["tiny"]).targets["tiny/table1"]
    assert reductions(ours, theirs) == [
        "4 cells (paper: 12)",
        "budget.memory 3 (paper: 5, 6)",
        "order.length 30 (paper: all)",
        "scaling unit (paper: symmetric)",
    ]


def test_the_papers_scale_itself_is_no_reduction():
    for target in Plan("real", ["tiny"]).targets.values():
        assert reductions(target, target) == []


# --- selections ----------------------------------------------------------------------------------------------

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


@pytest.fixture
def selecting():
    edit(PAPER, "targets:\n", SELECTION)
    edit(PAPER, "grid: {dataset: [mnist, cifar10], learner: [er, ace]}", MNIST_ONLY)


def test_a_selection_trains_every_point_of_the_grid_on_tasks_and_seeds_of_its_own(selecting):
    made = plan()
    search = made.selections["tiny/mnist-er"]
    found = [(cell.spec["budget"]["learning_rate"], cell.spec["learner"]["forward"]) for _, cell in search.points]
    assert found == [(0.1, "separate"), (0.1, "concatenated"), (0.2, "separate"), (0.2, "concatenated")]
    assert {cell.spec["order"]["length"] for _, cell in search.points} == {20}
    assert search.published == {"budget.learning_rate": 0.1, "learner.forward": "separate"}
    for _, cell in search.points:
        assert [path.stem for path in made.results(cell)] == ["seed100"]
    assert str(search.file) == "results/tiny/selection/tiny/mnist-er.json"


def test_a_cell_to_fill_names_what_it_waits_for_and_nothing_else_changes(selecting):
    (_, er), (_, ace) = plan().targets["tiny/table1"].cells
    assert er.spec["budget"]["learning_rate"] == er.spec["learner"]["forward"] == SELECTED
    assert er.spec["selection"]["name"] == "tiny/mnist-er"
    filled = fill(er.spec, {"budget.learning_rate": 0.2, "learner.forward": "concatenated"})
    assert (filled["budget"]["learning_rate"], filled["learner"]["forward"]) == (0.2, "concatenated")
    assert er.spec["budget"]["learning_rate"] == SELECTED
    edit(PAPER, "use: cross_validated", "use: published")
    (_, usual), (_, same) = plan().targets["tiny/table1"].cells
    assert same.hash == ace.hash  # has no grid
    published = plan_free(usual)
    assert fill(er.spec, published) | {"selection": None} == usual.spec | {"selection": None}
    assert not plan().selections


def plan_free(cell):
    return {
        "budget.learning_rate": cell.spec["budget"]["learning_rate"],
        "learner.forward": cell.spec["learner"]["forward"],
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [("[0.1, 0.2]", "[0.1, 0.3]"), ("seeds: 100-100", "seeds: 100-101"), ("{length: 20}", "{length: 25}")],
)
def test_what_a_selection_is_made_of_is_part_of_the_hash_of_what_it_fills(selecting, old, new):
    before = plan().targets["tiny/table1"].cells
    edit(PAPER, old, new)
    after = plan().targets["tiny/table1"].cells
    assert before[0][1].hash != after[0][1].hash
    assert before[1][1].hash == after[1][1].hash


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("seeds: 100-100", "seeds: 3-5", "selection.seeds: 3-5 shares seeds with targets.table1, 0-3; select on "
         "others"),
        ("learner.forward", "learner.mask", "selection.grid.er: 'learner.mask' is no value of the learner's cell, such "
         "as budget.memory"),
        ("[0.1, 0.2]", "[0.1, -2]", "selection.grid.er: budget.learning_rate: -2 must be greater than 0"),
        ("[separate, con", "[sideways, con", "selection.grid.er.forward: 'sideways' is not one of separate, "
         "concatenated"),
        ("{mnist: {order: {length: 20}}}", "{cifar10: {}}", "selection.datasets: 'mnist' is missing, which a target "
         "asks for"),
        ("  metric: final_accuracy\n", "", "selection: 'metric' is missing"),
        ("metric: final_accuracy", "metric: forgetting", "selection.metric: 'forgetting' is not one of final_accuracy, "
         "per_class_accuracy, average_information_retention, online_accuracy, average_accuracy, lca10, lca10_sum, "
         "zero_shot"),
        ("    er: {budget", "    err: {budget", "selection.grid: 'err' is not one of er, ace"),
        ("datasets: {mnist: {", "per_class: [awa]\n  datasets: {mnist: {", "selection.per_class: 'awa' is not one "
         "of mnist, cifar10"),
        (MNIST_ONLY, MNIST_ONLY + "\n    cell: {budget: {learning_rate: 0.5}}", "targets.table1, cell dataset=mnist "
         "learner=er: budget.learning_rate is selected; leave it out here or out of selection.grid"),
        (MNIST_ONLY, MNIST_ONLY[:-1] + ", budget.learning_rate: [0.1, 0.5]}", "targets.table1, cell dataset=mnist "
         "learner=er budget.learning_rate=0.1: budget.learning_rate is selected; leave it out here or out of "
         "selection.grid"),
        ("use: cross_validated", "use: guessed", "selection.use: 'guessed' is not one of published, cross_validated"),
    ],
)  # fmt: skip
def test_a_bad_selection_is_refused_in_one_line(selecting, old, new, line):
    edit(PAPER, old, new)
    with pytest.raises(ConfigError) as refusal:
        plan()
    assert str(refusal.value) == f"{PAPER}: {line}"


def test_a_table_of_selections_needs_a_grid_of_data_sets_and_learners_only(selecting):
    edit(PAPER, "use: cross_validated", "use: published")
    table = (
        "  table1:\n    {title: G, caption: c, section: g, kind: table, measure: selection, render: selection_table,\n"
    )
    table += "     grid: {dataset: [mnist], learner: [er]}}\n  tableX:\n"
    edit(PAPER, "  table1:\n", table)
    target = plan().targets["tiny/table1"]
    assert [search.name for _, search in target.selections] == ["tiny/mnist-er"]
    assert not target.cells
    edit(PAPER, "learner: [er]}", "learner: [er], budget.memory: [1, 2]}")
    with pytest.raises(ConfigError, match=r"budget\.memory"):
        plan()


# --- desiderata ------------------------------------------------------------------------------------------------

DECLARED = "A: {met: false, because: fonts differ}"


def test_what_is_declared_of_a_data_set_or_a_target_reaches_the_target_and_no_cell():
    before = plan().targets["tiny/table1"]
    edit(PAPER, "{net: {name: mlp, hidden: [4]}}", f"{{net: {{name: mlp, hidden: [4]}}, desiderata: {{{DECLARED}}}}}")
    edit(PAPER, GRID, GRID + "\n    desiderata: {C: {met: true, because: no one asks}}")
    after = plan().targets["tiny/table1"]
    fonts, asked = {"met": False, "because": "fonts differ"}, {"met": True, "because": "no one asks"}
    assert after.spec["desiderata"] == {"mnist": {"A": fonts, "C": asked}, "cifar10": {"C": asked}}
    assert [cell for _, cell in after.cells] == [cell for _, cell in before.cells]
    assert after.measured_digest == before.measured_digest
    assert after.digest != before.digest
    assert "desiderata" not in plan().targets["tiny/figure1"].spec


def test_a_targets_declaration_stands_above_its_data_sets():
    edit(PAPER, "{net: {name: mlp, hidden: [4]}}", f"{{net: {{name: mlp, hidden: [4]}}, desiderata: {{{DECLARED}}}}}")
    edit(PAPER, GRID, GRID + "\n    desiderata: {A: {met: true, because: one font}}")
    declared = plan().targets["tiny/table1"].spec["desiderata"]
    assert [each["A"] for each in declared.values()] == [{"met": True, "because": "one font"}] * 2


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (GRID, GRID + "\n    desiderata: {F: {met: true, because: x}}", "targets.table1.desiderata: unknown key 'F'; "
         "allowed: A, B, C, D, E"),
        (GRID, GRID + "\n    desiderata: {B: {met: true}}", "targets.table1.desiderata.B: 'because' is missing"),
        (GRID, GRID + "\n    desiderata: {B: {met: maybe, because: x}}", "targets.table1.desiderata.B.met: 'maybe' is "
         "not of type boolean"),
        ("hidden: [4]}}", "hidden: [4]}, desiderata: {B: {met: true, because: x}}}", "datasets.mnist.desiderata: "
         "unknown key 'B'; allowed: A"),
        ("nets: [mnist]}", f"nets: [mnist], desiderata: {{{DECLARED}}}}}", "targets.table2.desiderata: it has no runs "
         "to declare them of; leave it out"),
    ],
)  # fmt: skip
def test_a_bad_declaration_is_refused_in_one_line(old, new, line):
    edit(PAPER, old, new)
    with pytest.raises(ConfigError) as refusal:
        plan()
    assert str(refusal.value) == f"{PAPER}: {line}"


def test_a_stream_of_instances_is_made_from_what_the_data_set_recorded(capsys):
    edit(PAPER, "  cifar10: {net", "  icubworld: {net: {name: mlp, hidden: [4]}}\n  cifar10: {net")
    edit(PAPER, "toy-3-2, order: {name: split, tasks: 2}", "icubworld, order: {name: instances, burst: 2}")
    edit(SCALE, "  mnist: {train", "  icubworld: {train_per_class: 9, test_per_class: 1}\n  mnist: {train")
    data, out = "results/tiny/datasets/icubworld.npz", "results/tiny/streams/icubworld/instances-2/seed0.npz"
    for stage, file in (("dataset", data), ("stream", out)):
        assert main([stage, "--out", file]) == 0, capsys.readouterr().err
    made, (instance, frame) = load(out, 90), instances(data)
    bursts = [(instance[part], frame[part]) for part in np.split(made.indices, made.boundaries)]
    told = sorted((shown.tolist(), places.tolist()) for shown, places in bursts)
    assert told == sorted(each for i in range(30) for each in (([i, i], [0, 1]), ([i], [2])))
