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
from rocrate_validator import services
from rocrate_validator.models import ValidationSettings
from world import DATA, METRICS, STREAM, TABLE, Project, published

from clpapers import cli
from clpapers.archive import check as limits
from clpapers.archive.check import MANIFEST, METADATA, CrateError, check
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
RECORD = METRICS.replace("csv", "record.json")
DATA_RECORD = DATA.replace("npz", "record.json")
LAST = TABLE.replace("csv", "record.json")  # which no other record names


@pytest.fixture
def home(finished, tmp_path, monkeypatch):
    """A built project, which is the working folder."""
    monkeypatch.chdir(finished.copy(tmp_path / "home").folder)


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
    (folder / MANIFEST).write_text("".join(sorted(lines, key=lambda line: line[66:])))


def swap(folder, name, old, new):
    """Put `new` for `old`, which must be there, in a text, or in a record, which is sealed anew."""
    text = (folder / name).read_text()
    assert old in text
    text = text.replace(old, new)
    if name.endswith(".record.json"):
        record = json.loads(text)
        text = json.dumps(record | {"seal": seal(record)})
    (folder / name).write_text(text)


def zipped(folder, extra=()):
    """The folder as a zip beside it, with further entries `(name or ZipInfo, bytes)`."""
    with zipfile.ZipFile(path := folder.parent / "forged.zip", "w") as archive:
        for name in contents(folder):
            archive.write(folder / name, name)
        for name, content in extra:
            archive.writestr(name, content)
    return path


# --- what is in it -------------------------------------------------------------------------------------------


def test_everything_but_data_is_in_it_and_it_runs(finished, original, copy):
    there = set(contents(original))
    built = {str(p.relative_to(finished.folder)) for p in (finished.folder / "results").rglob("*") if p.is_file()}
    built = {name for name in built if name.split("/")[2] not in ("logs", "benchmarks", "machine.json")}
    assert built - there == {DATA}
    assert {"Snakefile", "LICENSE", "requirements.lock", "config/config.yaml", "src/clpapers/runs/loop.py"} <= there
    assert {name.split("/")[0] for name in there} >= {"rules", "workflow", "profiles", "envs"}
    assert Project(copy).stages("all")["datasets"] == 1


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("mini/table1", "runs/mnist/stf-0.05-n30", "targets/mini/figure1.pdf"),
        ("mini/table2", "runs/nets/mini/cifar10.json", "runs/mnist"),
        ("mini/figure1", "streams/toy-13-17-10", "runs/nets"),
    ],
)
def test_a_target_brings_its_own_ancestors_alone(home, tmp_path, name, has, lacks):
    assert cli.main(["export", "--out", str(tmp_path / "crate"), name]) == 0
    assert (tmp_path / "crate/results/mini" / has).exists()
    assert not (tmp_path / "crate/results/mini" / lacks).exists()
    assert check(tmp_path / "crate")[0] == []


def test_the_data_set_is_named_by_its_checksums_source_and_licence(original):
    record = json.loads((original / DATA_RECORD).read_text())
    entity = graph(original)[f"#{DATA}/{record['outputs'][0]['sha256']}"]
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


def test_the_same_results_make_the_same_crate_which_checks_out_anywhere(home, original, copy, monkeypatch, capsys):
    first = check(original)[1]
    again = copy.parent / "again.zip"
    assert cli.main(["export", "--out", str(again), "--agent", "Ada Lovelace"]) == 0
    assert first in capsys.readouterr().out
    assert check(again) == ([], first)
    monkeypatch.chdir(copy.parent)
    for path in (copy, again, Path(shutil.make_archive("packed", "zip", copy))):  # the last with entries of folders
        assert cli.main(["export", "--check", str(path)]) == 0
        assert f"{path}: as recorded" in capsys.readouterr().out


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


