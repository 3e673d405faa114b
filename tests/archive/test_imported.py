"""Runs of a crate are taken in once, as they are, beside those that are there; and nothing else is."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from world import METRICS, TABLE
from world.published import PUBLISHED, RUNS, edit, fewer_right, make, runs
from world.published import crate as published_crate

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
from clpapers.audit.audit import FAILURE, WARNING, audit, fitting, in_clone
from clpapers.builds.preparation import prepare
from clpapers.builds.verify import published_runs
from clpapers.config.plan import Plan
from clpapers.config.selected_runs import SelectedRuns
from clpapers.graph import jobs
from clpapers.provenance import record_path, seal
from clpapers.report.publish import publish

TOP = folder_of("mini")


@pytest.fixture
def crate(small_project):
    publish(Plan("mini", ["mini"]), ["mini"])
    return small_project / published_crate()


@pytest.fixture
def other(crate):
    """The project without results, which is the working folder; the crate lies beside it."""
    shutil.move(crate, crate.parents[4])
    shutil.rmtree("results")
    return crate.parents[4] / crate.name


def contents(folder=TOP):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def failures():
    return [finding for finding in audit(fitting("mini"))[0] if finding.severity == FAILURE]


def refused(capsys, *command):
    """The one line by which a command refuses."""
    capsys.readouterr()
    assert cli.main([*map(str, command)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said.rstrip("\n")


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


def resealed(record, **facts):
    """The bytes of a record with other facts."""
    record = {key: value for key, value in (json.loads(record) | facts).items() if key != "seal"}
    return json.dumps(record | {"seal": seal(record)}).encode()


def records_of_runs(there):
    return [name for name in there if re.search(r"/mnist/.*seed\d+\.record\.json$", name)]


# --- what is taken in ----------------------------------------------------------------------------------------


def test_all_runs_come_as_they_were_published_and_once(crate, small_project):
    trained = {path.relative_to(RUNS): (path.read_bytes(), record_path(path).read_bytes()) for path in runs()}
    shutil.move(crate, crate := small_project / "mini.zip")
    shutil.rmtree("results")
    (note,) = import_crate(crate)
    assert note.startswith(f"{crate}: 4 runs imported, manifest SHA-256 ")
    found = imported.imported("mini")
    assert {key: [list(seeds) for seeds in files.values()] for key, files in found.items()} == {
        path.parent.name[-10:]: [[0], [1]] for path in trained
    }
    for path, (content, record) in trained.items():
        assert (TOP / path).read_bytes() == content
        assert record_path(TOP / path).read_bytes() == record
        source = source_of(TOP / path, digest_of(TOP / path))
        assert (source["name"], source["manifest"]) == (crate.name, note.rpartition(" ")[2])
        assert {item["record"] for item in json.loads(record)["inputs"]} <= {
            file.stem for file in (TOP / "records").iterdir()
        }
    assert audit(fitting("mini"))[0] == []
    before, whole = contents(), bytearray(crate.read_bytes())
    whole[whole.index(b"CITATION.cff") + 20] ^= 1  # of a crate that is known only the manifest is read
    crate.write_bytes(whole)
    assert import_crate(crate) == []
    assert contents() == before


def packed_again(crate, name=str, method=zipfile.ZIP_DEFLATED, more=()):
    """The files of a crate in another zip, by other names, packed by another method."""
    path = crate.with_name("again.zip")
    with zipfile.ZipFile(crate) as archive, zipfile.ZipFile(path, "w", method) as again:
        for each in (*archive.namelist(), *more):
            again.writestr(name(each), archive.read(each) if each in archive.namelist() else b"")
    return path


def test_a_crate_that_was_packed_again_is_the_same(other, tmp_path):
    with zipfile.ZipFile(other) as archive:
        archive.extractall(tmp_path / "unpacked/mini")
    assert check(tmp_path / "unpacked") == check(other)
    for name, method in (
        ("downloads/of the crate/{}".format, zipfile.ZIP_STORED),
        ("./mini/{}".format, zipfile.ZIP_BZIP2),
        (str, zipfile.ZIP_LZMA),
    ):
        again = packed_again(other, name, method)
        assert check(again) == check(other)
        (note,) = import_crate(again)
        assert note.startswith(f"{again}: 4 runs imported, manifest SHA-256 ")
        assert import_crate(other) == []
        shutil.rmtree("results")


@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        (lambda name: f"mini/{name}".replace("/", "\\"), [], r"has a name with \\, which may stand"),
        ("mini/{}".format, ["../__MACOSX/._LICENSE"], "leads out of the crate"),
        (lambda name: name if "MACOSX" in name else f"mini/{name}", ["__MACOSX/._mini"], "_mini: is not in mini/, as "),
    ],
)
def test_of_a_crate_that_was_packed_otherwise_it_is_said_how(name, more, told, other):
    again = packed_again(other, name, more=more)
    with pytest.raises(CrateError, match=f"^{again}: .*{told}"):
        import_crate(again)
    assert not TOP.exists()


def test_the_projects_own_are_imported_where_it_has_them(other):
    assert import_published("mini") == []
    PUBLISHED.mkdir(parents=True)
    shutil.copy(other, PUBLISHED)
    (note,) = import_published("mini")
    assert "4 runs imported" in note
    assert import_published("mini") == []


@pytest.mark.parametrize("noted", [True, False], ids=["as the project's", "before that was noted"])
def test_without_published_runs_those_that_the_user_imported_stay(noted, other):
    """The user's crate has the runs of one learner, among them one that the project's crate has too."""
    PUBLISHED.mkdir(parents=True)
    own = Path(shutil.copy(other, PUBLISHED))
    import_published("mini") if noted else import_crate(own)
    assert imported.imported("mini", published=False) == {}
    assert len(imported.imported("mini")) == 2
    kept = runs(TOP)[0]

    def of_the_user(there):
        for name in [name for name in there if imported.RUN.fullmatch(name)]:
            if Path(name).parent.name != kept.parent.name:
                del there[name], there[str(record_path(name))]

    import_crate(rewritten(other, of_the_user))
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


def test_a_later_publication_brings_what_is_new_and_takes_out_what_it_lists(crate, tmp_path):
    """In both orders of import; the file that was taken out comes back with neither crate."""
    path = runs()[0]
    edit(path, fewer_right)
    after = path.read_bytes()
    publish(Plan("mini", ["mini"]), ["mini"], replace=True)
    (second,) = {each.resolve() for each in PUBLISHED.glob("*.zip")} - {crate}
    crates = [Path(shutil.copy(each, tmp_path)) for each in (crate, second)]
    for first, then in (crates, crates[::-1]):
        shutil.rmtree("results")
        notes = [note for each in (first, then) for note in import_crate(each)]
        assert not [note for note in notes if "differs" in note]
        assert TOP.joinpath(path.relative_to(RUNS)).read_bytes() == after
        assert len([each for files in imported.imported("mini").values() for each in files]) == 4
        assert [import_crate(each) for each in crates] == [[], []]
        assert failures() == []


@pytest.mark.parametrize("named", [lambda: record_path(runs()[0]), lambda: runs(TOP)[0]], ids=["of here", "no record"])
def test_a_list_of_runs_to_take_out_reaches_records_of_imported_runs_alone(named, crate):
    shutil.copytree(RUNS, TOP)
    path = named()
    before = contents(Path("results"))

    def listing(there):
        there["taken-out-sha256.txt"] = f"{digest_of(path)}  {path}\n".encode()

    with pytest.raises(CrateError, match="is no imported run's record"):
        import_crate(rewritten(crate, listing))
    (crate.parent / "rewritten.zip").unlink()
    assert contents(Path("results")) == before


def test_a_crate_is_checked_by_its_own_records_alone(other):
    """Where the records that it lacks are imported already, too."""

    def without_records(there):
        for name in [name for name in there if "/imported/records/" in name]:
            del there[name]

    damaged = rewritten(other, without_records)
    faults, _ = check(damaged)
    import_crate(other)
    assert faults
    assert check(damaged)[0] == faults


def test_what_was_imported_can_be_published_again_to_the_same_bytes(other):
    import_crate(other)
    (line,) = publish(Plan("mini", ["mini"]), ["mini"])
    assert "4 runs of 2 cells" in line
    assert published_crate().name == other.name
    assert published_crate().read_bytes() == other.read_bytes()


# --- beside what is there ------------------------------------------------------------------------------------


def test_local_runs_stay_and_of_those_that_differ_a_line_tells(crate):
    before = contents(RUNS)
    assert len(import_crate(crate)) == 1  # equal runs are no news
    assert contents(RUNS) == before
    shutil.rmtree(TOP)
    unlike, damaged = runs()[:2]
    edit(unlike, fewer_right)
    damaged.write_bytes(b"{")
    before = contents(RUNS)
    notes = import_crate(crate)
    assert f"{unlike}: seed 0 differs from {crate.name}'s, by 0.0500 in accuracy; this one is kept" in notes
    assert any(note.startswith(f"{damaged}: is no result of runs") for note in notes)
    assert contents(RUNS) == before


def test_overlapping_blocks_of_seeds_are_both_kept(other):
    def together(there):
        names = sorted(name for name in there if name.endswith(".json") and "/imported/mnist/" in name)
        one, _, two, _ = (name for name in names if "/ace-" in name)
        first, second = (json.loads(there[name.replace(".record", "")]) for name in (one, two))
        block = one.replace(".record", "").replace("seed0.json", "seeds0-1.json")
        text = json.dumps(first | {"seeds": first["seeds"] + second["seeds"]}).encode()
        outputs = [{"path": block.replace("imported", "runs"), "sha256": digest_of(text)}]
        record = resealed(there[block.replace("seeds0-1.json", "seed0.record.json")], outputs=outputs, seeds=[0, 1])
        there |= {block: text, block.replace(".json", ".record.json"): record}
        for name in names:
            if "/ace-" in name and "seeds" not in name:
                del there[name]

    import_crate(rewritten(other, together))
    import_crate(other)
    of_ace = [files.values() for files in imported.imported("mini").values() if len(files) == 3]
    assert [list(map(list, each)) for each in of_ace] == [[[0], [1], [0, 1]]]


# --- what is refused -----------------------------------------------------------------------------------------


def test_foreign_files_of_a_sound_crate_are_not_taken(other):
    before = Path("config/config.yaml").read_bytes()
    new = {"src/clpapers/evil.py": b"", "config/config.yaml": b"x", "Snakefile": b"x"}
    import_crate(rewritten(other, lambda there: there.update(new)))
    assert not Path("src/clpapers/evil.py").exists()
    assert Path("config/config.yaml").read_bytes() == before
    assert {path.parts[:3] for path in Path("results").rglob("*") if path.is_file()} == {
        ("results", "mini", "imported")
    }


def with_result(crate, text, **facts):
    """A crate whose first run has these bytes, or what they become, with a record that fits, and has these facts."""

    def forged(there):
        name = min(name for name in there if "/mnist/" in name and name.endswith("seed0.json"))
        new = text if isinstance(text, bytes) else json.dumps(text(json.loads(there[name]))).encode()
        record = name.replace("seed0.json", "seed0.record.json")
        (output,) = json.loads(there[record])["outputs"]
        outputs = [output | {"sha256": digest_of(new)}]
        there |= {name: new, record: resealed(there[record], outputs=outputs, **facts)}

    return rewritten(crate, forged)


def without_test(whole):
    """A result whose first seed has no test."""
    return whole | {"seeds": [{key: value for key, value in whole["seeds"][0].items() if key != "test"}]}


NO_GRID = b'{"cell": {"evaluation": {}, "selection": {"grid": 3}}, "seeds": []}'
FORGED = {  # tests/runs/test_result_schema.py has more
    "no JSON": b"{",
    "deep": b"[" * 100_000,
    "a grid that is none": NO_GRID,
    "no test": without_test,
}


@pytest.mark.parametrize("kind", FORGED)
def test_what_is_no_result_is_refused_in_one_line(kind, other, capsys):
    forged = with_result(other, FORGED[kind])
    assert "seed0.json: is " in refused(capsys, "import", forged)
    assert not TOP.exists()
    if kind != "a grid that is none":  # by which an import alone finds the cell
        with pytest.raises(CrateError, match=r"seed0\.json: is no result of runs") as refusal:
            published_runs(Plan("mini", ["mini"]), [forged])
        assert str(refusal.value).isprintable()


def of_another_cell(there):
    results = sorted(name for name in there if "/imported/mnist/" in name and name.endswith("seed0.json"))
    for name, text in zip(results, [there[name] for name in reversed(results)]):
        record = name.replace("seed0.json", "seed0.record.json")
        (output,) = json.loads(there[record])["outputs"]
        there |= {name: text, record: resealed(there[record], outputs=[output | {"sha256": digest_of(text)}])}


def of_other_seeds(there):
    record = min(records_of_runs(there))
    there[record] = resealed(there[record], seeds=[7])


def of_other_data(there):
    for name in records_of_runs(there):
        facts = json.loads(there[name])["data"]["mnist"]
        there[name] = resealed(there[name], data={"mnist": facts | {"standin": False, "sha256": {"train": "0" * 64}}})


def real_data():
    scale = Path("config/scales/mini.yaml")
    text = scale.read_text().replace("sources: stand_in", "sources: real")
    scale.write_text(text[: text.index("stand_ins:")])


UNFIT = {  # what the crate's runs are, what is done to the project, what is said
    "of another cell": (of_another_cell, None, "not of the cell in its name"),
    "of other seeds than the record says": (of_other_seeds, None, "not the ones in its name"),
    "on a stand-in": (dict, real_data, "was trained on a stand-in of mnist"),
    "on other data": (of_other_data, None, "was trained on another mnist than config/datasets.yaml has"),
    "of an unknown scale": (
        dict,
        Path("config/scales/mini.yaml").unlink,
        "scale 'mini', which config/scales/ does not",
    ),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_runs_that_do_not_fit_are_refused(kind, other, capsys):
    change, prepared, told = UNFIT[kind]
    if prepared:
        prepared()
    assert told in refused(capsys, "import", rewritten(other, change))
    assert not TOP.exists()


def flipped(path):
    """Change a byte of a run's packed result."""
    whole = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = next(each for each in archive.infolist() if each.filename.endswith("seed0.json"))
    whole[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 1
    path.write_bytes(whole)


def zeroed(path):
    """Overwrite the packed manifest."""
    whole = path.read_bytes()
    at = whole.index(MANIFEST.encode()) + len(MANIFEST) + 20
    path.write_bytes(whole[:at] + bytes(40) + whole[at + 40 :])


def added(path, name="results/mini/imported/crates.json"):
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, "{}")


