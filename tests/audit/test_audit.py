"""The audit finds nothing in what was left alone, and whatever was tampered with."""

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from world import INDEX, METRICS, PAPER, SCALE
from world.published import forge, make

from clpapers import cli, provenance
from clpapers.audit.audit import FAILURE, WARNING, Finding, as_json, audit, findings, fitting, text, unfit
from clpapers.config.plan import Plan
from clpapers.config.selected_runs import SelectedRuns
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.provenance import record_path

MINI = Path("results/mini")
RUN = "runs/mnist/stf-0.05-n30/ace-*/seed0.json"
RESULTS = [
    "datasets/mnist.npz", "streams/mnist/stf-0.05-n30/seed0.npz", "streams/toy-13-17-10/split-3/seed0.npz",
    "runs/index.csv", RUN, "runs/nets/mini/cifar10.json", "selection/mini/mnist-er.json", "metrics/mini/table1.csv",
    "metrics/mini/figure1.csv", "targets/mini/figure1.pdf", "targets/mini/table3.csv",
    *(f"targets/mini/table1{end}" for end in (".csv", ".reported.csv", ".paired.csv")),
]  # fmt: skip
READ = [each for each in RESULTS if not each.startswith("targets") and "index" not in each]  # by others
PRESENTED = ("table1.md", "table1.tex", "table1.html", "figure1.svg", "figure1.png", "figure1.caption.md")


def one(pattern):
    """The file that is meant, the first by name."""
    return min(MINI.glob(pattern))


def found(*names, strict=False):
    return findings(fitting("mini"), names, strict=strict)


def each_told(*names):
    """The findings, as severity and file."""
    return [(each.severity, each.file) for each in found(*names)]


def flip(path):
    """Change one byte in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replace(file, old, new):
    content = Path(file).read_text()
    assert old in content
    Path(file).write_text(content.replace(old, new, 1))


@contextlib.contextmanager
def kept(*paths):
    """Some files, which are what they were when the block ends."""
    before = {path: path.read_bytes() for path in paths}
    yield
    for path, content in before.items():
        path.write_bytes(content)


def test_nothing_is_found_in_what_was_left_alone(here, capsys):
    assert found(strict=True) == []
    assert cli.main(["audit", "--scale", "mini", "--strict"]) == 0
    said = capsys.readouterr().out
    files = [path for path in MINI.rglob("*") if path.is_file()]
    assert said == f"{len(files) + 1} files checked, 0 failures, 0 warnings\n"  # and config/reported/mini.csv
    assert audit(fitting("mini"), ["mini/table2"])[1] == 9  # four files, metrics, a net, and three records


def test_it_starts_without_libraries_of_tables_figures_and_nets():
    asked = "import sys, clpapers.audit.audit; print({'pandas', 'matplotlib', 'torch'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True).stdout == "set()\n"


# --- a file, a record ------------------------------------------------------------------------------------------


def test_one_byte_of_any_result(here):
    for pattern in (*RESULTS, *(f"targets/mini/{name}" for name in PRESENTED)):
        with kept(path := one(pattern)):
            flip(path)
            told = [(each.severity, each.file, each.reason.split(":")[0]) for each in found()]
            assert told[0] == (FAILURE, str(path), "edited")
            assert {file for _, file, _ in told} == {str(path)}  # a caption may lack its mark of stand-ins besides
    flip(path)
    assert cli.main(["audit", "--scale", "mini"]) == 1


def test_any_record_edited_gone_or_none(here):
    for pattern in RESULTS:
        with kept(record := record_path(one(pattern))):
            replace(record, '"wall_seconds": ', '"wall_seconds": 1')
            assert each_told() == [(FAILURE, str(record))]
            record.unlink()
            assert {each.severity for each in found()} == {FAILURE}
            assert all("no record" in each.reason for each in found())
            record.write_text('{"seal": "…"')
            assert str(one(pattern)) in [each.file for each in found()]


def test_a_record_with_a_new_seal_or_with_another_result_is_told_by_its_readers(here):
    """The first looks like the record of a file that was made again to the same bytes."""
    for pattern in READ:
        with kept(path := one(pattern), record := record_path(path)):
            forge(record, lambda content: content.update(wall_seconds=0.0))
            assert set(each_told()) == {(WARNING, str(path))}
            assert {each.severity for each in found(strict=True)} == {FAILURE}
            flip(path)
            digest = provenance.sha256(path)
            forge(record, lambda content, digest=digest: content["outputs"][0].update(sha256=digest))
            assert any(f"made of another {path} than is there now" in each.reason for each in found())


def test_what_is_missing(here):
    one("targets/mini/table1.md").unlink()
    assert [file for _, file in each_told()] == ["results/mini/targets/mini/table1.md"]
    run = one(RUN)
    run.unlink()
    assert str(run) in [file for _, file in each_told()]
    record_path(run).unlink()
    assert any(f"made of {run}, which is missing" in each.reason for each in found())


# --- settings, code, data --------------------------------------------------------------------------------------


def merged(old, new):
    """Facts with new ones in place of theirs, deep inside too."""
    return old | new | {key: merged(old[key], value) for key, value in new.items() if value and isinstance(value, dict)}


@pytest.mark.parametrize("case", yaml.safe_load(Path(__file__).with_name("changes.yaml").read_text(encoding="utf-8")))
def test_what_was_changed_is_found(case, here):
    if "edit" in case:
        replace(*case["edit"])
    else:
        record = one(case["record"])
        content = merged(json.loads(record.read_text()), case["tells"])
        content |= {} if "seal" in case["tells"] else {"seal": provenance.seal(content)}
        record.write_text(json.dumps({key: value for key, value in content.items() if value != "gone"}))
    told, places = found(), {str(one(file)): reason for file, reason in case["found"].items()}
    for file, reason in places.items():
        assert any(reason in each.reason for each in told if each.file == file)
    if severity := case.get("only"):
        assert {(each.severity, each.file) for each in told} == {(severity, file) for file in places}
        assert cli.main(["audit", "--scale", "mini"]) == (severity == FAILURE)
        assert cli.main(["audit", "--scale", "mini", "--strict"]) == 1


def test_cells_of_an_older_configuration_are_left_over(here):
    left = [str(path) for path in MINI.glob("runs/mnist/*/*/*")]
    replace(PAPER, "learner: [er, ace]", "learner: [er]")
    told = {each.file for each in found() if each.reason.startswith("no rule makes it")}
    assert told == {path for path in left if "/ace-" in path}
    assert len(told) == 4


def test_a_paper_that_was_added_makes_the_index_stale_which_is_a_warning(here):
    Path("config/papers/other.yaml").write_text(Path(PAPER).read_text().replace("paper: mini", "paper: other"))
    (only,) = found()
    assert (only.severity, only.file) == (WARNING, INDEX)
    assert only.reason.endswith(f"snakemake {INDEX} --cores --force")


@pytest.mark.parametrize(("name", "number"), [("table1.md", 1), ("figure1.caption.md", 3)])
def test_a_stand_in_that_a_table_or_a_caption_does_not_admit(here, name, number):
    file = one(f"targets/mini/{name}")
    file.write_text(file.read_text().replace("Stand-in data", "Real data"))
    digest = provenance.sha256(file)
    forge(record_path(file), lambda content: content["outputs"][number].update(sha256=digest))
    assert [(each.file, each.reason[:34]) for each in found()] == [(str(file), "does not say ‘Stand-in data’ below")]


def test_a_stand_in_at_the_scale_of_the_paper(here):
    shutil.copytree(MINI, "results/paper")
    shutil.copy(SCALE, "config/scales/paper.yaml")
    for record in Path("results/paper").rglob("*.record.json"):
        record.write_text(record.read_text().replace("results/mini/", "results/paper/"))
    reason = "mnist is a stand-in, at the scale of the paper"
    told = [each.file for each in findings(fitting("paper")) if reason in each.reason]
    assert "results/paper/targets/mini/table1.csv" in told


# --- what is foreign, and what is asked for ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["datasets/emnist.npz", "streams/mnist/stf-0.05-n30/seed77.npz"])
def test_what_a_rule_makes_is_not_foreign_though_no_target_needs_it(here, name):
    """As after a proof of published runs whose data and streams the build's targets leave out."""
    job = jobs.job_of(fitting("mini"), MINI / name)
    (path,) = job.outputs
    for code in ("c0de", job.code):
        with provenance.recording(job.module, job.outputs, job.inputs, code, settings=job.settings):
            provenance.write_text(path, "bytes")
        assert [each.file for each in found(strict=True)] == ([str(path)] if code == "c0de" else [])
    record_path(path).unlink()
    assert [file for _, file in each_told()] == [str(path)]


