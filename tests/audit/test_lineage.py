"""The ancestry of files and of single numbers: complete, narrowed rightly, and it sees tampering."""

# ruff: noqa: F401, F811, a fixture
import hashlib
import json
from pathlib import Path

import pandas as pd
import pytest
from test_provenance import MNIST, chain, make

from clpapers import cli
from clpapers.audit.lineage import of_cell, text, tree
from clpapers.catalogue.names import named, row_and_column
from clpapers.config.paths import stream_path
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.metrics.factors import flat
from clpapers.provenance import Files, read_record, record_path
from clpapers.targets.cost_table import ratio_name

# --- of a file -----------------------------------------------------------------------------------------------


def listed(path):
    """The lines of the lineage that name files, without their digests: (depth, path, remarks)."""
    lines = [line for line in text(tree(path)) if line.split()[0].startswith(("results/", "config/"))]
    short = [(len(line) - len(line.lstrip()), line.split()) for line in lines]
    return [(depth // 2, words[0], " ".join(words[2:]) if len(words) > 2 else "") for depth, words in short]


def test_the_ancestry_goes_down_to_the_data(chain):
    assert listed(chain) == [
        (0, "results/table.csv", ""),
        (1, "results/mnist-run.json", ""),
        (2, "results/mnist.npz", ""),
        (2, "results/mnist-stream.npz", ""),
        (3, "results/mnist.npz", "(see above)"),
        (1, "results/cifar10-run.json", ""),
        (2, "results/cifar10.npz", ""),
        (2, "results/cifar10-stream.npz", ""),
        (3, "results/cifar10.npz", "(see above)"),
        (1, "config/reported.csv", "no record"),
    ]
    said = "\n".join(text(tree(chain)))
    assert "data mnist from standin, none: train aa, test bb" in said
    assert "data cifar10 from npm, checksum: train cc, test dd" in said
    assert said.count("code c0de at ") == 7
    digest = hashlib.sha256(Path(chain).read_bytes()).hexdigest()[:12]
    assert said.startswith(f"{chain}  {digest}\n")


def test_a_record_that_was_read_is_an_ancestor_of_the_same_data(chain):
    make("metrics", "results/costs.csv", ["results/mnist-run.json", "results/mnist-run.record.json"])
    assert record_path("results/mnist-run.record.json") == Path("results/mnist-run.record.json")
    assert read_record("results/costs.csv")["data"] == MNIST
    assert listed("results/costs.csv")[-1] == (1, "results/mnist-run.record.json", "")
    make("runs", "results/mnist-run.json", ["results/mnist.npz"])
    assert listed("results/costs.csv")[-1] == (1, "results/mnist-run.record.json", "CHANGED since it was read")


STREAM = "results/mnist-stream.npz"


@pytest.mark.parametrize(
    ("change", "path", "remark"),
    [
        (lambda: Path(STREAM).write_text("tampered with"), STREAM, "NOT AS RECORDED"),
        (lambda: Path("results/table.csv").write_text("99.9"), "results/table.csv", "NOT AS RECORDED"),
        (
            lambda: make("streams", STREAM, ["results/mnist.npz"], content="another seed"),
            STREAM,
            "CHANGED since it was read",
        ),
        (lambda: Path(STREAM).unlink(), STREAM, ""),
    ],
    ids=["edited", "edited itself", "made anew", "missing"],
)
def test_what_was_tampered_with_is_told_and_nothing_else(change, path, remark, chain):
    before = dict.fromkeys(files(tree(chain)), "")
    change()
    remarks = {path: remark for _, path, remark in listed(chain) if "see above" not in remark}
    assert remarks == before | {"config/reported.csv": "no record", path: remark}
    assert ("    results/mnist-stream.npz  MISSING" in list(text(tree(chain)))) == (not remark)


def files(node):
    """The paths of a tree."""
    return {node["path"]}.union(*map(files, node.get("inputs", [])))


def test_a_tree_holds_what_records_say(chain):
    node, record = tree(chain), read_record(chain)
    assert node["state"] == "as recorded"
    for key in ("stage", "command", "code", "started", "wall_seconds", "cpu_seconds", "peak_memory_bytes", "data"):
        assert node[key] == record[key]
    assert (node["commit"], node["dirty"]) == tuple(record["git"].values())
    assert [each["path"] for each in node["inputs"]] == [each["path"] for each in record["inputs"]]
    (again,) = node["inputs"][0]["inputs"][1]["inputs"]
    assert again == {**{key: again[key] for key in ("path", "sha256")}, "state": "as recorded", "seen": True}
    assert files(tree(chain, keep=lambda path: "cifar10" not in path)) == {
        *("results/table.csv", "results/mnist-run.json", "results/mnist.npz", "results/mnist-stream.npz"),
        "config/reported.csv",
    }


# --- of a number ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plan():
    return Plan("smoke", all_papers())


def tables(plan, part):
    return [t for t in plan.targets.values() if t.spec["kind"] == "table" and getattr(t, part)]


def written(target, heads, numbers, inputs=()):
    """Make a table of numbers by their row and column, in a folder where it and its inputs alone are built."""
    for path in inputs:
        make("made before", path)
    csv = pd.DataFrame(numbers, columns=heads).to_csv(index=False)
    make("targets", target.stem.with_name(f"{target.name}.csv"), inputs, csv)


@pytest.fixture
def behind(plan, tmp_path, monkeypatch):
    """The factors of the cells behind some numbers of a table, by row and column as it prints them."""
    monkeypatch.chdir(tmp_path)

    def found(target, *numbers, heads=("row", "column")):
        written(target, heads, numbers)
        return [[each["factors"] for each in of_cell(plan, target, *number)["cells"]] for number in numbers]

    return found


def test_every_number_of_every_table_of_runs_is_of_its_own_cells(plan, behind):
    for target in tables(plan, "cells"):
        spec, (down, across) = target.spec, row_and_column(target.spec)
        numbers = [tuple(named(spec, flat(factors)[key]) for key in (down, across)) for factors, _ in target.cells]
        for (factors, _), (row, column), taken in zip(target.cells, numbers, behind(target, *numbers)):
            assert factors in taken
            assert len(taken) < len(target.cells) or len(target.cells) == 1
            for others in taken:
                assert named(spec, flat(others)[across]) == column
                if others["learner"] != spec.get("ideal"):
                    assert named(spec, flat(others)[down]) == row


def test_a_guess_is_averaged_over_its_column(plan, behind):
    target = plan.targets["rules/table1"]
    column = {named(target.spec, factors["oracle"]) for factors, _ in target.cells}
    for name in column:
        (taken,) = behind(target, ("Random guess (expected)", name))
        assert taken == [factors for factors, _ in target.cells if named(target.spec, factors["oracle"]) == name]


def test_what_a_number_is_divided_by_is_behind_it_too(plan, behind):
    target = plan.targets["streaming/table1_cifar100"]
    factors, _ = next(each for each in target.cells if each[0]["learner"] != target.spec["ideal"])
    (taken,) = behind(target, tuple(named(target.spec, flat(factors)[key]) for key in ("learner", "order")))
    assert sorted(each["learner"] for each in taken) == sorted([factors["learner"], target.spec["ideal"]])


def test_ratios_are_of_their_two_learners(plan, behind):
    (target,) = [each for each in tables(plan, "cells") if each.spec.get("ratios")]
    for pair in target.spec["ratios"]:
        column = named(target.spec, target.cells[0][0]["dataset"])
        (taken,) = behind(target, (ratio_name(target.spec, pair), column))
        assert {each["learner"] for each in taken} == set(pair)
        assert {named(target.spec, each["dataset"]) for each in taken} == {column}


def test_a_selected_number_is_of_its_own_search(plan, behind):
    for target in tables(plan, "selections"):
        pairs = [(factors["learner"], factors["dataset"]) for factors, _ in target.selections]
        found = behind(target, *pairs, heads=("learner", "dataset"))
        assert found == [[factors for factors, _ in search.points] for _, search in target.selections]


def test_of_a_number_s_streams_and_nets_only_its_own_are_behind_it(plan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for target in tables(plan, "nets"):
        places = {net: str(plan.net_file(target.paper, net)) for net in target.spec["nets"]}
        written(target, ["net", "parameters"], [(net, 1) for net in places], places.values())
        for net, place in places.items():
            assert files(of_cell(plan, target, net, "")) & {*places.values()} == {place}
    for target in tables(plan, "streams"):
        places = {stream[0]: str(stream_path(plan.scale, *stream)) for stream in target.streams}
        names = {dataset: named(target.spec, dataset) for dataset in places}
        written(target, ["row", "column"], [("anything", name) for name in names.values()], places.values())
        for dataset, name in names.items():
            assert files(of_cell(plan, target, "anything", name)) & {*places.values()} == {places[dataset]}


@pytest.mark.parametrize(
    ("table", "row", "column", "present", "absent"),
    [
        ("table1", "ACE", "MNIST", "/ace-", "/er-"),
        ("table1", "ER", "MNIST", "/er-", "/ace-"),
        ("table1", "Random guess (expected)", "MNIST", "/ace-", "nothing"),
        ("table2", "cifar10", "", "nets/mini/cifar10.json", "/mnist/"),
        ("table3", "er", "mnist", "selection/mini/mnist-er.json", "/ace-"),
    ],
)
def test_a_number_of_what_is_built(here, table, row, column, present, absent):
    plan = Plan("mini", all_papers())
    node = of_cell(plan, plan.targets[f"mini/{table}"], row, column)
    assert (node["row"], node["column"], node["narrowed"]) == (row, column, True)
    assert node["value"]
    assert any(present in path for path in files(node))
    assert not any(absent in path for path in files(node))
    assert f"results/mini/metrics/mini/{table}.csv" in files(node)
    for cell in node["cells"]:
        assert cell["cell"] in plan.cells
        assert "selected" not in json.dumps(cell["settings"]["budget"])  # what the search chose stands there
    json.dumps(node)
