"""The console: what `--help` lists, names of targets, where it is run, and streams written to a folder of one's own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from world import ROOT

from clpapers.budget import costs
from clpapers.cli import main
from clpapers.cli.commands import MAKING
from clpapers.cli.streams import write
from clpapers.config.facts import Facts
from clpapers.config.files import read_text
from clpapers.config.plan import Plan
from clpapers.datasets.arrays import Split, save
from clpapers.streams import orders
from clpapers.streams.stream import ITEM_ORDER, load

SMOKE = ["--paper", "stf", "--scale", "smoke"]


def said_by(capsys, *arguments):
    """Exit status, standard output and the lines of standard error of a command."""
    try:
        code = main(list(arguments))
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    return code, out, err.splitlines()


def test_the_help_lists_what_people_use_and_names_the_stages_below(capsys):
    _, text, _ = said_by(capsys, "--help")
    listed, below = text.split("further commands each make one file")
    assert {"lineage", "stream", "audit", "export"} <= {line.split()[0] for line in listed.splitlines() if line.strip()}
    for name, *_ in MAKING:
        assert f"\n    {name} " not in listed
        assert name in below.replace(",", " ").split()


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("clpapers.cli targets --scale smoke stf", 141),
        ("clpapers.cli --help", 141),
        ("clpapers.cli.snakemake -n streaming/unknown --config scale=smoke", -signal.SIGPIPE),
    ],
)
def test_a_reader_that_leaves_early_gets_no_traceback(command, status, monkeypatch):
    """As `| head -0` does: the pipe is closed before anything is written."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # argparse itself would be told, and says nothing
    read, write = os.pipe()
    os.close(read)
    given = {"cwd": ROOT, "env": os.environ | {"PYTHONPATH": str(ROOT / "src")}}
    done = subprocess.run([sys.executable, "-m", *command.split()], stdout=write, stderr=subprocess.PIPE, **given)
    os.close(write)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    assert status < 0 or not done.stderr


def test_a_training_refuses_a_stream_of_other_items(unbuilt, capsys):
    """The data set was made anew, of other images, after the stream."""
    streams = [f"results/smoke/streams/cifar10/stf-0.057735-n60/seed{seed}.npz" for seed in (0, 1)]
    data, scale = "results/smoke/datasets/cifar10.npz", Path("config/scales/smoke.yaml")
    assert main(["dataset", "--out", data]) == 0
    for file in streams:
        assert main(["stream", "--out", file]) == 0
    text, old = scale.read_text(), "cifar10: {train_per_class: 12,"
    assert old in text
    scale.unlink()
    scale.write_text(text.replace(old, "cifar10: {train_per_class: 13,"))
    assert main(["dataset", "--out", data]) == 0
    capsys.readouterr()
    cell = "results/smoke/runs/cifar10/stf-0.057735-n60/er-3a53be494d/seeds0-1.json"
    code, _, err = said_by(capsys, "train", "--out", cell)
    assert (code, len(err)) == (2, 1)
    assert err[0].startswith(f"clpapers: {streams[0]}: its indices point into cifar10 with checksum ffe3bb009931…, ")
    assert err[0].endswith("delete it and build it again")


# --- streams ---------------------------------------------------------------------------------------------------


def test_streams_are_written_to_a_folder_of_ones_own(unbuilt, capsys):
    assert main(["stream", *SMOKE, "--dataset", "cifar10", "--seeds", "3-5", "--out", "mine"]) == 0
    place = Path("mine/cifar10/stf-0.057735-n60")
    assert capsys.readouterr().out.startswith(f"{place}: 3 streams, cifar10 {ITEM_ORDER}, checksum ffe3bb009931")
    assert sorted(file.name for file in place.iterdir()) == ["seed3.npz", "seed4.npz", "seed5.npz"]
    assert os.listdir("mine") == ["cifar10"]  # no data set is left
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("given", "seeds"), [(["1"], [1]), (["0,2"], [0, 2]), (["0", "2"], [0, 2]), (["0-1,3"], [0, 1, 3])]
)
def test_a_seed_a_range_and_a_list_are_taken(given, seeds, unbuilt):
    arguments = ["stream", *SMOKE, "--dataset", "toy-3-2", "--order", "{name: random}", "--out", "mine", "--seeds"]
    assert main([*arguments, *given]) == 0
    made = sorted(Path("mine").rglob("*.npz"))
    assert [path.name for path in made] == [f"seed{seed}.npz" for seed in seeds]
    assert load(made[0]).data == ("toy-3-2", "as in its file", "")  # a toy needs no data


