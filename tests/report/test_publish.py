"""A paper's crate holds its finished runs, grows, and says of each by which commit it was trained."""

import json
import shutil
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from world.published import PUBLISHED, RUNS, crate, edit, fewer_right, forge, git, runs, touch

from clpapers import cli, provenance
from clpapers.archive.check import EPOCH, MANIFEST, METADATA, check
from clpapers.archive.imported import RUN, TAKEN_OUT, published
from clpapers.archive.packing import digest_of
from clpapers.archive.published import runs_of
from clpapers.audit.audit import findings
from clpapers.cli.new import TEMPLATES
from clpapers.config import selected_runs
from clpapers.config.paths import method_path
from clpapers.config.plan import Plan
from clpapers.graph import user_methods
from clpapers.provenance import record_path
from clpapers.report.publish import publish

DATA = Path("results/mini/datasets/mnist.npz")
AS_IMPORTED = ("runs/", "imported/")


@pytest.fixture
def plan(small_project):
    return Plan("mini", ["mini"])


def entries(path=None):
    with zipfile.ZipFile(path or crate()) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def told(path, **facts):
    """Let a file's record tell other things."""
    forge(record_path(path), lambda record: record.update(facts))


def without(path):
    """Delete a run; gives back what makes it reappear."""
    kept = {file: file.read_bytes() for file in (path, record_path(path))}
    for file in kept:
        file.unlink()
    return lambda: [file.write_bytes(content) for file, content in kept.items()]


def test_it_holds_results_and_records_and_no_data(plan):
    (line,) = publish(plan, ["mini"])
    assert line.startswith(f"{crate()}: 4 new runs, ")
    assert line.endswith("mini has 4 runs of 2 cells")
    there = entries()
    for path in runs():
        for file in (path, record_path(path)):
            assert there.pop(str(file).replace(*AS_IMPORTED)) == file.read_bytes()
    apart = {name: text for name, text in there.items() if "/records/" in name}
    told = {item["path"] for text in apart.values() for item in json.loads(text)["outputs"]}
    assert told == {"results/mini/datasets/mnist.npz"} | {
        f"results/mini/streams/mnist/stf-0.05-n30/seed{seed}.npz" for seed in (0, 1)
    }
    assert there.keys() - apart.keys() == {METADATA, MANIFEST, "LICENSE", "CITATION.cff"}
    assert check(crate())[0] == []
    graph = json.loads(entries()[METADATA])["@graph"]
    tools = {entity["@id"]: entity for entity in graph if entity["@type"] == "SoftwareApplication"}
    actions = [entity for entity in graph if entity["@type"] == "CreateAction"]
    commit = f"commit {git('rev-parse', 'HEAD')}"
    assert [tools[each["instrument"]["@id"]]["softwareVersion"] for each in actions] == [commit] * 4


def test_the_same_runs_make_the_same_bytes(plan):
    publish(plan, ["mini"])
    path, first = crate(), crate().read_bytes()
    (line,) = publish(plan, ["mini"])
    assert "nothing to publish: 4 runs of 2 cells are, " in line
    assert path.read_bytes() == first
    path.unlink()
    publish(plan, ["mini"])
    assert crate() == path
    assert path.read_bytes() == first
    with zipfile.ZipFile(path) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {EPOCH}
        assert archive.namelist() == sorted(archive.namelist())


def test_a_later_publication_is_a_crate_with_what_is_new_alone(plan):
    *others, last = runs()
    back = without(last)
    assert ": 3 new runs, " in publish(plan, ["mini"])[0]
    first = {crate(): crate().read_bytes()}
    back()
    for path in others:
        without(path)
    (line,) = publish(plan, ["mini"])
    assert ": 1 new runs, " in line
    assert line.endswith("mini has 4 runs of 2 cells")
    assert all(path.read_bytes() == content for path, content in first.items())
    (second,) = set(PUBLISHED.glob("*.zip")) - first.keys()
    assert {name for name in entries(second) if RUN.fullmatch(name)} == {str(last).replace(*AS_IMPORTED)}
    assert check(second)[0] == []
    assert [second.stem, *(path.stem for path in first)] == [
        f"mini-{digest_of(entries(path)[MANIFEST])[:10]}" for path in (second, *first)
    ]


def test_a_data_set_that_was_made_anew_since_has_a_record_in_the_crate(plan):
    told(DATA, started=datetime.now(UTC).isoformat())  # to the second in others, so that this one is later
    touch(DATA)
    (line,) = publish(plan, ["mini"])
    assert ": 4 new runs, " in line
    assert record_path(DATA).read_bytes() in entries().values()
    assert check(crate())[0] == []


def test_what_is_published_stays_unless_it_is_to_be_replaced(plan):
    publish(plan, ["mini"])
    first, path = crate(), runs()[0]
    name = str(path).replace(*AS_IMPORTED)
    taken = f"{digest_of(record_path(path))}  {record_path(name)}\n"
    edit(path, fewer_right)
    note, line = publish(plan, ["mini"])
    assert note.startswith(f"{path}: seed 0 differs ")
    assert "nothing to publish" in line
    assert crate() == first
    note, line = publish(plan, ["mini"], replace=True)
    assert note.startswith(f"{path}: seed 0 differs ")
    assert "1 new runs, 1 files of runs taken out" in line
    assert line.endswith("mini has 4 runs of 2 cells")
    (second,) = set(PUBLISHED.glob("*.zip")) - {first}
    assert entries(second)[name] == path.read_bytes()
    assert entries(second)[TAKEN_OUT].decode() == taken
    assert check(second)[0] == []
    found, _ = runs_of(published("mini", "mini"))
    assert len(found) == 4
    assert found[name].content == path.read_bytes()
    assert publish(plan, ["mini"], replace=True) == publish(plan, ["mini"])  # nothing more


