"""Whole runs through Snakemake: plans at each scale, everything built, nothing built twice, equal bytes elsewhere."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from project import PAPER

TABLES, FIGURES = (["table1", "table2"], ["figure1"])


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
def test_the_whole_of_stf_can_be_planned(pristine, scale):
    planned = pristine.plan("--config", f"scale={scale}", "papers=[stf]")
    assert {path.split("/")[2] for path in planned} == {"datasets", "streams", "runs", "metrics", "targets"}
    assert all(path.startswith(f"results/{scale}/") for path in planned)
    assert len(planned) == len(set(planned))


def test_a_target_can_be_asked_for_at_another_scale(pristine):
    planned = pristine.plan("results/paper/targets/stf/table1.csv", "--config", "scale=smoke", "papers=[stf]")
    assert "results/paper/targets/stf/table1.csv" in planned
    assert all(path.startswith("results/paper/") for path in planned)


def test_everything_is_built(finished):
    folder = finished.folder / "results/mini/targets/mini"
    endings = {"table": ["csv", "md", "tex", "html"], "figure": ["pdf", "svg", "png"]}
    for names, kind in ((TABLES, "table"), (FIGURES, "figure")):
        for name in names:
            for ending in endings[kind]:
                assert (folder / f"{name}.{ending}").stat().st_size, (name, ending)
    assert (folder / "table1.reported.csv").is_file()
    assert (folder / "table1.paired.csv").is_file()
    assert (finished.folder / "results/mini/runs/index.csv").read_text().count("\n") == 3  # a heading and two cells


def test_every_result_has_a_record_and_every_record_is_true(finished):
    recorded = {}
    for record in (finished.folder / "results").rglob("*.record.json"):
        content = json.loads(record.read_text())
        for entry in content["inputs"] + content["outputs"]:
            bytes_ = (finished.folder / entry["path"]).read_bytes()
            assert entry["sha256"] == hashlib.sha256(bytes_).hexdigest(), (record, entry["path"])
            assert entry["bytes"] == len(bytes_)
        recorded |= {entry["path"]: content for entry in content["outputs"]}
    assert recorded.keys() == finished.results().keys()
    for path, content in recorded.items():
        uses_data = path.split("/")[2] == "datasets" or "mnist" in str(content["inputs"]) or "table1" in path
        assert content["data"].get("mnist", {}).get("standin", False) == uses_data or "figure1" in path, path


def test_what_stands_on_a_stand_in_says_so(finished):
    for name in ("table1.md", "table1.tex", "table1.html", "figure1.svg"):
        text = (finished.folder / "results/mini/targets/mini" / name).read_text()
        if name != "figure1.svg":  # whose letters are paths
            assert re.search("stand-in", text, re.IGNORECASE), name
    record = json.loads((finished.folder / "results/mini/targets/mini/figure1.record.json").read_text())
    assert record["data"]["mnist"]["standin"] is True


def test_the_command_in_a_record_makes_the_same_file_by_hand(built):
    name = "results/mini/targets/mini/table1.csv"
    before = built.results()
    command = json.loads((built.folder / name).with_name("table1.record.json").read_text())["command"]
    for ending in ("csv", "md", "tex", "html"):
        (built.folder / name).with_suffix(f".{ending}").unlink()
    assert built.clpapers(*command.split()[1:]).returncode == 0
    assert built.results() == before


def test_lineage_reaches_the_data(finished):
    done = finished.clpapers("lineage", "results/mini/targets/mini/table1.md")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0].startswith("results/mini/targets/mini/table1.md")
    assert sum("/runs/mnist/" in line and line.strip().startswith("results") for line in lines) == 4
    assert any("data mnist from standin" in line for line in lines)
    assert not re.search("CHANGED|MISSING|NOT AS RECORDED", done.stdout)


def test_a_second_run_does_nothing(built):
    before = built.results()
    assert "Nothing to be done" in built.build()
    assert built.results() == before


def test_two_runs_give_the_same_bytes(finished, project):
    project.build()
    ours, theirs = project.results(), finished.results()
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []


def test_without_a_plan_for_it_nothing_is_fetched_or_written_outside_results(finished):
    new = {path.name for path in finished.folder.iterdir()} - {"results", ".snakemake"}
    assert new <= {"Snakefile", "rules", "workflow", "config", "profiles", "envs", "src"}


def test_names_of_the_paper_are_those_of_the_tests():
    assert [Path(line.strip(" :\n")).name for line in re.findall(r"^  (?:table|figure)\d:$", PAPER, re.M)] == [
        *TABLES,
        *FIGURES,
    ]
