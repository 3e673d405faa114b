"""A research object is complete, valid and proves itself far from home; whatever is changed in it is found out."""

import datetime
import json
import os
import shutil
import stat
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest
import requests
import trained
from project import Project
from rocrate_validator import services
from rocrate_validator.models import ValidationSettings

from clpapers import cli
from clpapers.archive import check as archive_form
from clpapers.archive import crate
from clpapers.archive.check import MANIFEST, METADATA, check
from clpapers.config.plan import Plan
from clpapers.provenance import record_path, seal, sha256
from clpapers.report.publish import publish

# What the profile recommends and a project without a public address cannot have: URLs and absolute identifiers.
ADDRESSES = {
    "The Application SHOULD have a url",
    "The SoftwareApplication id SHOULD be an absolute URI",
    "The organization SHOULD have a URL.",
}
TERMS = "https://w3id.org/ro/terms/workflow-run"


@pytest.fixture
def home(built, monkeypatch):
    """A built project, which is the working folder."""
    monkeypatch.chdir(built.folder)
    return built


@pytest.fixture(scope="module")
def original(finished, tmp_path_factory):
    """The crate of everything, as a folder; not to be changed."""
    folder = tmp_path_factory.mktemp("original") / "crate"
    done = finished.clpapers("export", "--out", str(folder), "--agent", "Ada Lovelace")
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture
def copy(original, tmp_path):
    """A crate to tamper with, far from any project."""
    return Path(shutil.copytree(original, tmp_path / "far" / "crate"))


