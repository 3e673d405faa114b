"""Write crates of finished runs without a library for crates, in the layout that `clpapers import` reads.

A run's path is results/<scale>/imported/…, as in a published crate; `records` there holds the records of its inputs.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from urllib.parse import quote

from clpapers.archive.check import MANIFEST, METADATA, manifest_of, write
from clpapers.provenance import (
    read_record,
    record_by_digest,
    record_of_input,
    record_path,
    records_behind,
    write_atomically,
)

CONTEXT, PROFILE = "https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/crate/1.1"


def name(run: Path) -> str:
    """The path of a finished run in a crate."""
    return str(Path(*run.parts[:2], "imported", *run.parts[3:]))


def pack(out: Path, runs: Collection[Path]) -> None:
    """Write a crate of finished runs, a zip; it appears complete or not at all."""
    members: dict[str, bytes] = {}
    for run in runs:
        scale = run.parts[1]
        behind = records_behind(read_record(run), functools.partial(record_of_input, scale))
        members |= {name(run): run.read_bytes(), str(record_path(name(run))): record_path(run).read_bytes()}
        members |= {str(record_by_digest(scale, digest)): text for digest, text in behind.items()}
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in members.items()}
    files = [{"@id": quote(path), "@type": "File", "sha256": digest} for path, digest in sorted(digests.items())]
    files.append({"@id": MANIFEST, "@type": "File", "name": "SHA-256 of every file"})
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"clpapers: {len(runs)} runs of a bundle",
        "datePublished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "hasPart": [{"@id": each["@id"]} for each in files],
    }
    about = {"@id": METADATA, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": PROFILE}}
    members[METADATA] = json.dumps({"@context": CONTEXT, "@graph": [about, root, *files]}, indent=1).encode()
    digests[METADATA] = hashlib.sha256(members[METADATA]).hexdigest()
    members[MANIFEST] = manifest_of(digests).encode()
    with write_atomically(out) as temporary:
        write(temporary, members)
