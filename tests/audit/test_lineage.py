"""The ancestry of files and of single numbers: complete, narrowed rightly, and it sees tampering."""

import hashlib
import json
from pathlib import Path

import pytest

from clpapers import cli
from clpapers.audit import lineage
from clpapers.audit.lineage import of_cell, text, tree
from clpapers.catalogue.names import named, row_and_column
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers
from clpapers.metrics.factors import flat
from clpapers.provenance import Files, ProvenanceError, read_record, record_path, recording, write_text
from clpapers.targets.cost_table import ratio_name


def make(stage, output, inputs=(), content="", data=None):
    """Run one stage."""
    with recording(stage, [Path(output)], [Path(path) for path in inputs], "c0de") as record:
        write_text(output, content or f"{stage} of {list(inputs)}")
        if data:
            record["data"] = data


OF_ALL = {"owner": "someone", "licence": "some", "partial": False}
MNIST = {"source": "standin", "proof": "none", "standin": True, "sha256": {"train": "aa", "test": "bb"}}
CIFAR = {"source": "npm", "proof": "checksum", "standin": False, "sha256": {"train": "cc", "test": "dd"}}
MNIST, CIFAR = {"mnist": MNIST | OF_ALL}, {"cifar10": CIFAR | OF_ALL}


@pytest.fixture
def chain(tmp_path, monkeypatch):
    """Two data sets, a stream and a run on each, one table of both."""
    monkeypatch.chdir(tmp_path)
    for name, facts in (("mnist", MNIST), ("cifar10", CIFAR)):
        make("datasets", f"results/{name}.npz", data=facts)
        make("streams", f"results/{name}-stream.npz", [f"results/{name}.npz"])
        make("runs", f"results/{name}-run.json", [f"results/{name}.npz", f"results/{name}-stream.npz"])
    Path("config").mkdir()
    Path("config/reported.csv").write_text("80.1")
    make("targets", "results/table.csv", ["results/mnist-run.json", "results/cifar10-run.json", "config/reported.csv"])
    return "results/table.csv"


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


def test_a_file_edited_by_hand_is_told(chain):
    Path("results/mnist-stream.npz").write_text("tampered with")
    remarks = {path: remark for _, path, remark in listed(chain)}
    assert remarks["results/mnist-stream.npz"] == "NOT AS RECORDED"
    assert [path for path, remark in remarks.items() if "RECORDED" in remark or "CHANGED" in remark] == [
        "results/mnist-stream.npz"
    ]


def test_the_file_asked_for_is_checked_too(chain):
    Path(chain).write_text("99.9")
    assert listed(chain)[0] == (0, chain, "NOT AS RECORDED")


def test_an_input_made_anew_since_is_told(chain):
    make("streams", "results/mnist-stream.npz", ["results/mnist.npz"], content="another seed")
    assert {path: remark for _, path, remark in listed(chain)}[
        "results/mnist-stream.npz"
    ] == "CHANGED since it was read"


def test_a_missing_ancestor_is_told(chain):
    Path("results/mnist-stream.npz").unlink()
    assert "    results/mnist-stream.npz  MISSING" in list(text(tree(chain)))


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


def test_several_trees_can_share_what_was_hashed(chain):
    read = Files()
    once = tree(chain, read)
    assert files(once) <= {path for path, digest in read.digests.items() if digest}
    Path(chain).write_text("edited since")
    assert tree(chain, read) == once


# --- of a number ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plan():
    return Plan("smoke", all_papers())


def tables(plan, part):
    return [t for t in plan.targets.values() if t.spec["kind"] == "table" and getattr(t, part)]


def behind(target, row, column, display=True):
    return lineage._part_of_number(target, row, column, display=display)


def test_every_number_of_every_table_of_runs_is_of_its_own_cells(plan):
    for target in tables(plan, "cells"):
        spec, (down, across) = target.spec, row_and_column(target.spec)
        for factors, cell in target.cells:
            row, column = (named(spec, flat(factors)[key]) for key in (down, across))
            taken = behind(target, row, column).cells
            assert (factors, cell) in taken
            assert len(taken) < len(target.cells) or len(target.cells) == 1
            for others, _ in taken:
                assert named(spec, flat(others)[across]) == column
                if others["learner"] != spec.get("ideal"):
                    assert named(spec, flat(others)[down]) == row


