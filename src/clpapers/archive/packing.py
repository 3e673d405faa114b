"""Write a crate: files with a manifest and the metadata of a Process Run Crate, which has an action for each record.

Nothing but Python's own library is needed, as on a node that trains a bundle.
"""

import datetime
import hashlib
import json
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from clpapers.archive.check import MANIFEST, METADATA, CrateError, appearing, by_checksum, check, manifest_of, write
from clpapers.provenance import is_imported, sha256

CRATE, PROFILE = "https://w3id.org/ro/crate/1.1", "https://w3id.org/ro/wfrun/process/0.5"
TERMS = "https://w3id.org/ro/terms/workflow-run/context"
UNITS = {
    "wall_seconds": "http://qudt.org/vocab/unit/SEC",
    "cpu_seconds": "http://qudt.org/vocab/unit/SEC",
    "peak_memory_bytes": "http://qudt.org/vocab/unit/BYTE",
}
FORMATS = {
    "": "text/plain",
    ".cff": "application/yaml",
    ".lock": "text/plain",
    ".md": "text/markdown",
    ".npz": "application/zip",
    ".rst": "text/x-rst",
    ".smk": "text/plain",
    ".toml": "application/toml",
    ".yaml": "application/yaml",
}
Contents = Mapping[str, Path | bytes]  # files, or their bytes, by path


def pack(
    contents: Contents, records: Mapping[str, dict], out: Path, about: Mapping, remedy: str, *, named: bool = False
) -> str:
    """Write a crate of `contents`, with manifest and metadata, to `out`, a zip or a folder.

    records: those that are described, by path in the crate. about: as for `metadata`. named: whether the manifest's
    SHA-256 goes into the file's name (`with_digest`). The same contents and records make the same bytes. Returns the
    manifest's SHA-256. Raises `CrateError`, with the `remedy`, and leaves nothing, where a file does not match its
    record.
    """
    described = metadata(contents, records, **about)
    digests = {path: digest_of(content) for path, content in contents.items()}
    manifest = manifest_of(digests | {METADATA: digest_of(described)}).encode()
    with appearing(with_digest(out, digest_of(manifest)) if named else out) as temporary:
        write(temporary, {**contents, METADATA: described, MANIFEST: manifest})
        faults, fingerprint = check(temporary)
        if faults:
            file, reason = faults[0]
            raise CrateError(f"{file}: {reason}; {remedy} ({len(faults)} such)")
    return fingerprint


def with_digest(out: Path, fingerprint: str) -> Path:
    """The path of a crate that is named by the SHA-256 of its manifest."""
    return out.with_stem(f"{out.stem}-{fingerprint[:10]}")


def digest_of(content: Path | bytes) -> str:
    """The SHA-256 of bytes, or of a file's bytes."""
    return hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else sha256(content)


class _Graph:
    """The entities of a crate, by name."""

    def __init__(self) -> None:
        self.entities: dict[str, dict] = {}

    def add(self, name: str, kind: str, /, **facts: object) -> dict:
        """Add an entity, or facts to one; returns a reference to it."""
        self.entities[name] = self.entities.get(name, {"@id": name, "@type": kind}) | facts
        return {"@id": name}


def metadata(
    contents: Contents,
    records: Mapping[str, dict],
    *,
    name: str,
    description: str,
    authors: str,
    agent: str | None = None,
    date: str = "",
) -> bytes:
    """The metadata of a crate: its files, an action for each record, and data by checksum, source and licence.

    agent: the person who ran it; by default the authors. date: the end of the last described job if empty.
    """
    graph, types = _Graph(), mimetypes.MimeTypes()  # Python's own: a machine's table would change the crate's bytes
    graph.add(METADATA, "CreativeWork", about={"@id": "./"}, conformsTo={"@id": CRATE})
    graph.add(PROFILE, "CreativeWork", name="Process Run Crate", version=PROFILE.rpartition("/")[2])
    by = graph.add("#authors", "Organization", name=authors)
    who = graph.add("#agent", "Person", name=agent) if agent else by
    files = [
        graph.add(
            quote(path),
            "File",
            name=path,
            sha256=digest_of(content),
            contentSize=str(len(content) if isinstance(content, bytes) else content.stat().st_size),
            encodingFormat=FORMATS.get(Path(path).suffix) or types.guess_type(path)[0] or "text/plain",
        )
        for path, content in sorted(contents.items())
    ]
    files.append(graph.add(MANIFEST, "File", name="SHA-256 of every other file", encodingFormat="text/plain"))
    actions = [_action(graph, contents, path, record, who) for path, record in sorted(records.items())]
    graph.add(
        "./",
        "Dataset",
        name=name,
        description=description,
        author=by,
        publisher=by,
        conformsTo={"@id": PROFILE},
        datePublished=date or max(times(record)[1] for record in records.values()),
        hasPart=files,
        **({"mentions": _links(actions)} if actions else {}),
        **({"license": {"@id": "LICENSE"}} if "LICENSE" in contents else {}),
    )
    entities = [graph.entities[key] for key in sorted(graph.entities)]
    return json.dumps({"@context": [f"{CRATE}/context", TERMS], "@graph": entities}, indent=1).encode()


