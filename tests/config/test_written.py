"""Settings, layers of values, seeds and transcriptions are read as they are written."""

import functools
import operator
from pathlib import Path

import pytest
import yaml
from tiny_paper import PAPER, PRINTED, SCALE, TEXT, edit, of_table, plan, printed, settings

from clpapers.config.layers import merge
from clpapers.evidence.comparison import read_reported

pytestmark = pytest.mark.usefixtures("folder")
STF = {"order": {"name": "stf", "mu_sigma": 0.05, "length": 30}}


@pytest.mark.parametrize(
    ("over", "merged"),
    [
        ({"order": {"length": 5}}, {"order": {"name": "stf", "mu_sigma": 0.05, "length": 5}}),
        ({"order": {"name": "split", "tasks": 2}}, {"order": {"name": "split", "tasks": 2, "length": 30}}),
        ({"order": {"name": "random"}}, {"order": {"name": "random", "length": 30}}),
        ({"order": {"name": "stf", "length": None}}, {"order": {"name": "stf", "mu_sigma": 0.05, "length": None}}),
        ({}, STF),
        ({"a": [4], "b": {"y": 5}, "d": 6}, STF | {"a": [4], "b": {"y": 5}, "d": 6}),
    ],
)
def test_a_new_name_keeps_only_the_options_it_takes_lists_are_replaced_and_mappings_merged(over, merged):
    before = repr(STF)
    assert merge(STF, over) == merged
    assert merge(STF | {"a": [1, 2], "b": {"x": 1}, "c": 3}, over).get("b") == {"x": 1} | over.get("b", {})
    assert repr(STF) == before


@pytest.mark.parametrize("case", yaml.safe_load(Path(__file__).with_name("becomes.yaml").read_text()))
def test_what_is_written_becomes_values_of_cells(case):
    for file, old, new in case["edits"]:
        edit({"paper": PAPER, "scale": SCALE}[file], old, new)
    edit(PAPER, "name: stf, mu_sigma: 0.05", f"name: {case.get('order', 'stf, mu_sigma: 0.05')}")
    made = of_table()
    assert plan().targets["tiny/table1"].seeds == range(case.get("last", 3) + 1)
    for name, values in case.get("cells", {}).items():
        for key, value in values.items():
            assert functools.reduce(operator.getitem, key.split("."), made[tuple(name.split())].spec) == value


def measure_of_tasks(metric, order, evaluation="shots: 0, "):
    """Let Table 1 measure a metric of tasks on another order."""
    edit(PAPER, "{points: 3", f"{{{evaluation}points: 3", "[final_accuracy]", f"[{metric}]")
    edit(PAPER, "{name: stf, mu_sigma: 0.05, length: null}", f"{{{order}, length: null}}")


@pytest.mark.parametrize(
    ("metric", "orders"),
    [
        ("forgetting", ["name: split, tasks: 2"]),
        ("lca10", ["name: split, tasks: 1", "name: random"]),
        ("average_accuracy", ["name: split, tasks: 1", "name: random"]),
        ("zero_shot_by_task", ["name: random"]),
    ],
)
def test_a_metric_of_tasks_is_planned_where_it_is_defined(metric, orders):
    for order in orders:
        Path(PAPER).write_text(TEXT[PAPER])
        measure_of_tasks(metric, order)
        assert plan().targets["tiny/table1"].cells


def test_a_row_that_a_scale_leaves_out_is_named_all_the_same():
    edit(SCALE, "    targets: {", "    targets: {table1: {grid: {learner: [er]}}, ")
    printed("tiny,table1,ace,mnist,final_accuracy,80,,,")
    assert plan().targets["tiny/table1"].reported == Path(PRINTED)


@pytest.mark.parametrize("change", ["\r\n", "\r", "\n\n"])
def test_line_ends_of_any_system_are_read(change):
    printed("tiny,table1,er,mnist,final_accuracy,80,,,")
    Path(PRINTED).write_bytes(Path(PRINTED).read_text().replace("\n", change).encode("utf-8-sig"))
    assert plan().targets["tiny/table1"].reported == Path(PRINTED)
    assert read_reported(PRINTED, "tiny", "table1")["value"].tolist() == [80]


@pytest.mark.parametrize(
    ("key", "given", "taken"),
    [
        # hours that YAML leaves a text
        *[("hours", *each) for each in [("1e-3", 0.001), ("8", 8), (".5", 0.5), ("2.", 2), ("1E2", 100)]],
        ("papers", "tiny", ["tiny"]),
        # false as YAML has it where Snakemake leaves a text
        ("published", "false", False),
        ("published", "true", True),
        ("data_folder", "data", "data"),  # the usual one, which need not be there
        *[("data_folder", place, place) for place in ("my data", "./-x", "~/données", "a-b")],
    ],
)
def test_a_setting_is_taken_as_it_is_meant(key, given, taken):
    if given != "data" and key == "data_folder":
        Path(given).mkdir(parents=True)
    assert settings(**{key: given})[key] == taken
    assert type(settings(**{key: given})[key]) is type(taken) or key == "hours"
