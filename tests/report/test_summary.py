"""The page at the end of a build: a number of each paper, and few words on what is not built."""

import csv
from pathlib import Path

import pandas as pd
import pytest

from clpapers.config.plan import Plan
from clpapers.config.settings import project_papers
from clpapers.provenance import ProvenanceError
from clpapers.report import coverage
from clpapers.report.summary import _headlines, summary_of

ROOT = Path(__file__).parents[2]
TOLD = {"row": "ER", "column": "CIFAR-10", "metric": "final_accuracy", "printed": "38.4", "decimals": "1"}
TOLD |= {"kind": "trained", "cause": "", "runs": "0123456789", "graded_against": "38.4"}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    plan = Plan("paper", project_papers())
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    return plan


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
def test_a_number_stands_beside_its_printed_one(plan, line, said, monkeypatch):
    other = TOLD | {"row": "MIR", "verdict": "same", "ours": "1", "n_seeds": "1"}
    target = plan.targets["stf/table1"]
    file = target.stem.with_name(f"{target.name}.reported.csv")
    file.parent.mkdir(parents=True)
    pd.DataFrame([other, TOLD | line]).to_csv(file, index=False)
    with pytest.raises(ProvenanceError, match=str(file)):  # no record proves it
        list(_headlines([target]))
    monkeypatch.setattr(coverage, "verified_record", lambda item: None)
    assert list(_headlines([target])) == [f"stf/table1 ER, CIFAR-10, Fin. Acc.: {said}"]


def test_of_many_targets_that_are_not_built_five_are_named(plan):
    told = summary_of(plan, ["stf", "agem"]).splitlines()[-1]
    assert told.startswith("not built: agem/") or told.startswith("not built: stf/")
    assert told.count("/") == 5
    assert told.endswith(" more")
