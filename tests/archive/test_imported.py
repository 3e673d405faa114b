"""Runs of a crate are taken in once, as they are, beside those that are there; and nothing else is."""

import json
import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest
import trained
from trained import PUBLISHED, RUNS, clone, edit, fewer_right, imported_first, make, runs, train

from clpapers import cli
from clpapers.archive import imported
from clpapers.archive.check import MANIFEST, CrateError, check, manifest_of
from clpapers.archive.imported import (
    accuracies,
    accuracy_gap,
    folder_of,
    hash_of,
    import_crate,
    import_published,
    source_of,
)
from clpapers.archive.packing import digest_of
from clpapers.audit.audit import FAILURE, WARNING, audit, fitting
from clpapers.builds.preparation import prepare
from clpapers.builds.verify import published_runs
from clpapers.config.plan import Plan
from clpapers.graph import jobs
from clpapers.provenance import record_path, seal
from clpapers.report.publish import publish

TOP = folder_of("mini")


@pytest.fixture
def crate(small_project):
    publish(Plan("mini", ["mini"]), ["mini"])
    return small_project / trained.crate()


@pytest.fixture
def other(crate, small_project, tmp_path, monkeypatch):
    """Another clone, without results, as the working folder."""
    place = clone(small_project, tmp_path / "other")
    monkeypatch.chdir(place)
    return place


def contents(folder=TOP):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rewritten(crate, change):
    """A crate with other entries, and a manifest that fits."""
    with zipfile.ZipFile(crate) as archive:
        there = {name: archive.read(name) for name in archive.namelist()}
    change(there)
    del there[MANIFEST]
    there[MANIFEST] = manifest_of({name: digest_of(text) for name, text in there.items()}).encode()
    path = crate.with_name("rewritten.zip")
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in there.items():
            archive.writestr(name, text)
    return path


# --- what is taken in ----------------------------------------------------------------------------------------


def test_all_runs_come_as_they_were_published(crate, other, small_project):
    (note,) = import_crate(crate)
    assert note.startswith(f"{crate}: 4 runs imported, manifest SHA-256 ")
    found = imported.imported("mini")
    assert {key: [list(seeds) for seeds in files.values()] for key, files in found.items()} == {
        path.parent.name[-10:]: [[0], [1]] for path in runs(small_project / RUNS)
    }
    for path in runs(small_project / RUNS):
        place = TOP / path.relative_to(small_project / RUNS)
        assert place.read_bytes() == path.read_bytes()
        assert record_path(place).read_bytes() == record_path(path).read_bytes()
        source = source_of(place, digest_of(place))
        assert (source["name"], source["manifest"]) == (crate.name, note.rpartition(" ")[2])
        assert {item["record"] for item in json.loads(record_path(place).read_text())["inputs"]} <= {
            file.stem for file in (TOP / "records").iterdir()
        }


def packed_again(crate, name=str, method=zipfile.ZIP_DEFLATED, more=()):
    """The files of a crate in another zip, by other names, packed by another method."""
    path = crate.with_name("again.zip")
    with zipfile.ZipFile(crate) as archive, zipfile.ZipFile(path, "w", method) as again:
        for each in (*archive.namelist(), *more):
            again.writestr(name(each), archive.read(each) if each in archive.namelist() else b"")
    return path


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("mini/{}".format, zipfile.ZIP_DEFLATED),
        ("downloads/of the crate/{}".format, zipfile.ZIP_STORED),
        ("./{}".format, zipfile.ZIP_DEFLATED),
        ("./mini/{}".format, zipfile.ZIP_BZIP2),
        (str, zipfile.ZIP_BZIP2),
        (str, zipfile.ZIP_LZMA),
        (str, zipfile.ZIP_STORED),
    ],
)
def test_a_crate_that_was_packed_again_is_the_same(crate, other, name, method):
    again = packed_again(crate, name, method)
    assert check(again) == check(crate)
    (note,) = import_crate(again)
    assert note.startswith(f"{again}: 4 runs imported, manifest SHA-256 ")
    assert import_crate(crate) == []