def test_one_target_is_checked_with_what_is_behind_it(here):
    flip(Path(METRICS))
    assert found("mini/table2") == []
    assert [file for _, file in each_told("mini/table1")] == [METRICS]
    (MINI / "targets/mini/notes.txt").write_text("")
    assert len(found("mini")) == 1
    for file in MINI.glob("targets/mini/table2.*"):
        file.unlink()
    assert found("mini/table3") == []
    assert all(each.reason.startswith("not built; ") for each in found("mini/table2"))


def test_lines_of_one_reason_stand_together_and_are_all_in_the_json():
    many = [Finding(FAILURE, f"{i}.csv", f"edited; snakemake {i}.csv") for i in range(5)]
    few = [Finding(WARNING, "a.csv", "odd; look"), Finding(WARNING, "b.csv", "odd; look")]
    assert text([*many, *few], 9).splitlines() == [
        "failure: 0.csv and 4 more, which clpapers audit --json lists: edited; snakemake 0.csv",
        "warning: a.csv: odd; look",
        "warning: b.csv: odd; look",
        "9 files checked, 5 failures, 2 warnings",
    ]
    said = json.loads(as_json([*many, *few], 9))
    assert (said["checked"], said["failures"], said["warnings"], len(said["findings"])) == (9, 5, 2, 7)


def test_a_selection_is_audited_with_the_runs_that_its_build_chose(here):
    """Runs of the points stand in other files than all runs would: fit to be published none the less."""
    plan = Plan("mini", all_papers())
    (search,) = plan.selections.values()
    runs = {cell.hash: {cell.folder / "seeds70-71.json": [70]} for _, cell in search.points}
    for cell in (cell for _, cell in search.points):
        for path in plan.results(cell, search.seeds):
            path.unlink()
            record_path(path).unlink()
    learners = [cell for _, cell in plan.targets["mini/table1"].cells]
    runs |= {cell.hash: {path: list(seeds) for path, seeds in plan.results(cell).items()} for cell in learners}
    file = SelectedRuns(runs).write("mini")
    make(plan, search.points[0][1].stream(71))
    for made in (*(path for each in runs.values() for path in each if "seeds70" in path.name), search.file):
        job = jobs.job_of(plan, made)
        assert cli.main([job.command, "--out", str(made), *(["--runs", str(file)] * job.depends_on_choice)]) == 0
    assert json.loads(record_path(search.file).read_text())["choice"] == str(file)
    assert unfit(plan, [search.file]) == {}
    file.unlink()
    assert list(unfit(plan, [search.file])) == [search.file]
