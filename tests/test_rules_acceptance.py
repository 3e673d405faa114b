"""The random rows of paper `rules`, simulated through the loop, against what the paper prints."""

import csv
import functools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from clpapers.config.plan import Plan
from clpapers.runs import loop
from clpapers.runs.scenario import restrictions_at_test, scenario
from clpapers.streams import orders

ROOT = Path(__file__).parents[1]
# Images of one pixel, since nobody looks at them; the test items of each class, on whose numbers chance depends; few
# items to train on, since nobody trains.
TEST_COUNTS = {"mnist": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009], "cifar100": [100] * 100}
TRAIN_COUNT = 20
ROWS = ("rand", "randmm")


def seeds(cell):
    """Few where seeds hardly differ; the paper's ten where they do, by 3.3 points for RandMM's `td es`."""
    return range(2 if cell.spec["oracle"].get("aligned", True) else 10)


@functools.cache
def targets():
    """The paper's targets by name, and of each its cells of the random rows by (row, column) as printed."""
    found = {}
    for target in Plan("paper", ["rules"]).targets.values():
        names, column = target.spec.get("names", {}), target.spec.get("columns")
        for factors, cell in target.cells:
            if factors["learner"] in ROWS:
                level = factors[column]["name"] if isinstance(factors[column], dict) else factors[column]
                key = names.get(factors["learner"], factors["learner"]), names.get(level, level)
                found.setdefault(target.name, {})[key] = cell
    return found


@functools.cache
def printed(target):
    """(row, column) → the printed value and bracket of the random rows' cells that have any."""
    with (ROOT / "config/reported/rules.csv").open() as file:
        lines = [line for line in csv.DictReader(file) if line["target"] == target and line["value"]]
    return {(line["row"], line["column"]): (float(line["value"]), float(line["spread"])) for line in lines}


def data(dataset):
    counts = TEST_COUNTS[dataset]
    train_y, test_y = np.repeat(np.arange(len(counts)), TRAIN_COUNT), np.repeat(np.arange(len(counts)), counts)
    blank = [np.zeros((len(y), 1, 1, 1), dtype=np.uint8) for y in (train_y, test_y)]
    return loop.Data(blank[0], train_y, blank[1], test_y, len(counts))


RUNS = {}  # by the cell's hash, which says nothing of the view


def simulated(cell):
    """By view, the accuracy of a cell's runs and the one that is to be expected, both as the mean over seeds."""
    if cell.hash not in RUNS:
        RUNS[cell.hash] = _simulated(cell)
    return RUNS[cell.hash]


def _simulated(cell):
    given = data(cell.spec["dataset"])
    streams = {seed: orders.make(cell.spec["order"], given.train_y, seed) for seed in seeds(cell)}
    results = loop.train(cell.spec, given, streams, torch.device("cpu"))
    accuracy = {
        view: np.mean([sum(r["test"][view]["correct"]) for r in results]) / len(given.test_y)
        for view in results[0]["test"]
    }
    if cell.spec["learner"]["name"] == "random":
        expected = {view: np.mean([r["test"][view]["chance"] for r in results]) for view in accuracy}
    else:
        each = [within_task(cell.spec, given, stream) for stream in streams.values()]
        expected = {view: np.mean([e[view] for e in each]) for view in accuracy}
    return accuracy, expected


def within_task(spec, given, stream):
    """view → the expected accuracy of a guess among the competing classes of the task that an item is said to have."""
    c = scenario(spec, stream, given.train_y, given.test_y, given.classes)
    held = c.tasks.task_classes[c.tasks.test]
    masks = restrictions_at_test(spec, c)
    return {view: np.mean(1 / (held if m is None else held & m).sum(axis=1)) for view, m in masks.items()}


@pytest.fixture(autouse=True)
def project_root(monkeypatch):
    monkeypatch.chdir(ROOT)


CELLS = {"table1": 11, "table2": 11, "table3": 11, "table4": 12, "table7": 10, "table8": 11}


@pytest.mark.parametrize("target", CELLS)
def test_expected_accuracy_is_the_printed_one(target):
    """Within three printed brackets, which are standard errors of ten seeds, and half a unit of the last digit.

    The last is needed: Table 2's 0.97(0.01) stands exactly three brackets from the 1.00 that a guess among 100 classes
    has. It is the expected accuracy that is compared, over the partitions that our seeds draw; the simulated one
    has sampling errors of its own, in which the next test finds it.
    """
    compared = 0
    for place, cell in targets()[target].items():
        if place in printed(target):
            value, bracket = printed(target)[place]
            _, expected = simulated(cell)
            assert abs(100 * expected[cell.test_restriction] - value) <= 3 * bracket + 0.005 + 1e-9, (
                place,
                expected[cell.test_restriction],
            )
            compared += 1
    assert compared == CELLS[target]


@pytest.mark.parametrize("target", CELLS)
def test_simulated_accuracy_is_the_expected_one(target):
    """Under every restriction that a run is evaluated under, within four standard errors of so many guesses."""
    for cell in {cell.hash: cell for cell in targets()[target].values()}.values():
        accuracy, expected = simulated(cell)
        guesses = len(seeds(cell)) * sum(TEST_COUNTS[cell.spec["dataset"]])
        for view, p in expected.items():
            assert abs(accuracy[view] - p) <= 4 * math.sqrt(p * (1 - p) / guesses), (cell.spec["oracle"], view)


def test_the_random_row_of_a_data_set_and_order_is_one_run():
    """Tables 2, 4 and 8 read it under different restrictions."""
    runs = {
        targets()[t][place].hash
        for t in ("table2", "table4", "table8")
        for place in targets()[t]
        if place[0] in ("Rand", "Random")
    }
    assert len(runs) == 1