def contents(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def wrong(path):
    """The files that a check finds fault with."""
    return {file for file, _ in check(path)[0]}


def graph(folder):
    return {entity["@id"]: entity for entity in json.loads((folder / METADATA).read_text())["@graph"]}


def listed(value):
    return [each["@id"] for each in (value if isinstance(value, list) else [value])]


def forge(folder):
    """Make manifest and metadata say of every file what it now holds."""
    content = json.loads((folder / METADATA).read_text())
    for entity in content["@graph"]:
        if "sha256" in entity and not entity["@id"].startswith("#"):
            entity["sha256"] = sha256(folder / entity["@id"])
    (folder / METADATA).write_text(json.dumps(content))
    lines = [f"{sha256(folder / name)}  {name}\n" for name in contents(folder) if name != MANIFEST]
    (folder / MANIFEST).write_text("".join(lines))


def swap(folder, name, old, new):
    """Put `new` for `old`, which must be there, in a text, or in a record, which is sealed anew."""
    text = (folder / name).read_text()
    assert old in text
    text = text.replace(old, new)
    if name.endswith(".record.json"):
        record = json.loads(text)
        text = json.dumps(record | {"seal": seal(record)})
    (folder / name).write_text(text)


def zipped(folder, path, extra=()):
    """The folder as a zip, with further entries `(name or ZipInfo, bytes)`."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in contents(folder):
            archive.write(folder / name, name)
        for name, content in extra:
            archive.writestr(name, content)
    return path


# --- what is in it -------------------------------------------------------------------------------------------


def test_everything_but_data_is_in_it(finished, original):
    there = set(contents(original))
    built = {str(p.relative_to(finished.folder)) for p in (finished.folder / "results").rglob("*") if p.is_file()}
    built = {name for name in built if name.split("/")[2] not in ("logs", "benchmarks", "machine.json")}
    assert built - there == {"results/mini/datasets/mnist.npz"}
    assert {"Snakefile", "LICENSE", "requirements.lock", "config/config.yaml", "src/clpapers/runs/loop.py"} <= there
    assert {name.split("/")[0] for name in there} >= {"rules", "workflow", "profiles", "envs"}


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("mini/table1", "runs/mnist/stf-0.05-n30", "targets/mini/figure1.pdf"),
        ("mini/table2", "runs/nets/mini/cifar10.json", "runs/mnist"),
        ("mini/figure1", "streams/toy-13-17-10", "runs/nets"),
    ],
)
def test_a_target_brings_its_own_ancestors_alone(finished, tmp_path, name, has, lacks):
    done = finished.clpapers("export", "--out", str(tmp_path / "crate"), name)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "crate/results/mini" / has).exists()
    assert not (tmp_path / "crate/results/mini" / lacks).exists()
    assert check(tmp_path / "crate")[0] == []


def test_the_data_set_is_named_by_its_checksums_source_and_licence(original):
    record = json.loads((original / "results/mini/datasets/mnist.record.json").read_text())
    entity = graph(original)[f"#results/mini/datasets/mnist.npz/{record['outputs'][0]['sha256']}"]
    assert entity["sha256"] == record["outputs"][0]["sha256"]
    values = {graph(original)[name]["value"] for name in listed(entity["identifier"])}
    assert values == set(record["data"]["mnist"]["sha256"].values())
    assert entity["license"] == "the project's own"
    assert "stand-in" in entity["description"]


def test_each_record_is_an_action(original):
    entities = graph(original)
    records = [name for name in contents(original) if name.endswith(".record.json")]
    actions = {e["@id"]: e for e in entities.values() if e["@type"] == "CreateAction"}
    assert len(actions) == len(records)
    for name in records:
        record, action = json.loads((original / name).read_text()), actions[f"#run/{name}"]
        assert listed(action["result"]) == [
            f"#{item['path']}/{item['sha256']}" if item["path"].endswith("mnist.npz") else item["path"]
            for item in record["outputs"]
        ]
        assert len(listed(action["object"])) == len(record["inputs"])
        assert set(listed(action["object"])) <= set(entities)
        assert entities[action["agent"]["@id"]]["name"] == "Ada Lovelace"
        assert entities[action["instrument"]["@id"]]["name"] == " ".join(record["command"].split()[:2])
        start, end = (datetime.datetime.fromisoformat(action[key]) for key in ("startTime", "endTime"))
        assert start.isoformat() == record["started"]
        assert abs((end - start).total_seconds() - record["wall_seconds"]) <= 1
        usage = {entities[each]["name"]: float(entities[each]["value"]) for each in listed(action["resourceUsage"])}
        assert usage == {key: record[key] for key in ("wall_seconds", "cpu_seconds", "peak_memory_bytes")}


def test_the_same_results_make_the_same_crate(home, original, tmp_path, capsys):
    first = check(original)[1]
    assert cli.main(["export", "--out", str(tmp_path / "again.zip"), "--agent", "Ada Lovelace"]) == 0
    assert first in capsys.readouterr().out
    assert check(tmp_path / "again.zip") == ([], first)


def test_snakemake_runs_in_it(copy):
    assert Project(copy).stages("all")["datasets"] == 1


# --- the profile's own validator -----------------------------------------------------------------------------


class Answer:
    """What the addresses of the two contexts answer; no test goes to the network."""

    known = json.loads(files("rocrate").joinpath("data/ro-crate.jsonld").read_text())["@context"]
    # Of another version than the profile is for, so that Bioschemas' terms were elsewhere.
    known |= {"ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow"}
    contexts = {  # noqa: RUF012
        "https://w3id.org/ro/crate/1.1/context": known,
        f"{TERMS}/context": {term: f"{TERMS}#{term}" for term in ("sha256", "resourceUsage")},
    }
    headers = {"Content-Type": "application/ld+json"}  # noqa: RUF012

    def __init__(self, url, **options):
        self.status_code = 200 if url in self.contexts else 404
        self.content = {"@context": self.contexts.get(url)}

    def json(self):
        return self.content

    def raise_for_status(self):
        if self.status_code != 200:
            raise requests.HTTPError(self.status_code)


@pytest.fixture
def complaints(monkeypatch):
    """A function: what the profile's validator says of a crate, at a severity."""
    monkeypatch.setattr(requests.Session, "get", Answer)

    def said(folder, severity, profile="process-run-crate"):
        options = ValidationSettings(
            rocrate_uri=str(folder), profile_identifier=profile, requirement_severity=severity, no_cache=True
        )
        return {issue.message for issue in services.validate(options).get_issues()}

    return said


def test_it_is_a_process_run_crate_and_all_that_is_recommended(original, complaints):
    assert complaints(original, "RECOMMENDED") <= ADDRESSES


def test_a_published_crate_is_a_process_run_crate_and_all_that_is_recommended(small_project, tmp_path, complaints):
    publish(Plan("mini", ["mini"]), ["mini"])
    with zipfile.ZipFile(trained.crate()) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert complaints(tmp_path / "unpacked", "RECOMMENDED") <= ADDRESSES


def test_the_validator_would_see_what_is_missing(copy, complaints):
    swap(copy, METADATA, '"instrument"', '"name"')
    assert any("instrument" in message for message in complaints(copy, "REQUIRED"))


# --- tampering -----------------------------------------------------------------------------------------------


def test_it_checks_out_far_from_home(copy, monkeypatch, capsys):
    archive = zipped(copy, copy.parent / "crate.zip")
    monkeypatch.chdir(copy.parent)
    for path in (copy, archive):
        assert cli.main(["export", "--check", str(path)]) == 0
        assert f"{path}: as recorded" in capsys.readouterr().out


def kinds(folder):
    """One file of each kind: by its first folder, its stage and its ending."""
    found = {}
    for name in contents(folder):
        parts = name.split("/")
        stage = parts[2] if parts[0] == "results" else ""
        found[parts[0], stage, name.endswith(".record.json"), Path(name).suffix] = name
    return list(found.values())


def test_a_byte_changed_in_any_kind_of_file_is_found(copy):
    assert len(kinds(copy)) > 30
    for name in kinds(copy):
        content = bytearray((copy / name).read_bytes())
        for place in (0, len(content) // 2, len(content) - 1):
            changed = content.copy()
            changed[place] ^= 1
            (copy / name).write_bytes(changed)
            try:
                found = wrong(copy)
            except crate.CrateError as error:
                assert name in (METADATA, MANIFEST), error  # noqa: PT017
            else:
                assert found if name in (METADATA, MANIFEST) else name in found, (name, place)
        (copy / name).write_bytes(content)
    assert wrong(copy) == set()


def test_any_kind_of_file_removed_is_found(copy):
    for name in kinds(copy):
        (copy / name).rename(copy.parent / "away")
        if name in (METADATA, MANIFEST):
            with pytest.raises(crate.CrateError, match=name):
                check(copy)
        else:
            assert name in wrong(copy)
        (copy.parent / "away").rename(copy / name)
    assert wrong(copy) == set()


@pytest.mark.parametrize(
    "name", ["notes.txt", "results/mini/targets/mini/table9.csv", "src/clpapers/backdoor.py", "config/papers/new.yaml"]
)
def test_a_file_added_is_found(copy, name):
    (copy / name).write_text("new")
    assert wrong(copy) == {name}


def test_the_fault_is_named_with_its_reason(copy, capsys):
    name = "results/mini/targets/mini/table1.csv"
    swap(copy, name, "ER", "ERR")
    assert cli.main(["export", "--check", str(copy)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(f"{name}: has SHA-256 {sha256(copy / name)[:12]}…")]
    assert f"{name}: is not the bytes that its record holds" in lines


# Who rewrites the manifest too is still found out by the records, as long as these are not all rewritten.


def test_a_result_changed_behind_a_new_manifest_is_found(copy):
    name = "results/mini/metrics/mini/table1.csv"
    swap(copy, name, "0", "1")
    forge(copy)
    assert wrong(copy) == {name}


def test_a_result_changed_with_its_record_is_found_by_its_readers(copy):
    name = next(n for n in contents(copy) if "/runs/mnist/" in n and n.endswith("seed0.json"))
    before = sha256(copy / name)
    swap(copy, name, "0.", "1.")
    swap(copy, str(record_path(name)), before, sha256(copy / name))
    forge(copy)
    found = check(copy)[0]
    assert {file for file, _ in found} == {name}
    assert any("metrics/mini/table1.record.json" in reason for _, reason in found)


def test_another_data_set_is_found_by_its_readers(copy):
    name = "results/mini/datasets/mnist.record.json"
    digest = json.loads((copy / name).read_text())["outputs"][0]["sha256"]
    swap(copy, name, digest, "0" * 64)
    forge(copy)
    assert wrong(copy) == {"results/mini/datasets/mnist.npz"}


def test_data_without_content_checksums_are_not_believed(copy):
    name = "results/mini/datasets/mnist.record.json"
    record = json.loads((copy / name).read_text())
    record["data"]["mnist"]["sha256"] = {}
    (copy / name).write_text(json.dumps(record))
    forge(copy)
    assert name in wrong(copy)


@pytest.mark.parametrize("seal", [None, "", "0" * 64])
def test_a_record_without_a_seal_is_found(copy, seal):
    name = "results/mini/targets/mini/table1.record.json"
    record = json.loads((copy / name).read_text())
    (copy / name).write_text(json.dumps(record | {"seal": seal}))
    forge(copy)
    assert wrong(copy) == {name}


def test_a_record_sealed_anew_is_found_by_its_readers(copy):
    name = "results/mini/metrics/mini/table1.record.json"
    swap(copy, name, '"wall_seconds": ', '"wall_seconds": 1')
    forge(copy)
    assert wrong(copy) == {name}


def test_a_result_without_a_record_is_found(copy):
    (copy / "results/mini/metrics/mini/table2.record.json").rename(copy / "results/mini/metrics/mini/other.record.json")
    content = json.loads((copy / METADATA).read_text())
    text = json.dumps(content).replace("metrics/mini/table2.record.json", "metrics/mini/other.record.json")
    (copy / METADATA).write_text(text)
    forge(copy)
    assert "results/mini/metrics/mini/table2.csv" in wrong(copy)


def test_who_rewrites_everything_changes_the_fingerprint(copy):
    _, before = check(copy)
    name = "results/mini/targets/mini/table1.csv"
    old = sha256(copy / name)
    swap(copy, name, "ER", "ERR")
    swap(copy, str(record_path(name)), old, sha256(copy / name))
    forge(copy)
    content = (copy / MANIFEST).read_text()
    (copy / MANIFEST).write_text("".join(sorted(content.splitlines(True), key=lambda line: line[66:])))
    found, after = check(copy)
    assert found == []
    assert after != before


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"outputs": 3}', '{"outputs": [{"path": "", "sha256": []}], "inputs": [], "data": {}}']
)
def test_a_record_that_is_none_is_found(copy, text):
    (copy / "results/mini/metrics/mini/table1.record.json").write_text(text)
    forge(copy)
    assert "results/mini/metrics/mini/table1.record.json" in wrong(copy)


# --- zips from outside ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../evil.txt", "/tmp/evil.txt", "a/../../evil.txt", "../../evil/"])
def test_a_path_that_leads_out_is_found_and_nothing_is_written(copy, name):
    archive = zipped(copy, copy.parent / "forged.zip", [(name, b"evil")])
    before = contents(copy.parent)
    assert any("leads out" in reason for _, reason in check(archive)[0])
    assert contents(copy.parent) == before


def test_folders_of_the_crates_files_are_no_fault(copy):
    assert wrong(Path(shutil.make_archive(copy.parent / "packed", "zip", copy))) == set()


def central(archive, edit):
    """Edit the first entry of a zip's directory."""
    content = bytearray(archive.read_bytes())
    edit(content, content.find(b"PK\x01\x02"))
    archive.write_bytes(content)


def set_byte(offset, value):
    def edit(content, at):
        content[at + offset] = value

    return edit


@pytest.mark.parametrize(("offset", "value"), [(8, 0x01), (10, 99), (24, 0xFF), (42, 9)])
def test_an_entry_whose_header_was_changed(copy, offset, value, capsys):
    archive = zipped(copy, copy.parent / "forged.zip")
    central(archive, set_byte(offset, value))
    assert cli.main(["export", "--check", str(archive)]) in (1, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_an_entry_without_a_name(copy):
    archive = zipped(copy, copy.parent / "forged.zip", [("x", b"")])
    content = archive.read_bytes()
    at = content.rfind(b"PK\x01\x02")
    content = content[: at + 28] + b"\0\0" + content[at + 30 : at + 46] + content[at + 47 :]
    end = content.rfind(b"PK\x05\x06")
    size = int.from_bytes(content[end + 12 : end + 16], "little") - 1
    archive.write_bytes(content[: end + 12] + size.to_bytes(4, "little") + content[end + 16 :])
    assert wrong(archive) == {""}


def test_a_name_in_bad_utf8(copy):
    archive = zipped(copy, copy.parent / "forged.zip", [("\N{BLACK SUN WITH RAYS}", b"")])
    archive.write_bytes(archive.read_bytes().replace("\N{BLACK SUN WITH RAYS}".encode(), b"\xff\xfe\xfd"))
    with pytest.raises(crate.CrateError, match="no zip, or damaged"):
        check(archive)


@pytest.mark.parametrize("path", ["/dev/zero", "pipe", "dangling", "a\nb"])
@pytest.mark.parametrize("command", [["export", "--check"], ["import"], ["verify"]])
def test_what_is_no_file_is_not_read(path, command, home, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for part in ("config", "workflow"):
        os.symlink(home.folder / part, part)
    os.mkfifo("pipe")
    os.symlink("gone", "dangling")
    assert cli.main([*command, path]) == 2
    said = capsys.readouterr().err
    assert said.startswith("clpapers: ")
    assert said.count("\n") == 1
    assert said[:-1].isprintable()


@pytest.mark.parametrize("system", [0, 3])
def test_an_entry_that_an_unpacker_leaves_out_is_found(copy, system):
    """Info-ZIP takes one with this attribute of MS-DOS for the label of a disk, whatever system it is from."""
    label = zipfile.ZipInfo("LICENSE")
    label.create_system, label.external_attr = system, (stat.S_IFREG | 0o644) << 16 | 0x08
    text = (copy / "LICENSE").read_bytes()
    (copy / "LICENSE").unlink()
    assert "LICENSE" in wrong(zipped(copy, copy.parent / "forged.zip", [(label, text)]))


def test_an_entry_without_a_type_is_a_plain_file(copy):
    plain = zipfile.ZipInfo("LICENSE")
    plain.external_attr = 0o644 << 16  # as Python's `writestr` has it
    text = (copy / "LICENSE").read_bytes()
    (copy / "LICENSE").unlink()
    assert wrong(zipped(copy, copy.parent / "packed.zip", [(plain, text)])) == set()


def test_two_files_of_one_name_are_found(copy):
    with pytest.warns(UserWarning, match="Duplicate"):
        archive = zipped(copy, copy.parent / "forged.zip", [("LICENSE", b"another")])
    assert wrong(archive) == {"LICENSE"}


def test_a_link_is_found(copy):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert wrong(zipped(copy, copy.parent / "forged.zip", [(link, b"/etc/passwd")])) == {"link"}
    (copy / "link").symlink_to("/etc/passwd")
    os.mkfifo(copy / "pipe")
    assert wrong(copy) == {"link", "pipe"}


def test_a_name_tells_the_terminal_nothing(copy, capsys):
    archive = zipped(copy, copy.parent / "forged.zip", [("\x1b[2Jgone", b"")])
    assert cli.main(["export", "--check", str(archive)]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_a_damaged_member_is_found(copy):
    archive = zipped(copy, copy.parent / "crate.zip")
    content = archive.read_bytes()
    archive.write_bytes(content.replace(b"MIT License", b"MID License", 1))
    assert "LICENSE" in wrong(archive)


def test_what_is_too_large_is_not_read(copy, monkeypatch):
    archive = zipped(copy, copy.parent / "crate.zip")
    monkeypatch.setattr(archive_form, "LARGEST", 1000)
    with pytest.raises(crate.CrateError, match="unpacks to over"):
        check(archive)
    monkeypatch.setattr(archive_form, "LARGEST", 1 << 36)
    monkeypatch.setattr(archive_form, "LARGEST_TEXTS", 1000)
    with pytest.raises(crate.CrateError, match="over 1000 bytes of metadata"):
        check(archive)


def test_what_is_no_crate_is_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "text.zip").write_text("no zip")
    (tmp_path / "empty").mkdir()
    for name, said in (("text.zip", "no zip"), ("empty", METADATA), ("absent.zip", "No such file")):
        assert cli.main(["export", "--check", str(tmp_path / name)]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert name in told
        assert said in told


# --- what is not exported ------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out.zip", "out"])
@pytest.mark.parametrize("name", ["results/mini/targets/mini/table1.md", "results/mini/streams/mnist/{}/seed0.npz"])
def test_what_was_changed_is_not_exported(home, tmp_path, capsys, out, name):
    path = Path(name.format("stf-0.05-n30"))
    path.write_bytes(path.read_bytes() + b"\n")
    assert cli.main(["export", "--out", str(tmp_path / out)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"clpapers: {path}: is not ")
    assert "snakemake" in told
    assert [p.name for p in tmp_path.iterdir() if p != home.folder] == []


def test_what_is_not_built_is_not_exported(home, tmp_path, capsys):
    Path("results/mini/targets/mini/table1.tex").unlink()
    assert cli.main(["export", "--out", str(tmp_path / "out.zip"), "mini/table1"]) == 2
    assert "table1.csv: not built; run `snakemake" in capsys.readouterr().err
    assert cli.main(["export", "--out", str(tmp_path / "out.zip"), "mini"]) == 0
    assert "not built, so not in it: mini/table1" in capsys.readouterr().out
    assert check(tmp_path / "out.zip")[0] == []


@pytest.mark.parametrize("name", ["targets/mini/table1", "metrics/mini/table1", "datasets/mnist"])
@pytest.mark.parametrize("fault", ["gone", "not whole"])
def test_what_has_no_record_is_not_exported(home, capsys, name, fault):
    record = Path(f"results/mini/{name}.record.json")
    if fault == "gone":
        record.unlink()
    else:
        record.write_text(record.read_text().replace('"command"', '"other"'))
    assert cli.main(["export", "--out", "out.zip"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"clpapers: results/mini/{name}.")
    assert told.count("\n") == 1
    assert not Path("out.zip").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "new", "nobody"], "nobody: no paper or target; there are: "),
        (["--out", "results"], "results: there is something already"),
        (["--out", "new", "--scale", "smoke"], "not built"),
    ],
)
def test_what_cannot_be_exported_is_refused_in_one_line(home, capsys, arguments, said):
    assert cli.main(["export", *arguments]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not Path("new").exists()


def test_outside_a_project_there_is_nothing_to_export(home, capsys):
    Path("LICENSE").unlink()
    assert cli.main(["export", "--out", "new"]) == 2
    assert "LICENSE: no such file; run `clpapers export` in the project's folder" in capsys.readouterr().err