def _links(references: list[dict]) -> list[dict] | dict:
    """References to entities: a list, or for a single one no list, as RO-Crate demands."""
    return references[0] if len(references) == 1 else references


def _action(graph: _Graph, contents: Contents, path: str, record: dict, who: dict) -> dict:
    """Describe a record's job: its tool, its inputs, its outputs and its cost."""

    def named(item: dict, file: str) -> dict:
        if file in contents:
            return {"@id": quote(file)}
        return graph.add(f"#{file}/{item['sha256']}", "Dataset", name=file, sha256=item["sha256"])

    beside = {item["path"]: str(Path(path).with_name(Path(item["path"]).name)) for item in record["outputs"]}
    made = [named(item, beside[item["path"]] if is_imported(path) else item["path"]) for item in record["outputs"]]
    for item in (each for each in record["outputs"] if by_checksum(each["path"])):
        _describe_data(graph, f"#{item['path']}/{item['sha256']}", record)
    tool, git = " ".join(record["command"].split()[:2]), record["git"]
    commit = f"{git['commit'] or 'no git'}{', edited' if git['dirty'] else ''}"
    usage = []
    for key, unit in UNITS.items():
        value = {"name": key, "propertyID": key, "unitCode": unit, "value": str(record[key])}
        usage.append(graph.add(f"#usage/{path}/{key}", "PropertyValue", **value))
    start, end = times(record)
    return graph.add(
        f"#run/{path}",
        "CreateAction",
        name=record["command"],
        description=f"code {record['code']} at commit {commit}",
        instrument=graph.add(
            f"#tool/{quote(f'{tool}/{commit}')}", "SoftwareApplication", name=tool, softwareVersion=f"commit {commit}"
        ),
        object=_links([named(item, item["path"]) for item in record["inputs"]]),
        result=_links(made),
        startTime=start,
        endTime=end,
        resourceUsage=usage,
        subjectOf={"@id": quote(path)},
        agent=who,
    )


def _describe_data(graph: _Graph, entity: str, record: dict) -> None:
    """Describe a data set or weights by the checksums of their content, their source and licence."""
    sums = [
        graph.add(
            f"{entity}/{name}/{part}",
            "PropertyValue",
            propertyID="sha256",
            name=f"content SHA-256 of {name}, {part}",
            value=digest,
        )
        for name, facts in record["data"].items()
        for part, digest in facts["sha256"].items()
    ]
    origins = [f"{name}: {_origin(facts)}" for name, facts in record["data"].items()]
    licences = dict.fromkeys(facts["licence"] for facts in record["data"].values())
    graph.add(entity, "Dataset", description="; ".join(origins), license="; ".join(licences), identifier=_links(sums))


def _origin(facts: dict) -> str:
    kind = "stand-in, synthetic" if facts["standin"] else "a part of the real data" if facts["partial"] else "real data"
    return f"{kind}, from {facts['source']} ({facts['owner']}), proven by {facts['proof']}"


def times(record: dict) -> tuple[str, str]:
    """The start and the end of a record's job, in ISO format."""
    start = datetime.datetime.fromisoformat(record["started"])
    end = start + datetime.timedelta(seconds=record["wall_seconds"])
    return start.isoformat(timespec="seconds"), end.isoformat(timespec="seconds")
