"""Runs of a build's crate are taken in as they are, and what is told and made of them is as of runs of here."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from handmade import packed, resealed
from world import METRICS, PAPER, TABLE
from world.published import PUBLISHED, RUNS, edit, fewer_right, make, runs
from world.published import crate as published_crate

from clpapers import cli
from clpapers.archive import imported
from clpapers.archive.check import MANIFEST
from clpapers.archive.imported import folder_of, import_crate, source_of
from clpapers.archive.packing import digest_of
from clpapers.audit.audit import FAILURE, WARNING, audit, fitting, in_clone
from clpapers.builds.preparation import prepare
from clpapers.config.plan import Plan
from clpapers.config.selected_runs import SelectedRuns
from clpapers.graph import jobs
from clpapers.provenance import record_path
from clpapers.report.publish import publish

TOP = folder_of("mini")


def failures():
    return [finding for finding in audit(fitting("mini"))[0] if finding.severity == FAILURE]


def rewritten(crate, change):
    """A crate with other entries, and a manifest that fits."""
    with zipfile.ZipFile(crate) as archive:
        there = {name: archive.read(name) for name in archive.namelist()}
    change(there)
    del there[MANIFEST]
    return packed(crate.with_name("rewritten.zip"), there)


def records_of_runs(there):
    return [name for name in there if re.search(r"/mnist/.*seed\d+\.record\.json$", name)]


def test_all_runs_come_as_they_were_published(crate, small_project):
    trained = {path.relative_to(RUNS): (path.read_bytes(), record_path(path).read_bytes()) for path in runs()}
    shutil.move(crate, crate := small_project / "mini.zip")
    shutil.rmtree("results")
    (note,) = import_crate(crate)
    assert note.startswith(f"{crate}: 4 runs imported, manifest SHA-256 ")
    assert {path.relative_to(TOP) for path in runs(TOP)} == {*trained}
    for path, of_path in trained.items():
        assert ((TOP / path).read_bytes(), record_path(TOP / path).read_bytes()) == of_path
        source = source_of(TOP / path, digest_of(TOP / path))
        assert (source["name"], source["manifest"]) == (crate.name, note.rpartition(" ")[2])
        records = {item["record"] for item in json.loads(of_path[1])["inputs"]}
        assert records <= {file.stem for file in (TOP / "records").iterdir()}
    assert audit(fitting("mini"))[0] == []


def test_a_build_leaves_published_runs_out_where_it_is_to(other):
    given = {"scale": "mini", "papers": ["mini"], "data_folder": "data", "downloads": "downloads", "hours": 0}
    PUBLISHED.mkdir(parents=True)
    shutil.copy(other, PUBLISHED)
    settings = [given | {"published": published} for published in (True, False)]
    counts = [len(prepare(Plan("mini", ["mini"]), each, ["-n"])[1].present) for each in settings]
    assert counts == [4, 0]


def test_what_was_imported_can_be_published_again_to_the_same_bytes(other):
    import_crate(other)
    (line,) = publish(Plan("mini", ["mini"]), ["mini"])
    assert "4 runs of 2 cells" in line
    assert published_crate().name == other.name
    assert published_crate().read_bytes() == other.read_bytes()


def damage(path):
    path.write_bytes(path.read_bytes()[:-2] + b" \n")


def put_there(path):
    path.with_name("seed7.json").write_bytes(path.read_bytes())
    record_path(path.with_name("seed7.json")).write_bytes(record_path(path).read_bytes())


def forge_manifest(_):
    (manifest,) = (TOP / "crates").iterdir()
    manifest.write_text(manifest.read_text() + "\n")


@pytest.mark.parametrize(
    ("tamper", "name", "said"),
    [
        (damage, "seed0.json", "not the bytes that its record holds"),
        (lambda path: edit(path, fewer_right), "seed0.json", "in no crate that"),
        (lambda path: edit(path, fewer_right), "seed0.record.json", "in no crate that"),
        (put_there, "seed7.json", "in no crate that"),
        (lambda path: (TOP / "notes.txt").write_text(""), "../../../notes.txt", ""),
        (forge_manifest, "seed0.json", "in no crate that"),
    ],
)
def test_the_audit_fails_on_what_was_tampered_with(tamper, name, said, other):
    import_crate(other)
    path = runs(TOP)[0]
    tamper(path)
    file = Path("results") / (path.parent / name).resolve().relative_to(Path("results").resolve())
    assert any(finding.file == str(file) and said in finding.reason for finding in failures())


def test_other_code_and_an_unknown_commit_are_warnings(other):
    def of_a_stranger(there):
        for name in records_of_runs(there):
            there[name] = resealed(there[name], code="0" * 16, git={"commit": "1" * 40, "dirty": False})

    import_crate(rewritten(other, of_a_stranger))
    found, _ = audit(fitting("mini"))
    assert {finding.severity for finding in found} == {WARNING}
    reasons = {finding.reason.rpartition("; ")[0] for finding in found}
    assert reasons == {
        "trained by other code than there is now",
        "trained at a commit that is not in this clone",
    }
    assert all("1111111111" in finding.reason for finding in found)


def test_a_commit_that_is_none_is_unknown_and_git_is_not_asked(tmp_path, monkeypatch):
    (tmp_path / "git").write_text("#!/bin/sh\n")  # which would say of any that it is there
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert in_clone("2" * 40)
    assert not in_clone("--help")
    assert not in_clone("unknown")


@pytest.mark.parametrize("others", [True, False], ids=["other code", "the same code"])
def test_another_stream_is_a_fault_only_of_the_same_code(others, other):
    """The published run says that it read another stream than this clone draws."""

    def of_another_stream(there):
        streams = {digest_of(text): name for name, text in there.items() if b'"stage": "streams"' in text}
        for name in records_of_runs(there):
            inputs = json.loads(there[name])["inputs"]
            for item in (item for item in inputs if item.get("record") in streams):
                place = streams[item["record"]]
                outputs = json.loads(there[place])["outputs"]
                outputs[0]["sha256"] = item["sha256"] = "1" * 64
                text = resealed(there[place], outputs=outputs, **({"code": "0" * 16} if others else {}))
                item["record"] = digest_of(text)
                there[str(Path(place).with_name(f"{item['record']}.json"))] = text
            there[name] = resealed(there[name], inputs=inputs)

    import_crate(rewritten(other, of_another_stream))
    plan = Plan("mini", ["mini"])
    for cell in plan.cells.values():
        for path in (path for path in plan.results(cell) if "mnist" in path.parts):
            for each in jobs.job_of(plan, path).inputs:
                make(plan, each)
    found = [finding for finding in audit(fitting("mini"))[0] if re.search("another .* than is", finding.reason)]
    assert {finding.severity for finding in found} == {WARNING if others else FAILURE}


BUILT = {"metrics": METRICS, "table": TABLE} | {
    made: TABLE.replace("csv", f"{made}.csv") for made in ("reported", "paired")
}


def chosen():
    """The file by which jobs find the imported runs."""
    found = {key: {p: list(s) for p, s in each.items()} for key, each in imported.imported("mini").items()}
    return ["--runs", SelectedRuns(found).write("mini")]


def refused_metrics(capsys):
    """The one line by which what is to be measured is refused."""
    capsys.readouterr()
    assert cli.main(["metrics", "--out", METRICS, *map(str, chosen())]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert not Path(METRICS).exists()
    return line


def test_a_table_of_them_has_a_footnote_a_lineage_an_audit_and_an_export(other, capsys):
    import_crate(other)
    for command, out in BUILT.items():
        assert cli.main([command, "--out", out, *map(str, chosen())]) == 0
    record = json.loads(record_path(METRICS).read_text())
    assert record["data"]["mnist"]["standin"] is True
    assert {item["path"] for item in record["inputs"]} >= {*map(str, runs(TOP))}
    commit = json.loads(record_path(runs(TOP)[0]).read_text())["git"]["commit"]
    for ending in (".md", ".html", ".tex"):
        said = Path(TABLE).with_suffix(ending).read_text()
        assert f"imported, not trained here: 4; commits of their code: {commit[:10]} (4)." in said
    capsys.readouterr()
    assert cli.main(["lineage", TABLE, "--cell", "ER,MNIST"]) == 0
    said = capsys.readouterr().out
    assert said.count(f"imported from {other.name}") == 2
    assert "/er-" in said
    assert "/ace-" not in said

    assert cli.main(["export", "--scale", "mini", "--out", "whole.zip", "mini/table1"]) == 0
    assert cli.main(["export", "--check", "whole.zip"]) == 0
    with zipfile.ZipFile("whole.zip") as archive:
        there = set(archive.namelist())
    assert {str(path) for path in (*runs(TOP), *(TOP / "records").iterdir())} <= there

    assert audit(fitting("mini"), ["mini/table1"])[0] == []
    damage(runs(TOP)[0])
    assert {str(runs(TOP)[0])} <= {finding.file for finding in audit(fitting("mini"), ["mini/table1"])[0]}
    Path(METRICS).unlink()
    assert f"{runs(TOP)[0]}: not the bytes that its record holds" in refused_metrics(capsys)

    shutil.rmtree("results")  # and the crate of the export is one, too
    (note,) = import_crate(Path("whole.zip"))
    assert "4 runs imported" in note
    assert {path.parts[2] for path in Path("results").rglob("*") if path.is_file()} == {"imported"}
    assert failures() == []


def measured(measure):
    """Let the table be measured otherwise, and no number of it be printed."""
    paper, printed = Path(PAPER), Path("config/reported/mini.csv")
    printed.write_text(printed.read_text().partition("\n")[0] + "\n")
    paper.write_text(paper.read_text().replace("measure: learning", f"measure: {measure}"))


@pytest.mark.parametrize(
    ("change", "number", "fault"),
    [
        (lambda: edit(runs(TOP)[0], lambda whole: whole["seeds"][0].pop("test")), 0, r"is no result of runs \(.+\)"),
        (lambda: measured("boundary_detection"), 2, r"cannot be measured \(KeyError\('trace'\)\)"),  # a learner's own
    ],
    ids=["no result", "without what a measure needs"],
)
def test_a_run_that_cannot_be_measured_is_named(change, number, fault, other, capsys):
    """As of a crate that an earlier version imported."""
    import_crate(other)
    change()
    told = rf"clpapers: {runs(TOP)[number]}: {fault}; delete {TOP} and import other crates"
    assert re.fullmatch(told, refused_metrics(capsys))
