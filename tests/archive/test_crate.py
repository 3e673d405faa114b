"""A research object is complete, valid and proves itself far from home; whatever is changed in it is found out."""

import datetime
import io
import json
import shutil
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest
import requests
from rocrate_validator import services
from rocrate_validator.models import ValidationSettings
from world import DATA, TABLE, Project, published

from clpapers import cli
from clpapers.archive.check import METADATA, check
from clpapers.config.plan import Plan
from clpapers.report.publish import publish

# The profile recommends them, and a project without a public address has none: URLs and absolute identifiers.
ADDRESSES = {
    "The Application SHOULD have a url",
    "The SoftwareApplication id SHOULD be an absolute URI",
    "The organization SHOULD have a URL.",
}
TERMS = "https://w3id.org/ro/terms/workflow-run"
DATA_RECORD = DATA.replace("npz", "record.json")


def contents(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def graph(folder):
    return {entity["@id"]: entity for entity in json.loads((folder / METADATA).read_text())["@graph"]}


def listed(value):
    return [each["@id"] for each in (value if isinstance(value, list) else [value])]


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


KNOWN = json.loads(files("rocrate").joinpath("data/ro-crate.jsonld").read_text())["@context"]
CONTEXTS = {  # Bioschemas' terms are of another version than the profile is for, so that they were elsewhere
    "https://w3id.org/ro/crate/1.1/context": KNOWN
    | {"ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow"},
    f"{TERMS}/context": {term: f"{TERMS}#{term}" for term in ("sha256", "resourceUsage")},
}


def answer(session, url, **options):
    """The addresses of the two contexts answer so; no test goes to the network."""
    found = requests.Response()
    found.status_code, found.headers["Content-Type"] = 200 if url in CONTEXTS else 404, "application/ld+json"
    found.raw = io.BytesIO(json.dumps({"@context": CONTEXTS.get(url)}).encode())
    return found


def complaints(folder, severity):
    """The complaints of the profile's validator, at a severity."""
    options = ValidationSettings(
        rocrate_uri=str(folder),
        profile_identifier="process-run-crate",
        requirement_severity=severity,
        no_cache=True,
    )
    return {issue.message for issue in services.validate(options).get_issues()}


def test_exported_and_published_it_is_a_process_run_crate_and_all_that_is_recommended(
    copy, small_project, tmp_path, monkeypatch
):
    monkeypatch.setattr(requests.Session, "get", answer)
    publish(Plan("mini", ["mini"]), ["mini"])
    with zipfile.ZipFile(published.crate()) as archive:
        archive.extractall(tmp_path / "unpacked")
    for folder in (copy, tmp_path / "unpacked"):
        assert complaints(folder, "RECOMMENDED") <= ADDRESSES
    metadata = (folder / METADATA).read_text()
    (folder / METADATA).write_text(metadata.replace('"instrument"', '"name"'))  # which the validator would see
    assert any("instrument" in message for message in complaints(folder, "REQUIRED"))


def test_of_a_paper_what_is_built_is_exported(home, capsys):
    Path(TABLE.replace("csv", "tex")).unlink()
    assert cli.main(["export", "--out", "out.zip", "mini"]) == 0
    assert "not built, so not in it: mini/table1" in capsys.readouterr().out
    assert check(Path("out.zip"))[0] == []
