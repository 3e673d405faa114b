"""What config/ and the settings may not say, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses
from pathlib import Path

import pytest
import refusals
import tiny_paper
from test_own_in_grids import taken as own_method
from test_written import measure_of_tasks
from tiny_paper import COSTS, PAPER, PRINTED, TEXT, edit, plan, printed, settings

from clpapers.config.files import read_text, read_yaml
from clpapers.config.paths import block_seeds, seeds_of
from clpapers.config.plan import Plan

# YAML that is small on disk and large in memory.
ALIASES = "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9 * (i > 0)} 1]\n" for i in range(7))


CIFAR = "  shape: [32, 32, 3]\n  classes: [airplane"
NAMED = "    names: {er: Experience replay, mnist: MNIST, cifar10: Café}\n"
NESTED = f"paper: {'[' * 100}\n"
ICARL = "  icarl: {loss: {name: softmax, strength: 1}, space: logits, exemplars: batch}\n  ace: {forward"
SELECTIONS = """\
  table1:
    {title: G, caption: c, section: g, kind: table, measure: selection, render: selection_table,
     grid: {dataset: [mnist], learner: [er]}}
  tableX:
"""
HEADER = "paper,target,row,column,metric,value,spread,spread_kind,note,digits,authors,authors_sd,authors_runs,source"


@pytest.fixture
def with_costs(folder):
    Path(PAPER).write_text(TEXT[PAPER] + COSTS)


def taken(**more):
    return settings(**{"papers": ["tiny", "away/mine.yaml"], "datasets": ["away/shapes.yaml"]} | more)


def printed_in(code, text=",", other=","):
    """A transcription as another program saves it."""
    printed("tiny,table1,er,mnist,final_accuracy,80,,,")
    Path(PRINTED).write_bytes(Path(PRINTED).read_text().replace(text, other).encode(code))


def authors(old, new):
    """A transcription with the authors' numbers, one of them wrong."""
    line = "tiny,table1,er,mnist,final_accuracy,80,,,,cut,80.7,0.5,5,cell 3"
    printed()
    Path(PRINTED).write_text(f"{HEADER}\n{line.replace(old, new)}\n")


def named(line):
    edit(PAPER, "    grid: {dataset: [mnist, cifar10]", f"{NAMED}    grid: {{dataset: [mnist, cifar10]")
    printed(f"tiny,table1,{line},80,,,")


def curve(along, row):
    memory = ", budget.memory: [5, 10]" if "memory" in along else ""
    edit(PAPER, "    grid: {", f"    along: {along}\n    grid: {{")
    edit(PAPER, "learner: [er, ace]", f"learner: [er, ace]{memory}")
    printed(f'tiny,table1,"{row}",mnist,final_accuracy,80,,,')


test_refused, test_unedited = refusals.tests("config", vars(tiny_paper) | globals())


@pytest.mark.parametrize(
    ("along", "row"),
    [
        ("time", "er, time 3"),
        ("time", "ace, time 0.5"),
        ("budget.memory", "er, budget.memory 5"),
        ("budget.memory", "ace, budget.memory 10"),
    ],
)
def test_a_row_of_a_curve_may_be_any_place_on_it(folder, along, row):
    curve(along, row)
    assert plan().targets["tiny/table1"].reported == Path(PRINTED)


@pytest.mark.parametrize("number", ["0", "-1", "+7", "10", "1.0e+30", "1.0e-8", ".5", "1.", "-0.0", "2147483647"])
def test_plain_numbers_are_read(number):
    assert read_text(f"key: {number}\nother: 0o17\n", "here") == {"key": float(number), "other": "0o17"}
