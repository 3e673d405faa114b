"""The page at the end of a build: a number of each paper, few words on what is not built, and what runs took."""

import contextlib
import csv
from pathlib import Path

import pandas as pd
import pytest
from test_provenance import make
from world.published import forge

from clpapers.config.plan import Plan
from clpapers.config.settings import project_papers
from clpapers.provenance import ProvenanceError, record_path
from clpapers.report import coverage
from clpapers.report.summary import summary_of

ROOT = Path(__file__).parents[2]
TOLD = {"row": "ER", "column": "CIFAR-10", "metric": "final_accuracy", "printed": "38.4", "decimals": "1"}
TOLD |= {"kind": "trained", "cause": "", "runs": "0123456789", "graded_against": "38.4"}


@pytest.fixture(scope="module")
def plan():
    with contextlib.chdir(ROOT):
        return Plan("paper", project_papers())


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A project with nothing built."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)


def test_every_paper_has_a_number_that_it_prints(plan, monkeypatch):
    monkeypatch.chdir(ROOT)
    shown = [target for target in plan.targets.values() if "headline" in target.spec and target.reported]
    assert sorted(target.paper for target in shown) == sorted(plan.titles)
    for target in shown:
        with target.reported.open(newline="") as file:
            lines = [line for line in csv.DictReader(file) if line["target"] == target.name]
        assert [line for line in lines if target.spec["headline"].items() <= line.items()] != []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"verdict": "near", "ours": "40.83", "n_seeds": "3"}, "38.4; 40.8, runs: 3, near"),
        ({"verdict": "not comparable", "ours": "", "n_seeds": "0"}, "38.4; not run"),
        ({"verdict": "not comparable", "ours": "12.3", "n_seeds": "2"}, "38.4; 12.3, runs: 2, not comparable"),
    ],
)
def test_a_number_stands_beside_its_printed_one(plan, line, said, empty):
    target = plan.targets["stf/table1"]
    for file in target.outputs:
        make("targets", file)
    other = TOLD | {"row": "MIR", "verdict": "same", "ours": "1", "n_seeds": "1"}
    file = target.stem.with_name(f"{target.name}.reported.csv")
    make("targets", file, content=pd.DataFrame([other, TOLD | line]).to_csv(index=False))
    assert f"  stf/table1 ER, CIFAR-10, Fin. Acc.: {said}" in summary_of(plan, ["stf"]).splitlines()
    record_path(file).unlink()
    with pytest.raises(ProvenanceError, match=str(file)):
        summary_of(plan, ["stf"])


def test_of_many_targets_that_are_not_built_five_are_named(plan, empty):
    told = summary_of(plan, ["stf", "agem"]).splitlines()[-1]
    assert told.startswith(("not built: agem/", "not built: stf/"))
    assert told.count("/") == 5
    assert told.endswith(" more")


def test_a_run_whose_record_is_measured_too_counts_once(plan, empty):
    runs = {f"results/paper/runs/mnist/split-5/ewc-0123456789/seed{seed}.json": [seed] for seed in (0, 1)}
    runs["results/paper/imported/mnist/split-5/ewc-0123456789/seeds2-4.json"] = [2, 3, 4]
    for path, seeds in runs.items():
        make("runs", path.replace("imported", "runs"), seeds=seeds)
        record = record_path(path.replace("imported", "runs"))
        forge(record, lambda content: content.update(cpu_seconds=1800, started="2026-11-24T10:00:00"))
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        record.rename(record_path(path))
        Path(path.replace("imported", "runs")).rename(path)
    make("datasets", "results/paper/datasets/mnist.npz")
    inputs = [*runs, *map(record_path, runs), "results/paper/datasets/mnist.npz"]
    make("metrics", plan.targets["agem/table7"].metrics, inputs)
    (covered,) = coverage.coverage(plan, ["agem"])
    assert (covered.runs, covered.imported, covered.hours, covered.latest) == (5, 3, 1.5, "2026-11-24")


LINE = {"kind": "trained", "verdict": "same", "cause": "", "runs": "a", "metric": "m"}
LINE |= {"graded_against": "1", "against_se": ""}


def test_numbers_are_counted_by_kind_and_once_where_runs_are_shared():
    changes = [
        {},
        {},  # the same runs with the same number
        {"graded_against": "2", "verdict": "differs", "cause": "one run"},
        {"verdict": "near", "against_se": "0.5"},  # the same again, with a spread
        {"runs": "b", "kind": "guess"},
        {"runs": "", "kind": "exact"},
        {"runs": "", "kind": "exact"},  # of no runs: never the same ones
        {"runs": "c", "verdict": "not comparable", "cause": "one run"},
    ]
    found = coverage.count([LINE | change for change in changes])
    assert found.compared() == 7
    assert [found.compared(kind) for kind in ("trained", "calibrated", "guess", "exact")] == [4, 0, 1, 2]
    assert found.compared("trained", once=True) == 2
    assert found.grades("trained") == {"same": 0, "near": 1, "open": 0, "differs": 1, "diverges, as printed": 0}
    assert found.weak == {"trained": 1}
    assert coverage.by_kind(found)[-1] == ["all", "7", "1", "5", "3", "1", "0", "1", "0"]
    assert (found + found).compared() == 14
