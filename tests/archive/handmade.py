"""Crates of a few files, made by hand, at the scale `smoke`: a run, and what it is made of and what is made of it."""

import json
import zipfile
from pathlib import Path

from world.published import entry_of, result_of

from clpapers.archive.check import MANIFEST, METADATA, manifest_of
from clpapers.archive.imported import hash_of
from clpapers.archive.packing import digest_of
from clpapers.provenance import as_published, record_path, seal

FOLDER = f"results/smoke/imported/mnist/random/er-{hash_of(result_of()['cell'])}"
RUN, RECORD = f"{FOLDER}/seed0.json", f"{FOLDER}/seed0.record.json"
OWN, OWN_RECORD = (path.replace("imported", "runs") for path in (RUN, RECORD))
DATA, DATA_RECORD = "results/smoke/datasets/mnist.npz", "results/smoke/datasets/mnist.record.json"
TABLE, TABLE_RECORD = "results/smoke/metrics/a/table1.csv", "results/smoke/metrics/a/table1.record.json"
FACTS = {"source": "x", "owner": "x", "licence": "x", "proof": "x", "partial": False, "standin": True}
FACTS = {"mnist": FACTS | {"sha256": {"train": "0" * 64}}}


def item(path, digest, record=None):
    """A file as a record holds it."""
    return {"path": as_published(path), "sha256": digest} | ({"record": digest_of(record)} if record else {})


def recorded(path, digest, **told):
    """A file's record, sealed, with what is told."""
    record = {
        **dict.fromkeys(("stage", "command", "code"), "x"),
        **{"git": {"commit": "0" * 40, "dirty": False}, "data": {}, "hardware": {}, "started": "2026-01-02T03:04:05Z"},
        **{"wall_seconds": 1, "cpu_seconds": 1, "peak_memory_bytes": 1, "inputs": []},
        "outputs": [item(path, digest)],
    }
    return json.dumps({"seal": seal(record | told)} | record | told).encode()


def resealed(record, **told):
    """A record that tells other things, sealed anew."""
    content = {key: value for key, value in (json.loads(record) | told).items() if key != "seal"}
    return json.dumps(content | {"seal": seal(content)}).encode()


def result(right=3, seeds=(0,)):
    """The result of a cell, with so many items of the first class right at the end."""
    entries = [entry_of(seed) for seed in seeds]
    for entry in entries:
        entry["test"]["none"]["correct"][0] = right
    return json.dumps(result_of(*entries)).encode()


def run(right=3, seeds=(0,), content=None, path=None, **told):
    """The files of a run, by path: its result, or a content in place of it, and its record."""
    block = "seed0" if len(seeds) == 1 else f"seeds{seeds[0]}-{seeds[-1]}"
    path, content = path or f"{FOLDER}/{block}.json", content or result(right, seeds)
    record = recorded(path, digest_of(content), **{"seeds": list(seeds)} | told)
    return {path: content, str(record_path(path)): record}


def along(read="1" * 64):
    """The files of an imported run of a data set that is made where it is not, whose record came along with it."""
    data = recorded(DATA, "1" * 64, data=FACTS)
    apart = {f"results/smoke/imported/records/{digest_of(data)}.json": data}
    return run(inputs=[item(DATA, read, data)], data=FACTS) | apart


def chain():
    """The files of an export, by path: a data set by its record, a run on it, and a table of the run."""
    data = recorded(DATA, "1" * 64, data=FACTS)
    files = {DATA_RECORD: data} | run(path=OWN, inputs=[item(DATA, "1" * 64, data)], data=FACTS)
    read = item(OWN, digest_of(files[OWN]), files[OWN_RECORD])
    return files | {TABLE: b"10", TABLE_RECORD: recorded(TABLE, digest_of(b"10"), inputs=[read], data=FACTS)}


def packed(path, files, more=(), name=str, method=zipfile.ZIP_STORED, **listed):
    """A crate of these files, by these names, and of more entries `(name or ZipInfo, bytes)` that are not listed.

    `listed` takes the place of their checksums in the manifest.
    """
    there = {METADATA: b"{}"} | files
    manifest = manifest_of({name: digest_of(text) for name, text in there.items()} | listed)
    with zipfile.ZipFile(path, "w", method) as archive:
        for each, text in (there | {MANIFEST: manifest.encode()}).items():
            archive.writestr(name(each), text)
        for each, text in more:
            archive.writestr(each, text)
    return Path(path)
