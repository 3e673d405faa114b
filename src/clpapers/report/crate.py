"""The research object: a Provenance Run Crate of what was built and of all it came from, and its audit far from home.

A crate is laid out as the project is, so that the paths in records hold inside it, and Snakemake can be run in it. Data
sets and weights are left out, since they have owners; the records say by checksum which they were.
`manifest-sha256.txt` lists all other files as `sha256sum` does.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.metadata
import io
import json
import mimetypes
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import quote, unquote

import yaml
from rocrate.rocrate import ROCrate

from clpapers.config.model import Target
from clpapers.config.plan import Plan
from clpapers.provenance import escaped, fault_of, read_record, record_path, seal, sha256, write_atomically
from clpapers.report.costs import ancestry

METADATA, MANIFEST = "ro-crate-metadata.json", "manifest-sha256.txt"
WORKFLOW = "Snakefile"
# What of the project goes along: the workflow, all code it runs, the configuration and the exact environment.
PARTS = (WORKFLOW, "LICENSE", "CITATION.cff", "README.md", "pyproject.toml", "requirements.lock")
FOLDERS = ("rules", "src/clpapers", "config", "workflow", "profiles", "envs")
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/ro/wfrun/provenance/0.5": "Provenance Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
TERMS = "https://w3id.org/ro/terms/workflow-run/context"
UNITS = {
    "wall_seconds": "http://qudt.org/vocab/unit/SEC",
    "cpu_seconds": "http://qudt.org/vocab/unit/SEC",
    "peak_memory_bytes": "http://qudt.org/vocab/unit/BYTE",
}
LARGEST = 1 << 36  # bytes: more than any crate unpacks to
LARGEST_TEXTS = 1 << 29  # bytes of all files that are read into memory: metadata and records of some 50,000 runs
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
Finding = tuple[str, str]  # file, reason


class CrateError(Exception):
    """A crate cannot be made, or is none; the text is one line: file, what is wrong, remedy."""


def export(plan: Plan, names: list[str], out: Path, agent: str | None = None) -> tuple[str, list[str]]:
    """Write the crate of some targets, papers or, without `names`, of all that is built at a scale, to `out`.

    out: a path that ends in `.zip`, or a folder, which must not hold anything.
    agent: who ran it; without it, the authors in CITATION.cff.

    Returns the SHA-256 of the manifest, which stands for the whole, and the names of targets that are not built.
    Raises `CrateError`, and leaves nothing, where a named target is not built or a file is not as recorded.
    """
    targets = plan.chosen(names)
    built = [target for target in targets if all(path.is_file() for path in target.outputs)]
    absent = {f"{target.paper}/{target.name}": target for target in targets if target not in built}
    for name, target in absent.items():
        if name in names or not built:
            raise CrateError(f"{target.outputs[0]}: not built; run `snakemake {target.outputs[0]} --cores`")
    shown = [path for target in built for path in target.outputs] + _summaries(plan, targets, names)
    crate, manifest = _described(plan, shown, agent)
    with _appearing(out) as temporary:
        if temporary.is_dir():
            crate.write(temporary)
        else:
            crate.write_zip(temporary)
        wrong, _ = check(temporary)
        if wrong:
            file, reason = wrong[0]
            raise CrateError(f"{file}: {reason}; build it anew with snakemake, then export ({len(wrong)} such)")
    return manifest, [name for name, target in absent.items() if not target.spec.get("extra")]


def _summaries(plan: Plan, targets: list[Target], names: list[str]) -> list[Path]:
    """The files about whole papers, those that are there."""
    place = Path("results", plan.scale)
    papers = {target.paper for target in targets if not names or target.paper in names}
    files = [place / "targets" / paper / "claims.csv" for paper in sorted(papers)]
    files += [] if names else [place / "targets" / "scorecard.csv", place / "runs" / "index.csv"]
    return [path for path in files if path.is_file()]


@contextlib.contextmanager
def _appearing(out: Path) -> Iterator[Path]:
    """A temporary file, or folder, that becomes `out` on success and vanishes on failure."""
    if out.suffix == ".zip":
        with write_atomically(out) as temporary:
            yield temporary
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CrateError(f"{out}: there is something already; name a new folder or a file that ends in .zip")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as work:
        temporary = Path(work, out.name)
        temporary.mkdir()
        yield temporary
        temporary.replace(out)


# --- what a crate says ---------------------------------------------------------------------------------------


def _described(plan: Plan, shown: list[Path], agent: str | None) -> tuple[ROCrate, str]:
    """The crate of the files `shown` and of all they descend from, and the SHA-256 of its manifest."""
    for path in shown:
        read_record(path)  # which says so where there is none
    records = {str(place): record for place, record in ancestry(*shown).items()}
    files = _project_files()
    for place, record in records.items():
        if not record["command"].startswith("clpapers "):
            raise CrateError(f"{place}: tells of no command of clpapers; delete it and build it anew with snakemake")
        files |= {place: None} | {item["path"]: None for item in (*record["inputs"], *record["outputs"])}
    kept = sorted(path for path in files if not by_checksum(path))
    for path in kept:
        if not Path(path).is_file():
            raise CrateError(f"{path}: no such file, though a record names it; build it anew with snakemake")
    digests = {path: sha256(path) for path in kept}
    known = mimetypes.MimeTypes()  # Python's own; this machine's would make the same results another crate

    crate = ROCrate(version="1.1")
    crate.metadata.extra_contexts.append(TERMS)
    for path, digest in digests.items():
        facts = {"name": path, "sha256": digest, "contentSize": str(Path(path).stat().st_size)}
        facts["encodingFormat"] = FORMATS.get(Path(path).suffix) or known.guess_type(path)[0] or "text/plain"
        if path == WORKFLOW:
            facts |= {"@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"]}
            crate.add_workflow(path, path, main=True, lang="snakemake", properties=facts)
        else:
            facts |= {"about": {"@id": "./"}} if path == "README.md" else {}
            crate.add_file(path, path, properties=facts)
    manifest = io.StringIO()
    facts = {"name": "SHA-256 of every other file", "encodingFormat": "text/plain"}
    crate.add_file(manifest, MANIFEST, properties=facts)
    _tell(crate, plan, shown, records, agent)

    metadata = b"".join(content for _, content in crate.metadata.stream())
    digests[METADATA] = hashlib.sha256(metadata).hexdigest()
    manifest.write(_manifest(digests))
    manifest.seek(0)
    return crate, hashlib.sha256(manifest.getvalue().encode()).hexdigest()


def _project_files() -> dict[str, None]:
    for part in (*PARTS, *FOLDERS):
        if not Path(part).exists():
            raise CrateError(f"{part}: no such file; run `clpapers export` in the project's folder")
    found = [path for folder in FOLDERS for path in Path(folder).rglob("*") if path.is_file()]
    hidden = [path for path in found if any(part.startswith((".", "__pycache__")) for part in path.parts)]
    return dict.fromkeys([*PARTS, *(str(path) for path in found if path not in hidden)])


def _manifest(digests: Mapping[str, str]) -> str:
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items()))


def by_checksum(path: str) -> bool:
    """Whether a file is named in a crate by its checksum and not copied: a data set's or weights' arrays."""
    parts = PurePosixPath(path).parts
    return len(parts) == 4 and parts[2] in ("datasets", "weights") and path.endswith(".npz")


def _tell(crate: ROCrate, plan: Plan, shown: list[Path], records: dict[str, dict], agent: str | None) -> None:
    """Describe the run: the data, a tool and a step a stage, an action a record, and the workflow that ran them."""
    authors = yaml.safe_load(Path("CITATION.cff").read_text(encoding="utf-8"))["authors"]
    crate.add_jsonld({"@id": "#authors", "@type": "Organization", "name": "; ".join(each["name"] for each in authors)})
    who = {"agent": {"@id": "#authors"}}
    if agent:
        crate.add_jsonld({"@id": "#agent", "@type": "Person", "name": agent})
        who = {"agent": {"@id": "#agent"}}
    data = [_data(crate, item, record) for record in records.values() for item in record["outputs"]]
    verbs = {place: record["command"].split()[1] for place, record in records.items()}
    for verb in sorted(set(verbs.values())):
        version = importlib.metadata.version("clpapers")
        tool = {"@type": "SoftwareApplication", "name": f"clpapers {verb}", "softwareVersion": version}
        step = {"@type": "HowToStep", "name": verb, "workExample": {"@id": f"#tool/{verb}"}}
        crate.add_jsonld({"@id": f"#tool/{verb}", **tool})
        crate.add_jsonld({"@id": f"#step/{verb}", **step})
    actions = []
    for place, record in records.items():
        actions.append(f"#run/{place}")
        crate.add_jsonld(_action(crate, place, record, verbs[place]) | who)
        control = {"@type": "ControlAction", "name": f"ran {place}"}
        control |= {"instrument": {"@id": f"#step/{verbs[place]}"}, "object": {"@id": f"#run/{place}"}}
        crate.add_jsonld({"@id": f"#control/{place}", **control})
    times = {place: _times(record) for place, record in records.items()}
    start, end = min(start for start, _ in times.values()), max(end for _, end in times.values())
    span = {"startTime": start, "endTime": end}

    workflow = crate.get(WORKFLOW)
    workflow["name"] = "clpapers"
    workflow["hasPart"] = _links(f"#tool/{verb}" for verb in sorted(set(verbs.values())))
    workflow["step"] = _links(f"#step/{verb}" for verb in sorted(set(verbs.values())))
    workflow["version"] = importlib.metadata.version("clpapers")
    workflow["conformsTo"] = {"@id": "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"}
    workflow["softwareRequirements"] = {"@id": "requirements.lock"}
    configured = [quote(path) for path in _project_files() if path.startswith("config/")]
    run = {"@type": "CreateAction", "name": f"snakemake, scale {plan.scale}", "instrument": {"@id": WORKFLOW}, **span}
    run |= {"description": "all jobs, from the first to the last; Snakemake may have been started more than once"}
    run |= {"object": _links([*configured, *filter(None, data)]), "result": _links(quote(str(path)) for path in shown)}
    crate.add_jsonld({"@id": "#run", **run, **who})
    engine = {"@type": "SoftwareApplication", "name": "Snakemake", "url": "https://snakemake.github.io"}
    crate.add_jsonld({"@id": "#snakemake", **engine, "softwareVersion": importlib.metadata.version("snakemake")})
    organised = {"@type": "OrganizeAction", "name": "Snakemake's jobs", "instrument": {"@id": "#snakemake"}, **span}
    organised |= {"object": _links(f"#control/{place}" for place in records), "result": {"@id": "#run"}}
    crate.add_jsonld({"@id": "#jobs", **organised, **who})

    for profile, name in PROFILES.items():
        version = profile.rsplit("/", 1)[1]
        crate.add_jsonld({"@id": profile, "@type": "CreativeWork", "name": name, "version": version})
    root = crate.root_dataset
    root["conformsTo"] = _links(PROFILES)
    root["mentions"] = _links(["#run", "#jobs", *actions])
    root["author"] = root["publisher"] = {"@id": "#authors"}
    root["name"] = f"clpapers, scale {plan.scale}"
    papers = [title for paper, title in plan.titles.items() if any(path.parts[3] == paper for path in shown)]
    root["description"] = f"{'; '.join(papers)}. {plan.settings['description']}"
    crate.license = {"@id": "LICENSE"}
    crate.datePublished = end  # of the last job: the same results make the same crate


def _links(names: Iterable[str]) -> list[dict] | dict:
    """References to entities; where there is one, as RO-Crate wants it, no list."""
    links = [{"@id": name} for name in names]
    return links[0] if len(links) == 1 else links


def _data(crate: ROCrate, item: dict, record: dict) -> str | None:
    """The name of the entity, newly described, of a data set or of weights; None for any other file."""
    if not by_checksum(item["path"]):
        return None
    sums = []
    for name, facts in record["data"].items():
        for part, digest in facts["sha256"].items():
            number = f"#content/{item['path']}/{name}/{part}"
            value = {"name": f"content SHA-256 of {name}, {part}", "value": digest}
            crate.add_jsonld({"@id": number, "@type": "PropertyValue", "propertyID": "sha256", **value})
            sums.append(number)
    told = [f"{name}: {_origin(facts)}" for name, facts in record["data"].items()]
    licences = dict.fromkeys(facts["licence"] for facts in record["data"].values())
    entity = {"@type": "Dataset", "name": item["path"], "description": "; ".join(told), "sha256": item["sha256"]}
    entity |= {"license": "; ".join(licences), "identifier": _links(sums)}
    crate.add_jsonld({"@id": f"#{item['path']}", **entity})
    return f"#{item['path']}"


def _origin(facts: dict) -> str:
    what = "stand-in, synthetic" if facts["standin"] else "a part of the real data" if facts["partial"] else "real data"
    return f"{what}, from {facts['source']} ({facts['owner']}), proven by {facts['proof']}"


def _action(crate: ROCrate, place: str, record: dict, verb: str) -> dict:
    """The CreateAction of one record, but for its agent."""

    def links(items: list[dict]) -> list[dict] | dict:
        paths = [item["path"] for item in items]
        return _links(f"#{path}" if by_checksum(path) else quote(path) for path in paths)

    usage = []
    for key, unit in UNITS.items():
        number = f"#usage/{place}/{key}"
        value = {"name": key, "propertyID": key, "unitCode": unit, "value": str(record[key])}
        crate.add_jsonld({"@id": number, "@type": "PropertyValue", **value})
        usage.append(number)
    start, end = _times(record)
    git = record["git"]
    commit = f"{git['commit'] or 'no git'}{', edited' if git['dirty'] else ''}"
    return {
        "@id": f"#run/{place}",
        "@type": "CreateAction",
        "name": record["command"],
        "description": f"code {record['code']} at commit {commit}",
        "instrument": {"@id": f"#tool/{verb}"},
        "object": links(record["inputs"]),
        "result": links(record["outputs"]),
        "startTime": start,
        "endTime": end,
        "resourceUsage": _links(usage),
        "subjectOf": {"@id": quote(place)},
    }


def _times(record: dict) -> tuple[str, str]:
    start = datetime.datetime.fromisoformat(record["started"])
    end = start + datetime.timedelta(seconds=record["wall_seconds"])
    return start.isoformat(timespec="seconds"), end.isoformat(timespec="seconds")


# --- the audit of a crate ------------------------------------------------------------------------------------


def check(path: Path) -> tuple[list[Finding], str]:
    """What is wrong with a crate, zip or folder, by itself; and the SHA-256 of its manifest.

    Every file must be as the manifest and the metadata have it; every result as its record has it; every input that a
    record names must be there, or be a data set by checksum, with the bytes that were read. Nothing else may be there.
    A zip is read in place: nothing is unpacked. `CrateError` where it is no crate at all.
    """
    with _opened(path) as (members, wrong):
        digests, texts, left = {}, {}, LARGEST_TEXTS
        for name, read in sorted(members.items()):
            try:
                with read() as stream:
                    if name in (METADATA, MANIFEST) or name.endswith(".record.json"):
                        text = stream.read(left + 1)
                        left -= len(text)
                        if left < 0:
                            raise CrateError(
                                f"{path}: over {LARGEST_TEXTS} bytes of metadata and records; it is forged"
                            )
                        texts[name], digests[name] = text, hashlib.sha256(text).hexdigest()
                    else:
                        digests[name] = hashlib.file_digest(stream, "sha256").hexdigest()
            except CrateError:
                raise
            except Exception as error:  # a forged zip can break its reader in any way
                wrong.append((name, f"cannot be read ({error})"))
    for needed in (METADATA, MANIFEST):
        if needed not in texts:
            raise CrateError(f"{path}: has no {needed} that can be read; it is not a crate of `clpapers export`")
    fingerprint = digests[MANIFEST]
    wrong += _against_manifest(digests, texts[MANIFEST])
    wrong += _against_metadata(digests, texts[METADATA])
    wrong += _against_records(digests, texts)
    return [(escaped(file), escaped(reason)) for file, reason in dict.fromkeys(wrong)], fingerprint


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[dict[str, Callable[[], IO[bytes]]], list[Finding]]]:
    """How to read each file of a crate, by posix path; and what is wrong with the paths themselves."""
    if path.is_dir():
        found, wrong = {}, []
        for each in path.rglob("*"):
            if each.is_symlink() or not (each.is_file() or each.is_dir()):
                wrong.append((each.relative_to(path).as_posix(), "is a link or a device, not a plain file"))
            elif each.is_file():
                found[each.relative_to(path).as_posix()] = lambda each=each: each.open("rb")
        yield found, wrong
        return
    if path.exists() and not path.is_file():
        raise CrateError(f"{path}: no file and no folder; name a crate of `clpapers export`")
    try:
        archive = zipfile.ZipFile(path)
    except Exception as error:  # a forged zip can break its reader in any way
        raise CrateError(f"{path}: no zip, or damaged ({error}); export it or fetch it anew") from None
    with archive:
        entries, found, wrong = archive.infolist(), {}, []
        if sum(info.file_size for info in entries) > LARGEST:
            raise CrateError(f"{path}: unpacks to over {LARGEST} bytes; it is not a crate of `clpapers export`")
        for info in entries:
            name, folder = info.filename.removesuffix("/"), info.filename.endswith("/")
            pure, kind = PurePosixPath(name), stat.S_IFMT(info.external_attr >> 16)
            if pure.is_absolute() or ".." in pure.parts or "\\" in name or name != str(pure) or name == ".":
                wrong.append((info.filename, "leads out of the crate; do not unpack it"))
            elif kind not in (0, stat.S_IFDIR if folder else stat.S_IFREG):
                wrong.append((info.filename, "is a link or a device, not a plain file"))
            elif folder and info.file_size:
                wrong.append((info.filename, "is a folder that holds bytes of its own"))
            elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                wrong.append((info.filename, "is packed in a way that `clpapers export` does not know"))
            elif info.filename in found:
                wrong.append((info.filename, "is there twice"))
            else:
                found[info.filename] = lambda info=info: archive.open(info)
        folders = {name for name in found if name.endswith("/")}
        needed = {f"{parent}/" for name in found.keys() - folders for parent in PurePosixPath(name).parents}
        wrong += [(name, "is a folder with nothing in it") for name in sorted(folders - needed)]
        yield {name: read for name, read in found.items() if name not in folders}, wrong


def _against_manifest(digests: dict[str, str], text: bytes) -> Iterator[Finding]:
    listed = {}
    for line in text.decode(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    found = {name: digest for name, digest in digests.items() if name != MANIFEST}
    yield from _differences(found, listed, MANIFEST)
    if found == listed and _manifest(listed).encode() != text:
        yield MANIFEST, "is not written as `clpapers export` writes it"


def _against_metadata(digests: dict[str, str], text: bytes) -> Iterator[Finding]:
    try:
        graph = json.loads(text)["@graph"]
        files = [entity for entity in graph if entity["@type"] == "File" or "File" in list(entity["@type"])]
        described = {unquote(entity["@id"]): entity.get("sha256") for entity in files}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        yield METADATA, f"is not an RO-Crate's ({error})"
        return
    described.pop(MANIFEST, None)
    found = {name: digest for name, digest in digests.items() if name not in (METADATA, MANIFEST)}
    yield from _differences(found, described, METADATA)


def _differences(found: Mapping[str, str], told: Mapping[str, str], teller: str) -> Iterator[Finding]:
    for name in sorted({*found, *told}):
        if name not in told:
            yield name, f"is not listed in {teller}"
        elif name not in found:
            yield name, f"is missing, though {teller} lists it"
        elif found[name] != told[name]:
            yield name, f"has SHA-256 {found[name][:12]}…, not {str(told[name])[:12]}… as {teller} says"


def _against_records(digests: dict[str, str], texts: dict[str, bytes]) -> Iterator[Finding]:
    made: dict[str, str] = {}  # by path, the checksums that records have of what they made
    read: list[tuple[str, str, str]] = []
    for name, text in texts.items():
        if name in (METADATA, MANIFEST):
            continue
        try:
            record = json.loads(text)
            if fault := fault_of(record):
                raise ValueError(fault)
            if record.get("seal") != seal(record):
                yield name, "is edited: its seal is not the digest of its content"
            outputs, inputs = _files_of(record["outputs"]), _files_of(record["inputs"])
            own = {path: str(record_path(path)) == name for path in outputs}
            proven = any(facts["sha256"] for facts in record["data"].values())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            yield name, f"is not a record ({error!r})"
            continue
        for path, digest in outputs.items():
            if not own[path]:
                yield name, f"is not the record of {path}, which it names"
            elif by_checksum(path) and not proven:
                yield name, f"has no content checksum of {path}"
            else:
                made[path] = digest
        read += [(name, path, digest) for path, digest in inputs.items()]
        said = {str(record_path(item["path"])): item["record"] for item in record["inputs"] if "record" in item}
        read += [(name, path, str(digest)) for path, digest in said.items()]
    for path, digest in made.items():
        if not by_checksum(path):
            yield from _recorded(digests, path, digest, f"its record {record_path(path).name}")
    for reader, path, digest in read:
        yield from _recorded(made if by_checksum(path) else digests, path, digest, reader)
    for path in digests:
        if path.startswith("results/") and path not in made and path not in texts:
            yield path, "has no record that names it"


def _files_of(items: list[dict]) -> dict[str, str]:
    return {str(item["path"]): str(item["sha256"]) for item in items}


def _recorded(found: Mapping[str, str], path: str, digest: str, teller: str) -> Iterable[Finding]:
    if path not in found:
        return [(path, f"is missing, though {teller} names it")]
    if found[path] != digest:
        return [(path, f"has SHA-256 {found[path][:12]}…, not {digest[:12]}… as {teller} says")]
    return []
