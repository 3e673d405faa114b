"""Where a cell's values come from: each is what stands in the file and the line that it names."""

import re
from pathlib import Path

import pytest
import yaml

from clpapers.cli import main
from clpapers.config.facts import Facts
from clpapers.config.origins import _cells, _leaves, _Trace
from clpapers.config.settings import all_papers
from clpapers.config.targets import read_paper

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def root(monkeypatch):
    monkeypatch.chdir(ROOT)


def of_all_cells(scale, paper):
    """The cells of a paper by hash, each with its origins by key."""
    read, lines = read_paper(Facts(scale), paper), {}
    return {
        cell.hash: (cell, {origin.key: origin for origin in _Trace(read.grid, *rest, lines).origins(cell)})
        for cell, *rest in _cells(read)
    }


@pytest.mark.parametrize("scale", ["smoke", "paper"])
@pytest.mark.parametrize("paper", ["stf", "rules", "desiderata", "streaming", "agem"])
def test_every_value_stands_where_its_origin_says(scale, paper):
    assert paper in all_papers()
    compared, texts = 0, {}
    for cell, origins in of_all_cells(scale, paper).values():
        assert {key: origin.value for key, origin in origins.items()} == {
            ".".join(path): value for path, value in _leaves(cell.spec)
        }
        for key, value, place, layer in origins.values():
            assert layer
            if place == "derived":
                assert key.startswith(("oracle.", "restriction.", "learner.name", "selection.")) or "oracles" in key
                continue
            file, line = place.split(":")
            if file not in texts:
                texts[file] = Path(file).read_text().splitlines()
            text = texts[file][int(line) - 1]
            found = re.findall(rf"\b{re.escape(key.rpartition('.')[2])}\"?: ([^,}}#&[{{]+)", text)
            if found and key not in ("order.mu_sigma", "dataset", "learner.name"):
                compared += 1
                assert value in map(yaml.safe_load, found), (place, key)
            else:
                assert found or key.split(".")[-1] in text or str(value) in text, (place, key)
    assert compared > 100


def test_the_command_prints_the_file_the_line_and_the_layer_of_each_value(capsys):
    (hash_,) = [h for h, (cell, _) in of_all_cells("smoke", "stf").items() if named(cell, "emnist", "er", 0.0120281)]
    assert main(["cell", hash_, "--scale", "smoke"]) == 0
    printed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    stf, smoke = (Path(f"config/{name}.yaml").read_text().splitlines() for name in ("papers/stf", "scales/smoke"))
    rate = 1 + next(i for i, line in enumerate(stf) if line.strip().startswith("learning_rate: 0.1"))
    memory = 1 + next(i for i, line in enumerate(smoke) if line.strip().startswith("emnist: {order"))
    assert re.split("  +", printed["budget.learning_rate"])[1:] == [
        "0.1", f"config/papers/stf.yaml:{rate}", "defaults.budget"
    ]  # fmt: skip
    assert re.split("  +", printed["budget.memory"])[1:] == [
        "20", f"config/scales/smoke.yaml:{memory}", "papers.stf.datasets.emnist.budget"
    ]  # fmt: skip
    assert re.search(
        r"datasets\.emnist\.order: 0\.0240563, times 0\.5 of config/papers/stf\.yaml:\d+ "
        r"targets\.figure3\.grid\.order\.mu_sigma_factor$",
        printed["order.mu_sigma"],
    )
    assert printed["restriction.train"].endswith("all classes compete: er looks at no competing classes")


def named(cell, dataset, learner, mu_sigma):
    spec = cell.spec
    return (spec["dataset"], spec["learner"]["name"], spec["order"].get("mu_sigma")) == (dataset, learner, mu_sigma)


def test_a_hash_that_no_cell_has_is_refused_in_one_line(capsys):
    assert main(["cell", "0123456789", "--scale", "smoke"]) == 2
    assert capsys.readouterr().err == (
        "clpapers: 0123456789: no cell at scale smoke has this hash; results/smoke/runs/index.csv lists them; "
        "for another scale, add --scale\n"
    )