def test_an_unpacked_crate_in_a_folder_is_the_same(crate, other, tmp_path):
    with zipfile.ZipFile(crate) as archive:
        archive.extractall(tmp_path / "unpacked/mini")
    assert check(tmp_path / "unpacked") == check(crate)


def header(offset, value):
    """Write a byte into the headers of a zip's entries in its directory, at the given place of each."""

    def edit(path):
        content = bytearray(path.read_bytes())
        for match in re.finditer(b"PK\x01\x02", bytes(content)):
            content[match.start() + offset] = value
        path.write_bytes(content)

    return edit


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"edit": header(10, 9)}, "compression method is not supported"),
        ({"edit": header(8, 1)}, "is encrypted"),
        ({"name": lambda name: f"mini/{name}".replace("/", "\\")}, r"has a name with \\, which may stand"),
        ({"name": "mini/{}".format, "more": ["../__MACOSX/._LICENSE"]}, "leads out of the crate"),
    ],
)
def test_of_a_crate_that_was_packed_otherwise_it_is_said_how(crate, other, changed, told):
    again = packed_again(crate, **{key: value for key, value in changed.items() if key != "edit"})
    if "edit" in changed:
        changed["edit"](again)
    with pytest.raises(CrateError, match=f"^{again}: .*{told}"):
        import_crate(again)
    assert not TOP.exists()


def test_what_lies_beside_the_folder_of_a_crate_is_found(crate, other):
    again = packed_again(crate, lambda name: name if "MACOSX" in name else f"mini/{name}", more=["__MACOSX/._mini"])
    assert check(again)[0] == [("__MACOSX/._mini", "is not in mini/, as the manifest is")]


def test_it_is_imported_once(crate, other, monkeypatch):
    import_crate(crate)
    before = contents()
    monkeypatch.setattr("clpapers.archive.check.read", None)  # which would read it all
    assert import_crate(crate) == []
    assert contents() == before


def test_the_projects_own_are_imported_where_it_has_them(crate, other):
    assert import_published("mini") == []
    PUBLISHED.mkdir(parents=True)
    shutil.copy(crate, PUBLISHED)
    (note,) = import_published("mini")
    assert "4 runs imported" in note
    assert import_published("mini") == []


@pytest.mark.parametrize("noted", [True, False], ids=["as the project's", "before that was noted"])
def test_without_published_runs_those_that_the_user_imported_stay(noted, crate, other):
    """The user's crate has the runs of one learner, among them one that the project's crate has too."""
    PUBLISHED.mkdir(parents=True)
    own = Path(shutil.copy(crate, PUBLISHED))
    import_published("mini") if noted else import_crate(own)
    assert imported.imported("mini", published=False) == {}
    assert len(imported.imported("mini")) == 2
    kept = runs(TOP)[0]

    def of_the_user(there):
        for name in [
            name for name in there if imported.RUN.fullmatch(name) and Path(name).parent.name != kept.parent.name
        ]:
            del there[name], there[str(record_path(name))]

    import_crate(rewritten(crate, of_the_user))
    mine = imported.imported("mini", published=False)
    assert {path.parent for files in mine.values() for path in files} == {kept.parent}
    assert len(imported.imported("mini")) == 2
    given = {"scale": "mini", "papers": ["mini"], "data_folder": "data", "downloads": "downloads", "hours": 0}
    present = prepare(Plan("mini", ["mini"]), given | {"published": False}, ["-n"])[1].present
    assert set(present) == {(kept.parent.name[-10:], seed) for seed in (0, 1)}


