"""A file of results is read where it has what training writes, and refused in a line that says where it lacks it."""

import json
import zipfile
from pathlib import Path

import pytest
from tiny import CPU, cell
from world.published import entry_of, result_of

from clpapers.archive.imported import RUN
from clpapers.runs import loop
from clpapers.runs.result_schema import ALWAYS, ASKED, results

ROOT = Path(__file__).parents[2]


def read(content):
    return results(json.dumps(content).encode())


def test_what_training_writes_is_read(data, streams):
    spec = cell("single", {}, "mlp")
    whole = {"cell": spec, "seeds": [*loop.train(spec, data, streams, CPU), {"seed": 4, "out_of_memory": True}]}
    assert read(whole) == (spec, {entry["seed"]: entry for entry in whole["seeds"]})
    assert {*ALWAYS, "seed", "memory", "oracle"} == {*whole["seeds"][0]}  # metrics read nothing of these three


@pytest.mark.slow
@pytest.mark.parametrize("crate", sorted((ROOT / "results/published").glob("*.zip")), ids=lambda path: path.stem)
def test_so_is_all_that_is_published(crate):
    with zipfile.ZipFile(crate) as archive:
        found = [results(archive.read(name)) for name in archive.namelist() if RUN.fullmatch(name)]
    assert found
    assert all(seeds for _, seeds in found)


@pytest.mark.parametrize("section", [*ALWAYS, *ASKED])
def test_a_section_that_lacks_is_named_with_its_seed(section):
    entry = entry_of(7)
    del entry[section]
    whole = result_of(entry_of(0), entry)
    with pytest.raises(ValueError, match=rf"^is no result of runs \(seed 7: no {section}\)$"):
        read(whole)
    whole["cell"]["evaluation"] |= {"every": None, "shots": None}
    if section in ASKED:  # which its cell does not ask for any more
        assert read(whole)[1][7] == entry


def test_every_metric_can_be_computed_of_what_is_read():
    """By hand: 6 of 16 right; after two tasks 4 of 8 and 8 of 8; 3 right of 16 of the classes seen, and so on."""
    from clpapers.metrics import learning, streaming

    _, seeds = read(result_of())
    run = seeds[0] | {"test": seeds[0]["test"]["none"], "per_class": False}
    assert learning.SCALARS["final_accuracy"](run) == 37.5
    assert learning.SCALARS["online_accuracy"](run) == 50.0
    assert learning.SCALARS["average_accuracy"](run) == 75.0
    assert learning.SCALARS["forgetting"](run) == 0.25  # 6 of 8 right after the first task, 4 in the end
    assert streaming.accuracies(run["events"], True).tolist() == [0.75, 0.375]
    for scalar in learning.SCALARS.values():
        float(scalar(run))
