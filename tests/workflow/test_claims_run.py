"""Claims through Snakemake: tables of verdicts beside the targets, made anew by what they hang on, nothing else."""

import csv
import json
import re

import pytest
from project import PAPER

CLAIMS = """\
mini:
  better:
    section: "1"
    statement: "ACE is better than ER"
    target: table1
    metric: final_accuracy
    test: above
    where: {dataset: mnist}
    of: {learner: ace}
    than: {learner: er}
"""
OTHERS = CLAIMS.replace("mini:", "maxi:").replace("better:", "another:")
RENDERED = ["results/mini/targets/mini/claims.csv", "results/mini/targets/scorecard.csv"]


@pytest.fixture(scope="module")
def claimed(finished, tmp_path_factory):
    """The finished project with a claim of its paper and one of another, built; not to be changed."""
    project = finished.copy(tmp_path_factory.mktemp("claimed") / "project")
    project.write("config/papers/maxi.yaml", PAPER.replace("paper: mini", "paper: maxi"))
    project.write("config/claims.yaml", CLAIMS + OTHERS)
    assert sorted(project.plan()) == ["results/mini/runs/index.csv", *RENDERED]  # the index has the other's cells, too
    project.build()
    return project


def test_the_configured_papers_claims_are_tested_and_counted(claimed):
    folder = claimed.folder / "results/mini/targets"
    for stem in ("mini/claims", "scorecard"):
        assert all((folder / f"{stem}.{ending}").is_file() for ending in ("csv", "md", "tex", "html"))
    assert not (folder / "maxi").exists()
    with (folder / "mini/claims.csv").open(newline="") as file:
        (line,) = csv.DictReader(file)
    assert (line["claim"], line["target"], line["verdict"]) == ("better", "mini/table1", "not comparable")
    assert line["reason"] == "stand-in data: mnist"
    assert float(line["ci_low"]) <= float(line["effect"]) <= float(line["ci_high"])
    with (folder / "scorecard.csv").open(newline="") as file:
        (counts,) = csv.DictReader(file)
    given = {key: count for key, count in counts.items() if count != "0"}
    one = ("claims", "not comparable", "sentences", "sentences not tested")
    assert given == {"paper": "mini"} | dict.fromkeys(one, "1")


def test_a_verdict_descends_from_what_was_measured(claimed):
    record = json.loads((claimed.folder / "results/mini/targets/mini/claims.record.json").read_text())
    assert [entry["path"] for entry in record["inputs"]] == ["results/mini/metrics/mini/table1.csv"]
    assert record["claims"]["better"]["statement"] == "ACE is better than ER"
    assert record["data"]["mnist"]["standin"]
    assert "/metrics/mini/table1.csv" in claimed.clpapers("lineage", RENDERED[1]).stdout


@pytest.fixture
def edited(claimed, tmp_path):
    """What would run after text in a file is replaced."""

    def plan(file, old, new):
        project = claimed.copy(tmp_path / "project")
        project.edit(file, old, new)
        return sorted(project.plan())

    return plan


def test_an_edited_claim_renders_its_papers_claims_and_nothing_else(edited):
    assert edited("config/claims.yaml", "test: above", "test: below") == RENDERED


def test_another_papers_claims_render_nothing(edited):
    assert edited("config/claims.yaml", "another:", "renamed:") == []


def test_the_code_that_decides_renders_claims_and_nothing_else(edited):
    assert edited("src/clpapers/evidence/verdicts.py", "ONE_SIDED = ", "EDITED = ONE_SIDED = ") == RENDERED


def test_a_claim_on_what_no_target_measures_is_refused_before_anything_runs(project):
    project.write("config/claims.yaml", CLAIMS.replace("learner: ace", "learner: ice"))
    done = project.snakemake("-n")
    assert done.returncode == 1
    assert re.search(
        r"^clpapers: config/claims\.yaml: mini\.better\.of\.learner: 'ice' is not one of er, ace$", done.stdout, re.M
    ), done.stdout
    asked = project.clpapers("claims", "--out", "results/mini/targets/maxi/claims.csv")
    assert (asked.returncode, asked.stdout.count("\n")) == (2, 1)


def test_the_audit_holds_verdicts_against_the_claims(claimed, tmp_path):
    project = claimed.copy(tmp_path / "project")
    assert project.clpapers("audit").returncode == 0
    project.write("config/claims.yaml", CLAIMS.replace("test: above", "test: below") + OTHERS)
    done = project.clpapers("audit")
    assert done.returncode == 1
    assert done.stdout.startswith("failure: results/mini/targets/mini/claims.csv: made with other settings")