def twice(path):
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("d0.json"))
    added(path, name)


CHANGED = {
    "a flipped byte": (flipped, "seed0.json: "),
    "a manifest that cannot be read": (zeroed, "cannot be read"),
    "a run twice": (twice, "is there twice"),
    "a list of crates": (added, "is not listed"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", CHANGED)
def test_a_crate_that_was_changed_is_refused_in_one_line(kind, other, capsys):
    change, told = CHANGED[kind]
    change(other)
    before = {path for path in other.parent.rglob("*") if path.is_file()}
    line = refused(capsys, "import", other)
    assert str(other) in line
    assert told in line
    assert {path for path in other.parent.rglob("*") if path.is_file()} == before


def test_a_list_of_crates_that_cannot_be_read_is_refused(other, capsys):
    import_crate(other)
    (TOP / "crates.json").write_text("{")
    assert "crates.json: not readable" in refused(capsys, "import", other)


# --- what tells of them --------------------------------------------------------------------------------------


def damaged(path):
    path.write_bytes(path.read_bytes()[:-2] + b" \n")


def put_there(path):
    path.with_name("seed7.json").write_bytes(path.read_bytes())
    record_path(path.with_name("seed7.json")).write_bytes(record_path(path).read_bytes())


@pytest.mark.parametrize(
    ("tamper", "name", "said"),
    [
        (damaged, "seed0.json", "not the bytes that its record holds"),
        (lambda path: edit(path, fewer_right), "seed0.json", "in no crate that"),
        (lambda path: edit(path, fewer_right), "seed0.record.json", "in no crate that"),
        (put_there, "seed7.json", "in no crate that"),
        (lambda path: (TOP / "notes.txt").write_text(""), "../../../notes.txt", ""),
    ],
)
def test_the_audit_fails_on_what_was_tampered_with(tamper, name, said, other):
    import_crate(other)
    path = runs(TOP)[0]
    tamper(path)
    file = Path("results") / (path.parent / name).resolve().relative_to(Path("results").resolve())
    assert any(finding.file == str(file) and said in finding.reason for finding in failures())


def test_the_audit_fails_on_a_forged_manifest(other):
    import_crate(other)
    (manifest,) = (TOP / "crates").iterdir()
    manifest.write_text(manifest.read_text() + "\n")
    assert {str(manifest), *map(str, runs(TOP))} <= {finding.file for finding in failures()}


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


def test_lineage_tells_who_trained_and_leads_to_the_data(other, capsys):
    import_crate(other)
    assert cli.main(["lineage", str(runs(TOP)[0])]) == 0
    said = capsys.readouterr().out
    for each in (f"imported from {other.name} on ", "trained at commit ", "results/mini/datasets/mnist.npz"):
        assert each in said
    assert "results/mini/streams/mnist/stf-0.05-n30/seed0.npz" in said
    assert re.search("data mnist from .* by checksum|by checksum.*data mnist from ", said, re.S)
    assert "MISSING" not in said


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


# --- what is made of them ------------------------------------------------------------------------------------

BUILT = (
    ("metrics", METRICS),
    ("table", TABLE),
    ("reported", TABLE.replace("csv", "reported.csv")),
    ("paired", TABLE.replace("csv", "paired.csv")),
)


def chosen():
    """The file by which jobs find the imported runs."""
    found = imported.imported("mini")
    return [
        "--runs",
        SelectedRuns({key: {p: list(s) for p, s in each.items()} for key, each in found.items()}).write("mini"),
    ]


def of_metrics(capsys):
    return refused(capsys, "metrics", "--out", METRICS, *chosen())


def test_a_table_of_them_has_a_footnote_a_lineage_an_audit_and_an_export(other, capsys):
    import_crate(other)
    for command, out in BUILT:
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
    damaged(runs(TOP)[0])
    assert {str(runs(TOP)[0])} <= {finding.file for finding in audit(fitting("mini"), ["mini/table1"])[0]}
    assert f"{runs(TOP)[0]}: not the bytes that its record holds" in of_metrics(capsys)

    shutil.rmtree("results")  # and the crate of the export is one, too
    (note,) = import_crate(Path("whole.zip"))
    assert "4 runs imported" in note
    assert {path.parts[2] for path in Path("results").rglob("*") if path.is_file()} == {"imported"}
    assert failures() == []


def test_nothing_is_measured_of_what_is_no_result(other, capsys):
    """As of a crate that an earlier version imported."""
    import_crate(other)
    path = runs(TOP)[0]
    edit(path, lambda whole: whole["seeds"][0].pop("test"))
    line = of_metrics(capsys)
    told = rf"clpapers: {path}: is no result of runs \(.+\); delete {TOP} and import other crates"
    assert re.fullmatch(told, line)
    assert not Path(METRICS).exists()


def test_a_run_that_lacks_what_a_metric_needs_of_its_learner_is_named(other, monkeypatch, capsys):
    """What a learner tells of itself is its own; so a measure alone finds out that it is not there."""
    from clpapers.metrics import learning

    import_crate(with_result(other, lambda whole: whole | {"seeds": [whole["seeds"][0] | {"learner": {"x": 1}}]}))
    counted = learning.SCALARS["final_accuracy"]
    monkeypatch.setitem(
        learning.SCALARS, "final_accuracy", lambda run: run["learner"]["none"] if run["learner"] else counted(run)
    )
    told = rf"clpapers: {TOP}/\S+/seed0\.json: cannot be measured \(KeyError\('none'\)\); delete .+"
    assert re.fullmatch(told, of_metrics(capsys))


# --- by hand -------------------------------------------------------------------------------------------------


def test_accuracies_and_their_distance_by_hand():
    one = {"test": {"none": {"correct": [3, 1], "total": [4, 4]}, "oracle": {"correct": [4, 4], "total": [4, 4]}}}
    other = {"test": {"none": {"correct": [3, 3], "total": [4, 4]}, "oracle": {"correct": [4, 3], "total": [4, 4]}}}
    assert accuracies(one) == {"none": 0.5, "oracle": 1.0}
    assert accuracy_gap(one, other) == 0.25  # of 0.25 and 0.125
    assert accuracy_gap(one, {"test": None}) == float("inf")


def test_the_hash_of_a_cell_is_of_what_was_to_be_selected():
    search = {"grid": {"budget.learning_rate": [1, 2]}}
    spec = {"learner": {"name": "er"}, "budget": {"learning_rate": "selected"}, "selection": search}
    filled = spec | {"budget": {"learning_rate": 2}}
    plain = {key: value for key, value in filled.items() if key != "selection"}
    assert hash_of(filled) == hash_of(spec) != hash_of(plain)
