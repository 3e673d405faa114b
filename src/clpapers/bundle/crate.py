"""Crates of finished runs, written where no library for them is: the layout and metadata that `clpapers import` reads.

A run stands at results/<scale>/imported/…, as in a published crate; the records of its inputs stand in `records` there.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from urllib.parse import quote

from clpapers.archive.archive import MANIFEST, METADATA, manifest_of, write
from clpapers.provenance import read_record, record_apart, record_path, write_atomically

CONTEXT, PROFILE = "https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/crate/1.1"


def contents(run: Path) -> dict[str, bytes]:
    """A finished run's files by their path in a crate: result, record, and the records of all that it descends from."""
    name = str(Path(*run.parts[:2], "imported", *run.parts[3:]))
    found = {name: run.read_bytes(), str(record_path(name)): record_path(run).read_bytes()}
    queue = [read_record(run)]
    while queue:
        for item in queue.pop()["inputs"]:
            text = record_path(item["path"]).read_bytes()
            place = str(record_apart(run.parts[1], hashlib.sha256(text).hexdigest()))
            if place not in found:
                found[place] = text
                queue.append(json.loads(text))
    return found


def pack(out: Path, runs: Collection[Path]) -> None:
    """Write a crate of finished runs, a zip; it appears whole or not at all."""
    held: dict[str, bytes] = {}
    for run in runs:
        held |= contents(run)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in held.items()}
    files = [{"@id": quote(name), "@type": "File", "sha256": digest} for name, digest in sorted(digests.items())]
    files.append({"@id": MANIFEST, "@type": "File", "name": "SHA-256 of every file"})
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"clpapers: {len(runs)} runs of a bundle",
        "datePublished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "hasPart": [{"@id": each["@id"]} for each in files],
    }
    about = {"@id": METADATA, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": PROFILE}}
    held[METADATA] = json.dumps({"@context": CONTEXT, "@graph": [about, root, *files]}, indent=1).encode()
    digests[METADATA] = hashlib.sha256(held[METADATA]).hexdigest()
    held[MANIFEST] = manifest_of(digests).encode()
    with write_atomically(out) as temporary:
        write(temporary, held)