def test_exported_and_published_it_is_a_process_run_crate_and_all_that_is_recommended(
    copy, small_project, tmp_path, complaints
):
    publish(Plan("mini", ["mini"]), ["mini"])
    with zipfile.ZipFile(published.crate()) as archive:
        archive.extractall(tmp_path / "unpacked")
    for folder in (copy, tmp_path / "unpacked"):
        assert complaints(folder, "RECOMMENDED") <= ADDRESSES
    swap(copy, METADATA, '"instrument"', '"name"')  # which the validator would see
    assert any("instrument" in message for message in complaints(copy, "REQUIRED"))


# --- tampering -----------------------------------------------------------------------------------------------


def kinds(folder):
    """One file of each kind: by its first folder, its stage and its ending."""
    found = {}
    for name in contents(folder):
        parts = name.split("/")
        stage = parts[2] if parts[0] == "results" else ""
        found[parts[0], stage, name.endswith(".record.json"), Path(name).suffix] = name
    return list(found.values())


def test_a_byte_changed_in_any_kind_of_file_and_any_kind_removed_are_found(copy):
    assert len(kinds(copy)) > 30
    for number, name in enumerate(kinds(copy)):
        content = (copy / name).read_bytes()
        changed = bytearray(content)
        changed[(0, len(content) // 2, -1)[number % 3]] ^= 1
        for now in (bytes(changed), None):
            (copy / name).unlink() if now is None else (copy / name).write_bytes(now)
            try:
                found = wrong(copy)
            except CrateError as error:
                assert name in (METADATA, MANIFEST), error  # noqa: PT017
            else:
                assert found if name in (METADATA, MANIFEST) else name in found, (name, now)
        (copy / name).write_bytes(content)
    assert wrong(copy) == set()


def sealed_otherwise(digits):
    def change(folder):
        record = json.loads((folder / LAST).read_text())
        (folder / LAST).write_text(json.dumps(record | {"seal": digits}))

    return change


def other_data(folder):
    digest = json.loads((folder / DATA_RECORD).read_text())["outputs"][0]["sha256"]
    swap(folder, DATA_RECORD, digest, "0" * 64)


def unproven_data(folder):
    record = json.loads((folder / DATA_RECORD).read_text())
    record["data"]["mnist"]["sha256"] = {}
    (folder / DATA_RECORD).write_text(json.dumps(record | {"seal": seal(record)}))


def with_its_record(name, old, new):
    def change(folder):
        before = sha256(folder / name)
        swap(folder, name, old, new)
        swap(folder, str(record_path(name)), before, sha256(folder / name))

    return change


def elsewhere(folder):
    """A record under another name, in the metadata, too."""
    other = RECORD.replace("table1", "other")
    (folder / RECORD).rename(folder / other)
    swap(folder, METADATA, RECORD, other)


ADDED = "src/clpapers/backdoor.py"
FAULTS = {  # kind → what was done, the files that are told; by who writes the manifest anew, too
    "a file added": (
        lambda folder: (folder / "src/clpapers/backdoor.py").write_text("new"),
        {"src/clpapers/backdoor.py"},
    ),
    "a result": (lambda folder: swap(folder, METRICS, "0", "1"), {METRICS}),
    "a result with its record": (with_its_record(METRICS, "0", "1"), {METRICS}),  # by its readers
    "another data set": (other_data, {DATA}),  # by its readers
    "data without checksums": (unproven_data, {DATA_RECORD}),
    "no seal": (sealed_otherwise(None), {LAST}),
    "another seal": (sealed_otherwise("0" * 64), {LAST}),
    "sealed anew": (lambda folder: swap(folder, RECORD, '"wall_seconds": ', '"wall_seconds": 1'), {RECORD}),
    "no record": (elsewhere, {METRICS}),
    "no JSON": (lambda folder: (folder / RECORD).write_text("{"), {RECORD}),
    "no record's JSON": (
        lambda folder: (folder / RECORD).write_text('{"outputs": [{"path": "", "sha256": []}]}'),
        {RECORD},
    ),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_was_changed_is_found_behind_a_new_manifest(kind, copy):
    change, told = FAULTS[kind]
    change(copy)
    if kind != "a file added":
        forge(copy)
    assert told <= wrong(copy)
    if kind in ("a file added", "a result", "another data set", "no seal", "another seal", "sealed anew"):
        assert wrong(copy) == told


def test_the_fault_is_named_with_its_reason_and_who_rewrites_everything_changes_the_fingerprint(copy, capsys):
    _, before = check(copy)
    old = sha256(copy / TABLE)
    swap(copy, TABLE, "ER", "ERR")
    assert cli.main(["export", "--check", str(copy)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith(f"{TABLE}: has SHA-256 {sha256(copy / TABLE)[:12]}…")]
    assert f"{TABLE}: is not the bytes that its record holds" in lines
    swap(copy, str(record_path(TABLE)), old, sha256(copy / TABLE))
    forge(copy)
    found, after = check(copy)
    assert found == []
    assert after != before


# --- zips from outside ---------------------------------------------------------------------------------------


def entry(name, mode=stat.S_IFREG | 0o644, system=3, attributes=0):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = system, mode << 16 | attributes
    return info


OUT, NO_FILE = "leads out of the crate", "is a link, a device or a label of a disk"
ENTRIES = {  # a further entry of a zip, or one in place of the licence, and how it is told; None where it is no fault
    "a path that leads out": ("../evil.txt", OUT),
    "a path from the root": ("/tmp/evil.txt", OUT),
    "a folder above": ("../../evil/", OUT),
    "a label of a disk": (entry("LICENSE", attributes=0x08), NO_FILE),  # Info-ZIP leaves it out, whatever the system
    "a label by MS-DOS": (entry("LICENSE", system=0, attributes=0x08), NO_FILE),
    "a link": (entry("LICENSE", stat.S_IFLNK | 0o777), NO_FILE),
    "no type, as Python's `writestr` has it": (entry("LICENSE", 0o644), None),
    "a file twice": ("README.md", "is there twice"),
    "signs that move a terminal": ("\x1b[2Jgone", "is not listed"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ENTRIES)
def test_an_entry_of_a_zip(kind, copy, capsys):
    new, told = ENTRIES[kind]
    name = getattr(new, "filename", new)
    text = (copy / "LICENSE").read_bytes()
    if name == "LICENSE":
        (copy / "LICENSE").unlink()
    archive = zipped(copy, [(new, text)])
    before = contents(copy.parent)
    faults = check(archive)[0]
    assert {file for file, _ in faults} == ({name.replace("\x1b", "\\x1b")} if told else set())
    assert not told or any(reason.startswith(told) for _, reason in faults)
    assert cli.main(["export", "--check", str(archive)]) == bool(told)
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())
    assert contents(copy.parent) == before


def central(place, value, length=1):
    """Write bytes at a place of each entry of a zip's directory."""

    def change(content):
        at = content.find(b"PK\x01\x02")
        while at >= 0:
            content[at + place : at + place + length] = value
            at = content.find(b"PK\x01\x02", at + 1)

    return change


def nameless(content):
    """Take the one letter of the last entry's name away."""
    at = content.rfind(b"PK\x01\x02")
    content[at + 28 : at + 30] = b"\0\0"
    del content[at + 46]
    end = content.rfind(b"PK\x05\x06")
    content[end + 12 : end + 16] = (int.from_bytes(content[end + 12 : end + 16], "little") - 1).to_bytes(4, "little")


def replaced(old, new):
    def change(content):
        content[:] = content.replace(old, new)

    return change


BYTES = {  # bytes of a zip changed, and what is said
    "encrypted": (central(8, b"\1"), "is encrypted"),
    "packed by no method": (central(10, b"\x63"), "compression method is not supported"),
    "other places": (central(42, b"\x09"), "cannot be read"),
    "larger than any crate": (central(24, b"\xfe\xff\xff\xff", 4), "unpacks to over"),
    "a name in bad UTF-8": (replaced("\N{BLACK SUN WITH RAYS}".encode(), b"\xff\xfe\xfd"), "no zip, or damaged"),
    "an entry without a name": (nameless, ": leads out of the crate"),
    "a damaged member": (replaced(b"MIT License", b"MID License"), "LICENSE: "),
}


@pytest.mark.parametrize("kind", BYTES)
def test_bytes_of_a_zip(kind, copy, capsys):
    change, told = BYTES[kind]
    extra = {"a name in bad UTF-8": "\N{BLACK SUN WITH RAYS}", "an entry without a name": "x"}
    archive = zipped(copy, [(extra[kind], b"")] if kind in extra else ())
    content = bytearray(archive.read_bytes())
    change(content)
    archive.write_bytes(content)
    assert cli.main(["export", "--check", str(archive)]) in (1, 2)
    said = capsys.readouterr()
    assert told in said.out + said.err
    assert said.err.count("\n") <= 1


def test_more_texts_than_any_crate_has_are_not_read(copy, monkeypatch):
    monkeypatch.setattr(limits, "LARGEST_TEXTS", 1000)
    with pytest.raises(CrateError, match="over 1000 bytes of metadata"):
        check(copy)


@pytest.mark.parametrize("path", ["/dev/zero", "pipe", "dangling", "a\nb", "text.zip", "empty"])
def test_what_is_no_crate_is_refused_in_one_line(path, home, tmp_path, capsys):
    os.mkfifo("pipe")
    os.symlink("gone", "dangling")
    Path("text.zip").write_text("no zip")
    Path("empty").mkdir()
    for command in (["export", "--check"], ["import"], ["verify"]):
        assert cli.main([*command, path]) == 2
        said = capsys.readouterr().err
        assert said.startswith("clpapers: ")
        assert said.count("\n") == 1
        assert said[:-1].isprintable()


def test_links_and_pipes_in_a_folder_are_found(copy):
    (copy / "link").symlink_to("/etc/passwd")
    os.mkfifo(copy / "pipe")
    assert wrong(copy) == {"link", "pipe"}


# --- what is not exported ------------------------------------------------------------------------------------


def changed(name):
    return lambda: Path(name).write_bytes(Path(name).read_bytes() + b"\n")


def renamed_key(name):
    return lambda: Path(name).write_text(Path(name).read_text().replace('"command"', '"other"'))


NOT_EXPORTED = {  # what is amiss → how, the arguments, how the line begins
    "a changed table": (changed(TABLE.replace("csv", "md")), [], TABLE.replace("csv", "md") + ": is not "),
    "a changed stream": (changed(STREAM), [], f"{STREAM}: is not "),
    "a file not built": (
        Path(TABLE.replace("csv", "tex")).unlink,
        ["mini/table1"],
        f"{TABLE}: not built; run `snakemake",
    ),
    "a record gone": (Path(RECORD).unlink, [], "results/mini/metrics/mini/table1."),
    "a record of data gone": (Path(DATA_RECORD).unlink, [], "results/mini/datasets/mnist."),
    "a record not whole": (renamed_key(RECORD), [], "results/mini/metrics/mini/table1."),
    "no such target": (None, ["nobody"], "nobody: no paper or target; there are: "),
    "something there already": (None, ["--out", "results"], "results: there is something already"),
    "nothing built": (None, ["--scale", "smoke"], "results/smoke/targets/mini/table1.csv: not built"),
    "no project": (Path("LICENSE").unlink, [], "LICENSE: no such file; run `clpapers export` in the project's folder"),
}


@pytest.mark.parametrize("kind", NOT_EXPORTED)
def test_what_is_not_exported_is_told_in_one_line(kind, home, capsys):
    spoil, arguments, told = NOT_EXPORTED[kind]
    if spoil:
        spoil()
    assert cli.main(["export", "--out", "new.zip", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"clpapers: {told}")
    assert said.count("\n") == 1
    assert not Path("new.zip").exists()


def test_of_a_paper_what_is_built_is_exported(home, capsys):
    Path(TABLE.replace("csv", "tex")).unlink()
    assert cli.main(["export", "--out", "out.zip", "mini"]) == 0
    assert "not built, so not in it: mini/table1" in capsys.readouterr().out
    assert check(Path("out.zip"))[0] == []
