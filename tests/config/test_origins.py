"""Where a cell's values come from: each is what stands in the file and the line that it names."""

import functools
import re
from pathlib import Path

import pytest
import yaml

from clpapers.cli import main
from clpapers.config.origins import origins
from clpapers.config.plan import Plan

ROOT = Path(__file__).parents[2]
NOT_IN_A_LINE = ("order.mu_sigma", "dataset", "learner.name")  # by themselves


@pytest.fixture(autouse=True)
def root(monkeypatch):
    monkeypatch.chdir(ROOT)


def leaves(block, path=""):
    """The values of a cell by their dotted keys."""
    inner = [leaves(v, f"{path}{k}.") if isinstance(v, dict) and v else {f"{path}{k}": v} for k, v in block.items()]
    return functools.reduce(dict.__or__, inner, {})


@pytest.mark.parametrize(
    ("paper", "scale"),
    [("agem", "paper"), ("desiderata", "smoke"), ("rules", "smoke"), ("stf", "smoke"), ("streaming", "smoke")],
)
def test_every_value_stands_where_its_origin_says(paper, scale):
    """Each key of the paper's cells in one of them at least."""
    compared, seen = 0, set()
    for cell in sorted(Plan(scale, [paper]).cells.values(), key=lambda cell: -len(leaves(cell.spec))):
        if leaves(cell.spec).keys() <= seen:
            continue
        seen |= leaves(cell.spec).keys()
        found = origins(scale, cell.hash)
        assert {origin.key: origin.value for origin in found} == leaves(cell.spec)
        for key, value, place, layer in found:
            assert layer
            if place == "derived":
                assert key.startswith(("oracle.", "restriction.", "learner.name", "selection.")) or "oracles" in key
                continue
            file, line = place.split(":")
            text = Path(file).read_text().splitlines()[int(line) - 1]
            stated = re.findall(rf"\b{re.escape(key.rpartition('.')[2])}\"?: ([^,}}#&[{{]+)", text)
            if stated and key not in NOT_IN_A_LINE:
                compared += 1
                assert value in map(yaml.safe_load, stated), (place, key)
            else:
                assert stated or key.split(".")[-1] in text or str(value) in text, (place, key)
    assert compared > 20


def line_of(file, begins):
    lines = Path(file).read_text().splitlines()
    return f"{file}:{1 + next(i for i, line in enumerate(lines) if line.strip().startswith(begins))}"


def test_the_command_prints_the_file_the_line_and_the_layer_of_each_value(capsys):
    wanted = {"dataset": "emnist", "learner.name": "er", "order.mu_sigma": 0.0120281}
    (cell,) = (each for each in Plan("smoke", ["stf"]).cells.values() if wanted.items() <= leaves(each.spec).items())
    assert main(["cell", cell.hash, "--scale", "smoke"]) == 0
    printed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    for key, value, place, layer in (
        ("learning_rate", "0.1", line_of("config/papers/stf.yaml", "learning_rate: 0.1"), "defaults.budget"),
        ("memory", "20", line_of("config/scales/smoke.yaml", "emnist: {order"), "papers.stf.datasets.emnist.budget"),
    ):
        assert re.split("  +", printed[f"budget.{key}"])[1:] == [value, place, layer]
    assert re.search(
        r"datasets\.emnist\.order: 0\.0240563, times 0\.5 of config/papers/stf\.yaml:\d+ "
        r"targets\.figure3\.grid\.order\.mu_sigma_factor$",
        printed["order.mu_sigma"],
    )
    assert printed["restriction.train"].endswith("all classes compete: er looks at no competing classes")