def test_they_are_the_pipelines_bytes(unbuilt, capsys):
    path = Path("results/smoke/streams/cifar10/stf-0.057735-n60/seed1.npz")
    assert main(["dataset", "--out", "results/smoke/datasets/cifar10.npz"]) == 0
    assert main(["stream", "--out", str(path)]) == 0
    assert main(["stream", *SMOKE, "--dataset", "cifar10", "--seeds", "1-1", "--out", "mine"]) == 0
    assert Path("mine", *path.parts[3:]).read_bytes() == path.read_bytes()


def test_an_order_is_laid_over_the_papers(unbuilt):
    order = ["--order", "{name: split, tasks: 5, length: 50}"]
    assert main(["stream", *SMOKE, "--dataset", "cifar10", "--seeds", "0-0", *order, "--out", "mine"]) == 0
    made = load("mine/cifar10/split-5-n50/seed0.npz")
    labels = np.repeat(np.arange(10), 12)  # of the stand-in
    expected = orders.make({"name": "split", "tasks": 5, "length": 50}, labels, 0)
    np.testing.assert_array_equal(made.indices, expected.indices)
    np.testing.assert_array_equal(made.boundaries, expected.boundaries)


@pytest.mark.parametrize(
    ("paper", "dataset", "order"),
    [
        ("stf", "cifar100", "{name: stf, mu_sigma: 0.1, length: null}"),
        ("stf", "cifar10", "{name: split, tasks: 5, length: null}"),
        ("agem", "mnist", "{name: permuted_pixels, tasks: 2, length: 1000}"),
    ],
)
def test_with_the_sizes_of_classes_no_images_are_needed(paper, dataset, order, unbuilt):
    """The same bytes as from a file of such labels."""
    facts = Facts("paper")
    of_set = facts.datasets[dataset]
    images = np.zeros((of_set["train"], 1, 1, 1), np.uint8)
    sizes = facts.class_sizes(dataset)
    splits = {split: Split(images[: sum(each)], np.repeat(np.arange(len(each)), each)) for split, each in sizes.items()}
    save(Path("set.npz"), splits, of_set["classes"])
    told = ["--paper", paper, "--scale", "paper", "--seeds", "1-1", "--dataset", dataset, "--order", order]
    assert main(["stream", *told, "--out", "mine"]) == 0
    assert not Path("results").exists()
    (made,) = Path("mine").rglob("seed1.npz")
    data = dataset, ITEM_ORDER, of_set["sha256"]["train"]
    assert load(made).data == data
    write(facts, dataset, read_text(order, "order"), 1, Path("other.npz"), (Path("set.npz"), data))
    assert Path("other.npz").read_bytes() == made.read_bytes()


@pytest.mark.slow
def test_rehearsals_are_of_targets_or_of_cells_by_hash(unbuilt):
    """One of each kind that the table lacks."""
    plan, table = Plan("smoke", ["stf"]), Path("results/smoke/costs.csv")
    table.parent.mkdir(parents=True)
    rows = {}
    for cell in {cell.hash: cell for _, cell in plan.targets["stf/table1"].cells}.values():
        shape = plan.datasets[cell.spec["dataset"]]["shape"]
        rows[cell] = costs.Row(costs.kind(cell.spec, shape, len(plan.blocks(cell)[0])), 1, *[1.0] * 4, "", 0.5, "a")
    lacking = {cell: row.kind for cell, row in rows.items() if row.kind.learner == "er"}
    one = next(iter(lacking))
    for name, measured in ((one.hash, {lacking[one]}), ("stf/table1", set(lacking.values()))):
        table.write_text(costs.text({row.kind: row for cell, row in rows.items() if cell not in lacking}.values()))
        assert main(["rehearse", name, "--scale", "smoke", "--papers", "rules", "--seconds", "0.05"]) == 0
        assert {row.kind for row in costs.read(table) if row.kind.learner == "er"} == measured


@pytest.mark.slow
def test_next_says_what_a_build_would_train_and_what_that_decides(unbuilt, capsys):
    def said(*words):
        assert main(["next", "--scale", "smoke", *words]) == 0
        heads, *steps, empty, told, decides = capsys.readouterr().out.splitlines()
        assert heads.split() == ["takes", "so", "far", "paper", "runs", "→", "what", "they", "would", "decide"]
        assert empty == ""
        assert told.startswith("0 runs are there; training ")
        assert decides.startswith("would decide ")
        return steps, told

    whole, _ = said("--hours", "all", "stf")
    steps, _ = said("--hours", "0.001", "stf")
    assert 0 < len(steps) < len(whole)
    assert all(" stf " in step and " → " in step for step in steps)  # more seeds of what is compared, too
    assert any("→ stf/table1: " in step for step in steps)
    steps, whole = said("stf/table1")  # without hours, as a build of it
    assert all(" stf/table1" in step or " → claim " in step for step in steps)
    fewer, told = said("--hours", "0.001", "stf/table1")
    assert fewer == steps[: len(fewer)] != steps
    assert told != whole