def test_the_crates_of_the_paper_scale_come_with_the_project(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    assert Path("results/published/rules.zip") in imported.published("paper", "rules")
    assert {path.stem.partition("-")[0] for path in imported.published("paper", "rules")} == {"rules"}


def test_a_crate_of_an_export_is_one_too(small_project, tmp_path, monkeypatch):
    make("table1")
    for name in ("README.md", "Snakefile", "rules", "src", "profiles", "envs", "pyproject.toml", "requirements.lock"):
        os.symlink(Path(__file__).parents[2] / name, name)
    for command, out in (("metrics", "metrics"), ("table", "targets"), ("reported", "targets"), ("paired", "targets")):
        ending = {"reported": ".reported.csv", "paired": ".paired.csv"}.get(command, ".csv")
        assert cli.main([command, "--out", f"results/mini/{out}/mini/table1{ending}"]) == 0
    assert cli.main(["export", "--scale", "mini", "--out", "whole.zip", "mini/table1"]) == 0
    monkeypatch.chdir(clone(small_project, tmp_path / "other"))
    (note,) = import_crate(small_project / "whole.zip")
    assert "4 runs imported" in note
    assert {path.parts[2] for path in Path("results").rglob("*") if path.is_file()} == {"imported"}
    assert not any(finding.severity == FAILURE for finding in audit(fitting("mini"))[0])


def test_a_later_publication_brings_what_is_new_and_takes_out_what_it_lists(crate, other, small_project, monkeypatch):
    """In both orders of import; the file that was taken out comes back with neither crate."""
    monkeypatch.chdir(small_project)
    path = runs()[0]
    edit(path, fewer_right)
    publish(Plan("mini", ["mini"]), ["mini"], replace=True)
    (second,) = set(PUBLISHED.glob("*.zip")) - {crate.relative_to(small_project)}
    for first, then in ((crate, second), (second, crate)):
        monkeypatch.chdir(other)
        shutil.rmtree("results", ignore_errors=True)
        notes = [note for each in (first, then) for note in import_crate(small_project / each)]
        assert not [note for note in notes if "differs" in note]
        assert TOP.joinpath(path.relative_to(RUNS)).read_bytes() == (small_project / path).read_bytes()
        assert len([each for files in imported.imported("mini").values() for each in files]) == 4
        assert [import_crate(small_project / each) for each in (crate, second)] == [[], []]
        assert not any(finding.severity == FAILURE for finding in audit(fitting("mini"))[0])


def test_a_list_of_runs_to_take_out_reaches_imported_runs_alone(crate):
    path = runs()[0]

    def listing(there):
        there["taken-out-sha256.txt"] = f"{digest_of(record_path(path))}  {record_path(path)}\n".encode()

    with pytest.raises(CrateError, match="is no imported run's record"):
        import_crate(rewritten(crate, listing))
    assert path.is_file()


def test_a_list_of_runs_to_take_out_names_records_alone(crate, other):
    import_crate(crate)
    before = contents()
    path = runs(TOP)[0]

    def listing(there):
        there["taken-out-sha256.txt"] = f"{digest_of(path)}  {path}\n".encode()

    with pytest.raises(CrateError, match="is no imported run's record"):
        import_crate(rewritten(crate, listing))
    assert contents() == before


def test_a_crate_is_checked_by_its_own_records_alone(crate, other):
    """Where the records that it lacks are imported already, too."""

    def without_records(there):
        for name in [name for name in there if "/imported/records/" in name]:
            del there[name]

    damaged = rewritten(crate, without_records)
    faults, _ = check(damaged)
    import_crate(crate)
    assert faults
    assert check(damaged)[0] == faults


def test_what_was_imported_can_be_published_again_to_the_same_bytes(crate, other):
    import_crate(crate)
    (line,) = publish(Plan("mini", ["mini"]), ["mini"])
    assert "4 runs of 2 cells" in line
    assert trained.crate().name == crate.name
    assert trained.crate().read_bytes() == crate.read_bytes()


# --- beside what is there ------------------------------------------------------------------------------------


def test_equal_runs_that_are_there_are_no_news(crate):
    before = contents(RUNS)
    assert len(import_crate(crate)) == 1
    assert contents(RUNS) == before


def test_of_a_seed_that_differs_a_line_tells_and_the_local_one_stays(crate):
    path = runs()[0]
    edit(path, fewer_right)
    before = contents(RUNS)
    _, note = import_crate(crate)
    assert note == f"{path}: seed 0 differs from {crate.name}'s, by 0.0500 in accuracy; this one is kept"
    assert contents(RUNS) == before


def test_a_damaged_result_here_is_told_and_stays(crate):
    path = runs()[0]
    path.write_bytes(b"{")
    assert "is no result of runs" in import_crate(crate)[1]
    assert path.read_bytes() == b"{"


def test_overlapping_blocks_of_seeds_are_both_kept(crate, other, small_project):
    def together(there):
        names = sorted(name for name in there if name.endswith(".json") and "/imported/mnist/" in name)
        one, _, two, _ = (name for name in names if "/ace-" in name)
        first, second = (json.loads(there[name]) for name in (one.replace(".record", ""), two.replace(".record", "")))
        block = one.replace(".record", "").replace("seed0.json", "seeds0-1.json")
        text = json.dumps(first | {"seeds": first["seeds"] + second["seeds"]}).encode()
        record = json.loads(there[block.replace("seeds0-1.json", "seed0.record.json")])
        record["outputs"] = [{"path": block.replace("imported", "runs"), "sha256": digest_of(text)}]
        record |= {"seeds": [0, 1], "seal": ""}
        record["seal"] = seal(record)
        there |= {block: text, block.replace(".json", ".record.json"): json.dumps(record).encode()}
        for name in names:
            if "/ace-" in name and "seeds" not in name:
                del there[name]

    import_crate(rewritten(crate, together))
    import_crate(crate)
    of_ace = [files.values() for files in imported.imported("mini").values() if len(files) == 3]
    assert [list(map(list, each)) for each in of_ace] == [[[0], [1], [0, 1]]]


# --- what is refused -----------------------------------------------------------------------------------------


def test_one_flipped_byte_is_refused_by_the_name_of_the_file(crate, other, small_project, tmp_path, capsys):
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(crate) as archive:
        archive.extractall(folder)
    path = folder / TOP / runs(small_project / RUNS)[0].relative_to(small_project / RUNS)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert cli.main(["import", str(folder)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(path.relative_to(folder)) in said
    assert "nothing is imported" in said
    assert not TOP.exists()


@pytest.mark.parametrize(("name", "mode"), [("../outside", 0o100644), ("results/mini/imported/a", 0o120777)])
def test_entries_that_lead_out_and_links_are_refused(name, mode, crate, other):
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    with zipfile.ZipFile(crate, "a") as archive:
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(CrateError, match=name):
        import_crate(crate)
    assert not TOP.exists()
    assert not Path("../outside").exists()


def test_foreign_files_of_a_sound_crate_are_not_taken(crate, other):
    path = rewritten(crate, lambda there: there.update({"src/clpapers/evil.py": b"", "config/config.yaml": b"x"}))
    import_crate(path)
    assert {path.parts[:3] for path in Path().rglob("*") if path.is_file() and path.parts[0] in ("src", "results")} == {
        ("results", "mini", "imported")
    }
    assert Path("config/config.yaml").read_bytes() != b"x"


def test_results_of_another_cell_are_refused(crate, other):
    def swap(there):
        results = sorted(name for name in there if "/imported/mnist/" in name and name.endswith("seed0.json"))
        for name, text in zip(results, [there[name] for name in reversed(results)]):
            record = json.loads(there[name.replace("seed0.json", "seed0.record.json")])
            record["outputs"][0]["sha256"] = digest_of(text)
            record["seal"] = seal(record)
            there |= {name: text, name.replace("seed0.json", "seed0.record.json"): json.dumps(record).encode()}

    with pytest.raises(CrateError, match="not of the cell in its name"):
        import_crate(rewritten(crate, swap))
    assert not TOP.exists()


def without_test(whole):
    """A result whose first seed has no test."""
    return whole | {"seeds": [{key: value for key, value in whole["seeds"][0].items() if key != "test"}]}


FORGED = {  # tests/runs/test_result_schema.py has more
    "no JSON": b"{",
    "a cell that is a text": b'{"cell": "x", "seeds": []}',
    "a grid that is none": b'{"cell": {"evaluation": {}, "selection": {"grid": 3}}, "seeds": []}',
    "a seed without its results": b'{"cell": {"evaluation": {}}, "seeds": [{"seed": 0}]}',
    "no test": without_test,
    "deep": b"[" * 100_000,
}


def with_result(crate, text):
    """A crate whose first run has these bytes, or what they become, with a record that fits."""

    def forge(there):
        name = min(name for name in there if "/mnist/" in name and name.endswith("seed0.json"))
        new = text if isinstance(text, bytes) else json.dumps(text(json.loads(there[name]))).encode()
        record = json.loads(there[name.replace("seed0.json", "seed0.record.json")])
        record["outputs"][0]["sha256"] = digest_of(new)
        record["seal"] = seal(record)
        there |= {name: new, name.replace("seed0.json", "seed0.record.json"): json.dumps(record).encode()}

    return rewritten(crate, forge)


@pytest.mark.parametrize("kind", FORGED)
def test_what_is_no_result_is_refused_in_one_line(kind, crate, other, capsys):
    forged = with_result(crate, FORGED[kind])
    assert cli.main(["import", str(forged)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "seed0.json: is " in said
    assert not TOP.exists()
    if kind != "a grid that is none":  # by which an import alone finds the cell
        with pytest.raises(CrateError, match=r"seed0\.json: is no result of runs") as refusal:
            published_runs(Plan("mini", ["mini"]), [forged])
        assert str(refusal.value).isprintable()


def unchecked(content):
    """A result's cell and seeds, whatever the seeds hold."""
    whole = json.loads(content)
    return whole["cell"], {entry["seed"]: {} for entry in whole["seeds"]}


def test_nor_is_anything_measured_of_one_that_was_imported_before(crate, other, monkeypatch, capsys):
    monkeypatch.setattr(imported, "results", unchecked)
    import_crate(with_result(crate, without_test))
    monkeypatch.setattr(Plan, "results", imported_first)
    assert cli.main(["metrics", "--out", "results/mini/metrics/mini/table1.csv"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.fullmatch(
        rf"clpapers: {TOP}/\S+/seed0\.json: is no result of runs \(.+\); delete {TOP} and import other crates\n", said
    )
    assert not Path("results/mini/metrics/mini/table1.csv").exists()


def test_a_run_that_lacks_what_a_metric_needs_of_its_learner_is_named(crate, other, monkeypatch, capsys):
    """What a learner tells of itself is its own; so a measure alone finds out that it is not there."""
    from clpapers.metrics import learning

    import_crate(with_result(crate, lambda whole: whole | {"seeds": [whole["seeds"][0] | {"learner": {"x": 1}}]}))
    monkeypatch.setattr(Plan, "results", imported_first)
    counted = learning.SCALARS["final_accuracy"]
    monkeypatch.setitem(
        learning.SCALARS, "final_accuracy", lambda run: run["learner"]["none"] if run["learner"] else counted(run)
    )
    assert cli.main(["metrics", "--out", "results/mini/metrics/mini/table1.csv"]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(
        rf"clpapers: {TOP}/\S+/seed0\.json: cannot be measured \(KeyError\('none'\)\); delete .+\n", said
    )


def zipped(crate, change):
    """Have something more in a zip."""
    with zipfile.ZipFile(crate, "a") as archive:
        change(archive)


ADDED = {
    "a run twice": lambda archive: archive.writestr(next(n for n in archive.namelist() if n.endswith("d0.json")), "{}"),
    "a bomb": lambda archive: archive.writestr("results/mini/imported/x", bytes(1 << 26), zipfile.ZIP_DEFLATED),
    "many": lambda archive: [archive.writestr(f"results/mini/imported/records/{i:064x}.json", "{}") for i in range(99)],
    "a folder above": lambda archive: archive.writestr("../../x", ""),
    "a list of crates": lambda archive: archive.writestr("results/mini/imported/crates.json", "{}"),
    "a choice": lambda archive: archive.writestr("results/mini/choices/0123456789abcdef.json", "{}"),
    "another scale": lambda archive: archive.writestr("results/paper/imported/a/b/c-0123456789/seed0.json", "{}"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ADDED)
def test_what_the_manifest_does_not_tell_of_is_refused_in_one_line(kind, crate, other, capsys):
    zipped(crate, ADDED[kind])
    assert cli.main(["import", str(crate)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(crate) in said
    assert not TOP.exists()


def test_a_commit_that_is_none_is_unknown_and_git_is_not_asked(monkeypatch):
    from clpapers.audit import audit as audits

    monkeypatch.setattr("subprocess.run", None)
    assert not audits.in_clone("--help")
    assert not audits.in_clone("unknown")


def test_runs_on_a_stand_in_are_refused_where_the_scale_takes_real_data(crate, other):
    scale = Path("config/scales/mini.yaml")
    text = scale.read_text().replace("sources: stand_in", "sources: real")
    scale.write_text(text[: text.index("stand_ins:")])
    with pytest.raises(CrateError, match="was trained on a stand-in of mnist"):
        import_crate(crate)


def test_runs_on_other_data_than_config_has_are_refused(crate, other):
    from clpapers.config.facts import Facts

    facts = Facts("mini")
    told = {"standin": False, "partial": False, "sha256": {"train": "0" * 64}}
    with pytest.raises(ValueError, match="another mnist than"):
        imported._fit({"mnist": told}, facts)
    imported._fit({"mnist": told | {"sha256": facts.datasets["mnist"]["sha256"]}}, facts)


def test_a_scale_that_is_not_there_is_refused(crate, other):
    Path("config/scales/mini.yaml").unlink()
    with pytest.raises(CrateError, match="scale 'mini', which config/scales/ does not have"):
        import_crate(crate)


def test_a_crate_that_cannot_be_read_is_refused(crate, other):
    whole = crate.read_bytes()
    at = whole.index(MANIFEST.encode()) + len(MANIFEST) + 20
    crate.write_bytes(whole[:at] + bytes(40) + whole[at + 40 :])
    with pytest.raises(CrateError, match="cannot be read"):
        import_crate(crate)
    assert not TOP.exists()


# --- what tells of them --------------------------------------------------------------------------------------


def test_the_audit_passes_them(crate, other):
    import_crate(crate)
    found, checked = audit(fitting("mini"))
    assert (found, checked > 8) == ([], True)


def damaged(path):
    path.write_bytes(path.read_bytes()[:-2] + b" \n")


def resealed(path):
    edit(path, fewer_right)


def put_there(path):
    path.with_name("seed7.json").write_bytes(path.read_bytes())
    record_path(path.with_name("seed7.json")).write_bytes(record_path(path).read_bytes())


@pytest.mark.parametrize(
    ("tamper", "name", "said"),
    [
        (damaged, "seed0.json", "not the bytes that its record holds"),
        (resealed, "seed0.json", "in no crate that"),
        (resealed, "seed0.record.json", "in no crate that"),
        (put_there, "seed7.json", "in no crate that"),
    ],
)
def test_the_audit_fails_on_what_was_tampered_with(tamper, name, said, crate, other):
    import_crate(crate)
    path = runs(TOP)[0]
    tamper(path)
    found = [finding for finding in audit(fitting("mini"))[0] if finding.severity == FAILURE]
    assert any(finding.file == str(path.with_name(name)) and said in finding.reason for finding in found)


def test_the_audit_fails_on_a_forged_manifest_and_on_strangers(crate, other):
    import_crate(crate)
    (manifest,) = (TOP / "crates").iterdir()
    manifest.write_text(manifest.read_text() + "\n")
    (TOP / "notes.txt").write_text("")
    found = {finding.file for finding in audit(fitting("mini"))[0] if finding.severity == FAILURE}
    assert {str(manifest), str(TOP / "notes.txt"), *map(str, runs(TOP))} <= found


def test_other_code_and_an_unknown_commit_are_warnings(crate, other, monkeypatch):
    def of_a_stranger(there):
        for name in [name for name in there if "/mnist/" in name and name.endswith(".record.json")]:
            record = json.loads(there[name]) | {"code": "0" * 16, "git": {"commit": "1" * 40, "dirty": False}}
            record["seal"] = seal(record)
            there[name] = json.dumps(record).encode()

    import_crate(rewritten(crate, of_a_stranger))
    found, _ = audit(fitting("mini"))
    assert {finding.severity for finding in found} == {WARNING}
    reasons = {finding.reason.rpartition("; ")[0] for finding in found}
    assert reasons == {
        "trained by other code than there is now",
        "trained at a commit that is not in this clone",
    }
    assert all("1111111111" in finding.reason for finding in found)


def test_lineage_tells_who_trained_and_leads_to_the_data(crate, other, capsys):
    import_crate(crate)
    capsys.readouterr()
    assert cli.main(["lineage", str(runs(TOP)[0])]) == 0
    said = capsys.readouterr().out
    assert f"imported from {crate.name} on " in said
    assert "trained at commit " in said
    assert "results/mini/streams/mnist/stf-0.05-n30/seed0.npz" in said
    assert "results/mini/datasets/mnist.npz" in said
    assert "data mnist from " in said
    assert "by checksum" in said
    assert "MISSING" not in said


def test_a_job_reads_them_as_it_reads_its_own(crate, other):
    """What is made of them inherits what their records say of data, and refuses what is not as recorded."""
    from clpapers.provenance import ProvenanceError, read_record, recording

    import_crate(crate)
    path, out = runs(TOP)[0], Path("results/mini/metrics/mini/x.csv")
    out.parent.mkdir(parents=True)
    with recording("metrics", [out], [path], "0" * 16):
        out.write_text("")
    record = read_record(out)
    assert record["data"]["mnist"]["standin"] is True
    assert record["inputs"][0]["path"] == str(path)
    damaged(path)
    with pytest.raises(ProvenanceError, match="not the bytes that its record holds"), recording("m", [out], [path], ""):
        pass


# --- what is made of them ------------------------------------------------------------------------------------

BUILT = (
    ("metrics", "metrics/mini/table1.csv"),
    ("table", "targets/mini/table1.csv"),
    ("reported", "targets/mini/table1.reported.csv"),
    ("paired", "targets/mini/table1.paired.csv"),
)


@pytest.fixture
def table(crate, other, monkeypatch):
    """A table made of imported runs alone, by a plan that finds them."""
    import_crate(crate)
    monkeypatch.setattr(Plan, "results", imported_first)
    for command, out in BUILT:
        assert cli.main([command, "--out", f"results/mini/{out}"]) == 0
    return Path("results/mini/targets/mini/table1.csv")


def test_a_table_of_them_has_a_footnote_and_passes_the_audit(table):
    commit = json.loads(record_path(runs(TOP)[0]).read_text())["git"]["commit"]
    for ending in (".md", ".html", ".tex"):
        said = table.with_suffix(ending).read_text()
        assert f"imported, not trained here: 4; commits of their code: {commit[:10]} (4)." in said
    assert audit(fitting("mini"), ["mini/table1"])[0] == []
    damaged(runs(TOP)[0])
    found = audit(fitting("mini"), ["mini/table1"])[0]
    assert {str(runs(TOP)[0])} <= {finding.file for finding in found if finding.severity == FAILURE}


def test_the_lineage_of_one_number_is_its_own_runs(table, crate, capsys):
    capsys.readouterr()
    assert cli.main(["lineage", str(table), "--cell", "ER,MNIST"]) == 0
    said = capsys.readouterr().out
    assert said.count(f"imported from {crate.name}") == 2
    assert "/er-" in said
    assert "/ace-" not in said


def test_an_export_takes_them_along_with_the_records_behind(table):
    for name in ("README.md", "Snakefile", "rules", "src", "profiles", "envs", "pyproject.toml", "requirements.lock"):
        os.symlink(Path(__file__).parents[2] / name, name)
    assert cli.main(["export", "--scale", "mini", "--out", "whole.zip", "mini/table1"]) == 0
    assert cli.main(["export", "--check", "whole.zip"]) == 0
    with zipfile.ZipFile("whole.zip") as archive:
        there = set(archive.namelist())
    assert {str(path) for path in (*runs(TOP), *(TOP / "records").iterdir())} <= there


# --- by hand -------------------------------------------------------------------------------------------------


def test_accuracies_and_their_distance_by_hand():
    one = {"test": {"none": {"correct": [3, 1], "total": [4, 4]}, "oracle": {"correct": [4, 4], "total": [4, 4]}}}
    other = {"test": {"none": {"correct": [3, 3], "total": [4, 4]}, "oracle": {"correct": [4, 3], "total": [4, 4]}}}
    assert accuracies(one) == {"none": 0.5, "oracle": 1.0}
    assert accuracy_gap(one, other) == 0.25  # of 0.25 and 0.125
    assert accuracy_gap(one, {"test": None}) == float("inf")


def test_the_hash_of_a_cell_is_of_what_was_to_be_selected(small_project):
    search = {"grid": {"budget.learning_rate": [1, 2]}}
    spec = {"learner": {"name": "er"}, "budget": {"learning_rate": "selected"}, "selection": search}
    filled = spec | {"budget": {"learning_rate": 2}}
    plain = {key: value for key, value in filled.items() if key != "selection"}
    assert hash_of(filled) == hash_of(spec) != hash_of(plain)


def test_a_list_of_crates_that_cannot_be_read_is_refused(crate, other, capsys):
    import_crate(crate)
    (TOP / "crates.json").write_text("{")
    assert cli.main(["import", str(crate)]) == 2
    assert "crates.json: not readable" in capsys.readouterr().err


@pytest.mark.parametrize("others", [True, False], ids=["other code", "the same code"])
def test_another_stream_is_a_fault_only_of_the_same_code(others, crate, other):
    """The published run says that it read another stream than this clone draws."""

    def of_another_stream(there):
        streams = {digest_of(text): name for name, text in there.items() if b'"stage": "streams"' in text}
        for name in [name for name in there if "/mnist/" in name and re.search(r"seed\d+\.record\.json$", name)]:
            record = json.loads(there[name])
            for item in record["inputs"]:
                if (place := streams.get(item.get("record"))) is None:
                    continue
                stream = json.loads(there[place])
                stream["outputs"][0]["sha256"] = item["sha256"] = "1" * 64
                stream |= {"code": "0" * 16} if others else {}
                stream["seal"] = seal({key: value for key, value in stream.items() if key != "seal"})
                text = json.dumps(stream).encode()
                item["record"] = digest_of(text)
                there[str(Path(place).with_name(f"{item['record']}.json"))] = text
            record["seal"] = seal({key: value for key, value in record.items() if key != "seal"})
            there[name] = json.dumps(record).encode()

    import_crate(rewritten(crate, of_another_stream))
    plan = Plan("mini", ["mini"])
    for cell in plan.cells.values():
        for path in (path for path in plan.results(cell) if "mnist" in path.parts):
            for each in jobs.job_of(plan, path).inputs:
                if not each.exists():
                    train(plan, each)
    found = [finding for finding in audit(fitting("mini"))[0] if re.search("another .* than is", finding.reason)]
    assert {finding.severity for finding in found} == {WARNING if others else FAILURE}