def test_a_file_with_another_seed_is_replaced_by_none_that_lacks_it(plan):
    """Seeds 0 and 1 are published in one file; another run of seed 1 alone does not take its place."""
    first, second = (path for path in runs() if path.parent == runs()[0].parent)
    assert cli.main(["train", "--out", str(first.with_name("seeds0-1.json"))]) == 0
    without(first)
    again = without(second)
    assert ": 4 new runs, " in publish(plan, ["mini"])[0]
    before = runs_of(published("mini"))[0].keys()
    again()
    edit(second, fewer_right)
    note, line = publish(plan, ["mini"], replace=True)
    stays = "the published one stays: its file also has seed 0; train it too"
    assert note == f"{second}: seed 1 differs from the published one; {stays}"
    assert "nothing to publish" in line
    assert runs_of(published("mini"))[0].keys() == before


def test_a_run_that_is_taken_out_is_published_again_only_if_it_is_trained_again(plan, capsys):
    publish(plan, ["mini"])
    path = runs()[0]
    assert cli.main(["publish", "--scale", "mini", "--without", str(path)]) == 0
    assert "0 new runs, 1 files of runs taken out" in capsys.readouterr().out
    name = str(path).replace(*AS_IMPORTED)
    assert name not in runs_of(published("mini"))[0]
    note, line = publish(plan, ["mini"])
    assert note.startswith(f"{path}: left out: ")
    assert "3 runs of 2 cells are, " in line
    told(path, wall_seconds=1.5)
    assert "1 new runs" in publish(plan, ["mini"])[0]
    assert name in runs_of(published("mini"))[0]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "edited: not the bytes that its record holds"),
        ({"code": "0" * 16}, "made by other code"),
        ({"git": {"commit": "0" * 40, "dirty": True}}, "trained by a working tree with edits"),
        ({"git": {"commit": None, "dirty": None}}, "under no git"),
    ],
)
def test_a_run_that_the_audit_does_not_pass_is_left_out(facts, said, plan):
    path = runs()[0]
    if facts:
        told(path, **facts)
    else:
        path.write_bytes(path.read_bytes().replace(b'"steps"', b'"stepz"', 1))
    note, line = publish(plan, ["mini"])
    assert note.startswith(f"{path}: left out: ")
    assert said in note
    assert ": 3 new runs, " in line
    assert str(path).replace(*AS_IMPORTED) not in entries()


def test_runs_on_a_stream_that_was_edited_are_left_out(plan):
    tampered_stream = next((RUNS.parent / "streams").rglob("seed1.npz"))
    tampered_stream.write_bytes(tampered_stream.read_bytes()[:-1] + b"x")
    note, line = publish(plan, ["mini"])
    assert "and 1 more: left out: edited" in note
    assert ": 2 new runs, " in line


def test_published_crates_are_no_edits(plan):
    publish(plan, ["mini"])
    git("add", "--force", "results")
    git("commit", "--quiet", "--message", "Published")
    crate().write_bytes(crate().read_bytes() + b" ")
    assert provenance.git_state()["dirty"] is False


def test_a_paper_without_runs_makes_no_crate(plan):
    shutil.rmtree(RUNS)
    (line,) = publish(plan, ["mini"])
    assert line.startswith("mini: nothing to publish: 0 runs of 0 cells ")
    assert not PUBLISHED.exists()


@pytest.fixture
def trained(small_project, tmp_path, monkeypatch):
    """The plan with a method from outside, of which all runs are trained."""
    file = tmp_path / "mine.py"
    file.write_text((TEMPLATES / "method.py").read_text(encoding="utf-8"), encoding="utf-8")
    copy = method_path("mini", "mine", user_methods.check(file))
    assert cli.main(["method", "--out", str(copy), "--file", str(file)]) == 0
    plan = Plan("mini", ["mini"], methods=[str(copy)])
    chosen = selected_runs.SelectedRuns({}, {}, {}, plan.methods).write("mini")
    (cell,) = (cell for cell in plan.cells.values() if cell.method)
    for path in plan.results(cell):
        assert cli.main(["train", "--out", str(path), "--runs", str(chosen)]) == 0
    return plan


def test_runs_of_a_method_from_outside_stay_out_by_default(trained):
    (line,) = publish(Plan("mini", ["mini"]), ["mini"])
    assert f"{crate()}: 4 new runs, " in line


def test_runs_of_a_method_from_outside_go_in_with_its_file_where_that_is_asked_for(trained):
    (line,) = publish(trained, ["mini"])
    assert f"{crate()}: 6 new runs, " in line
    assert line.endswith("6 runs of 3 cells")
    assert check(crate())[0] == []
    with zipfile.ZipFile(crate()) as archive:
        assert archive.read(trained.methods[0]) == Path(trained.methods[0]).read_bytes()


def test_the_audit_finds_nothing_wrong_with_a_method_from_outside_and_tells_of_an_edited_copy(trained):
    plan = Plan("mini", ["mini"])
    assert findings(plan) == []
    with open(trained.methods[0], "a") as copy:
        copy.write("# edited\n")
    assert trained.methods[0] in {finding.file for finding in findings(plan)}