def test_a_guess_is_averaged_over_its_column(plan):
    target = plan.targets["rules/table1"]
    column = {named(target.spec, factors["oracle"]) for factors, _ in target.cells}
    for name in column:
        taken = behind(target, "Random guess (expected)", name).cells
        assert len(taken) == sum(named(target.spec, factors["oracle"]) == name for factors, _ in target.cells)


def test_what_a_number_is_divided_by_is_behind_it_too(plan):
    target = plan.targets["streaming/table1_cifar100"]
    factors, _ = next(each for each in target.cells if each[0]["learner"] != target.spec["ideal"])
    row, column = (named(target.spec, flat(factors)[key]) for key in ("learner", "order"))
    taken = [each["learner"] for each, _ in behind(target, row, column).cells]
    assert sorted(taken) == sorted([factors["learner"], target.spec["ideal"]])


def test_ratios_are_of_their_two_learners(plan):
    (target,) = [each for each in tables(plan, "cells") if each.spec.get("ratios")]
    for pair in target.spec["ratios"]:
        column = named(target.spec, target.cells[0][0]["dataset"])
        taken = behind(target, ratio_name(target.spec, pair), column).cells
        assert {each["learner"] for each, _ in taken} == set(pair)
        assert {named(target.spec, each["dataset"]) for each, _ in taken} == {column}


def test_selections_streams_and_nets(plan):
    for target in tables(plan, "selections"):
        for factors, search in target.selections:
            assert behind(target, factors["learner"], factors["dataset"], False).selections == ((factors, search),)
    for target in tables(plan, "streams"):
        for dataset in {each for each, *_ in target.streams}:
            taken = behind(target, "anything", named(target.spec, dataset)).streams
            assert {each for each, *_ in taken} == {dataset}
    for target in tables(plan, "nets"):
        for net in target.spec["nets"]:
            assert behind(target, net, "", False).spec["nets"] == [net]


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


def test_what_a_table_does_not_have_is_refused_with_what_it_has(here, capsys):
    file = "results/mini/targets/mini/table1.csv"
    for cell, line in (
        ("Mir,MNIST", f"{file}: no row 'Mir'; there are: 'ER', 'ACE', 'Random guess (expected)'"),
        ("ER,CIFAR", f"{file}: no column 'CIFAR'; there are: 'MNIST'"),
        *(
            (cell, f"{file}: --cell {cell!r}: give a table, and ROW,COLUMN as its CSV names them")
            for cell in ("ER", "", "ER,MNIST,x", "x\ny,z", "x,y\n", "\n", "\x1b[2J,MNIST", "\x85,MNIST", "\udcff,MNIST")
        ),
        ("," * 9, f"{file}: --cell {',' * 9!r}: give a table, and ROW,COLUMN as its CSV names them"),
        ('"ER,MNIST', f"{file}: --cell '\"ER,MNIST': give a table, and ROW,COLUMN as its CSV names them"),
    ):
        assert cli.main(["lineage", file, "--cell", cell]) == 2
        assert capsys.readouterr().err == f"clpapers: {line}\n"
    plan = Plan("mini", all_papers())
    with pytest.raises(ConfigError, match="a figure has no cells"):
        of_cell(plan, plan.targets["mini/figure1"], "a", "b")
    Path(file).unlink()
    with pytest.raises(ProvenanceError, match="no such file; build it with snakemake"):
        of_cell(plan, plan.targets["mini/table1"], "ER", "MNIST")


def test_the_command_tells_it_as_text_and_json(here, capsys):
    file = "results/mini/targets/mini/table1.md"
    assert cli.main(["lineage", file, "--cell", "ER,MNIST"]) == 0
    assert capsys.readouterr().out.startswith("ER, MNIST\n    row ER, column MNIST, metric final_accuracy, mean ")
    assert cli.main(["lineage", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["path"] == file
