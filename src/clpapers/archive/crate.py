"""Write a research object: targets with everything they came from, as a Provenance Run Crate.

A crate has the layout of the project: the paths in records hold inside it, and Snakemake runs in it. Data sets and
weights are left out, since they have owners; the records name them by checksum. The streams of imported runs are left
out too; their records stand in `imported/records`.
"""

import datetime
import hashlib
import importlib.metadata
import io
import mimetypes
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

import yaml
from rocrate.rocrate import ROCrate

from clpapers.archive.check import MANIFEST, METADATA, CrateError, appearing, by_checksum, check, manifest_of, write
from clpapers.archive.imported import records_apart
from clpapers.config import user_files
from clpapers.config.files import read_yaml
from clpapers.config.model import Target
from clpapers.config.plan import Plan
from clpapers.config.targets import paper_file
from clpapers.provenance import ancestry, is_imported, read_record, sha256

WORKFLOW = "Snakefile"
# The project's part of a crate: the workflow, all code that it runs, the configuration, the exact environment.
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


def export(plan: Plan, names: list[str], out: Path, agent: str | None = None) -> tuple[str, list[str]]:
    """Write a crate of targets or papers or, without `names`, of everything built at a scale, to `out`.

    out: a path that ends in `.zip`, or an empty or new folder.
    agent: the person who ran it; by default the authors in CITATION.cff.

    Returns the SHA-256 of the manifest, which identifies the crate, and the names of targets that are not built.
    Raises `CrateError`, and leaves nothing, where a named target is not built or a file is not as recorded.
    """
    targets = plan.named_targets(names)
    built = [target for target in targets if all(path.is_file() for path in target.outputs)]
    absent = {f"{target.paper}/{target.name}": target for target in targets if target not in built}
    for name, target in absent.items():
        if name in names or not built:
            raise CrateError(f"{target.outputs[0]}: not built; run `snakemake {target.outputs[0]} --cores`")
    results = [path for target in built for path in target.outputs] + _summaries(plan, targets, names)
    fingerprint = pack(*_crate_with_sources(plan, results, agent), out, "build it anew with snakemake, then export")
    return fingerprint, [name for name, target in absent.items() if not target.spec.get("extra")]


def _summaries(plan: Plan, targets: list[Target], names: list[str]) -> list[Path]:
    """The files about whole papers that exist."""
    folder = Path("results", plan.scale)
    papers = {target.paper for target in targets if not names or target.paper in names}
    files = [folder / "targets" / paper / "claims.csv" for paper in sorted(papers)]
    files += [] if names else [folder / "targets" / "scorecard.csv", folder / "runs" / "index.csv"]
    return [path for path in files if path.is_file()]


# --- a crate's metadata ---------------------------------------------------------------------------------------


def pack(crate: ROCrate, contents: Mapping[str, Path | bytes], out: Path, remedy: str, *, named: bool = False) -> str:
    """Write a crate that describes `contents`, files or their bytes by path, with manifest and metadata, to `out`.

    named: whether the manifest's SHA-256 goes into the file's name (`with_digest`). The same crate and contents make
    the same bytes. Returns the manifest's SHA-256. Raises `CrateError`, with the `remedy`, and leaves nothing, where a
    file does not match its record.
    """
    metadata = b"".join(content for _, content in crate.metadata.stream())
    digests = {path: digest_of(content) for path, content in contents.items()}
    manifest = manifest_of(digests | {METADATA: digest_of(metadata)}).encode()
    with appearing(with_digest(out, digest_of(manifest)) if named else out) as temporary:
        write(temporary, {**contents, METADATA: metadata, MANIFEST: manifest})
        faults, fingerprint = check(temporary)
        if faults:
            file, reason = faults[0]
            raise CrateError(f"{file}: {reason}; {remedy} ({len(faults)} such)")
    return fingerprint


def with_digest(out: Path, fingerprint: str) -> Path:
    """The path of a crate that is named by the SHA-256 of its manifest."""
    return out.with_stem(f"{out.stem}-{fingerprint[:10]}")


def crate_of(contents: Mapping[str, Path | bytes]) -> ROCrate:
    """A crate whose metadata have an entity for each of `contents` and for the manifest, and nothing else yet."""
    types = mimetypes.MimeTypes()  # Python's own: a machine's table would change the crate's bytes
    crate = ROCrate(version="1.1")
    crate.metadata.extra_contexts.append(TERMS)
    for path, content in contents.items():
        length = len(content) if isinstance(content, bytes) else content.stat().st_size
        facts: dict = {"name": path, "sha256": digest_of(content), "contentSize": str(length)}
        facts["encodingFormat"] = FORMATS.get(Path(path).suffix) or types.guess_type(path)[0] or "text/plain"
        if path == WORKFLOW:
            facts |= {"@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"]}
            crate.add_workflow(path, path, main=True, lang="snakemake", properties=facts)
        else:
            facts |= {"about": {"@id": "./"}} if path == "README.md" else {}
            crate.add_file(io.StringIO(), path, properties=facts)
    facts = {"name": "SHA-256 of every other file", "encodingFormat": "text/plain"}
    crate.add_file(io.StringIO(), MANIFEST, properties=facts)
    authors = yaml.safe_load(Path("CITATION.cff").read_text(encoding="utf-8-sig"))["authors"]
    crate.add_jsonld({"@id": "#authors", "@type": "Organization", "name": "; ".join(each["name"] for each in authors)})
    crate.root_dataset["author"] = crate.root_dataset["publisher"] = {"@id": "#authors"}
    crate.license = {"@id": "LICENSE"}
    return crate


def add_profiles(crate: ROCrate, profiles: Mapping[str, str]) -> None:
    """Add the profiles that a crate conforms to."""
    for profile, name in profiles.items():
        version = profile.rsplit("/", 1)[1]
        crate.add_jsonld({"@id": profile, "@type": "CreativeWork", "name": name, "version": version})
    crate.root_dataset["conformsTo"] = links(profiles)


def digest_of(content: Path | bytes) -> str:
    """The SHA-256 of bytes, or of a file's bytes."""
    return hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else sha256(content)


def _crate_with_sources(plan: Plan, results: list[Path], agent: str | None) -> tuple[ROCrate, dict[str, Path]]:
    """The crate of results and of all files that they descend from, and its contents by path."""
    for file in results:
        read_record(file)  # raises where there is none
    records = {str(path): record for path, record in ancestry(*results).items()}
    files = _project_files(_from_outside(plan, results, records))
    for path, record in records.items():
        if not record["command"].startswith("clpapers "):
            raise CrateError(f"{path}: tells of no command of clpapers; delete it and build it anew with snakemake")
        if is_imported(path):
            run = Path(path).with_name(Path(record["outputs"][0]["path"]).name)
            files |= dict.fromkeys(map(str, (path, run, *records_apart(plan.scale, record))))
        else:
            files |= {path: None} | {item["path"]: None for item in (*record["inputs"], *record["outputs"])}
    contents = {path: Path(path) for path in sorted(files) if not by_checksum(path)}
    for path, file in contents.items():
        if not file.is_file():
            raise CrateError(f"{path}: no such file, though a record names it; build it anew with snakemake")
    crate = crate_of(contents)
    _describe_build(crate, plan, results, records, contents, agent)
    return crate, contents


def _from_outside(plan: Plan, results: list[Path], records: dict[str, dict]) -> set[str]:
    """The files from outside that the crate needs: of its papers, and of all data sets that these or records name."""
    papers = {path.parts[3] for path in results if len(path.parts) > 4} & user_files.files("papers").keys()
    names = {name for paper in papers for name in read_yaml(paper_file(paper)).get("datasets", {})}
    names |= {plan.datasets[name]["features"]["of"] for name in names if "features" in plan.datasets[name]}
    files = {plan.datasets[name]["declared"] for name in names if "declared" in plan.datasets[name]}
    files |= {item["path"] for record in records.values() for item in record.get("outside", ())}
    files |= {str(user_files.copy_of(kind, paper)) for kind in ("papers", "reported") for paper in papers}
    files |= {str(file) for name, file in user_files.files("methods").items() if name.partition(".")[0] in papers}
    return files


def _project_files(from_outside: Collection[str] = ()) -> dict[str, None]:
    """The project's own files in a crate; of files from outside only these."""
    for part in (*PARTS, *FOLDERS):
        if not Path(part).exists():
            raise CrateError(f"{part}: no such file; run `clpapers export` in the project's folder")
    files = [path for folder in FOLDERS for path in Path(folder).rglob("*") if path.is_file()]
    hidden = [path for path in files if any(part.startswith((".", "__pycache__")) for part in path.parts)]
    private = [path for path in files if user_files.FOLDER in path.parents and str(path) not in from_outside]
    return dict.fromkeys([*PARTS, *(str(path) for path in files if path not in (*hidden, *private))])


def _describe_build(
    crate: ROCrate,
    plan: Plan,
    results: list[Path],
    records: dict[str, dict],
    contents: Collection[str],
    agent: str | None,
) -> None:
    """Describe the build: the data, a tool and a step for each stage, an action for each record, and the workflow."""
    who = {"agent": {"@id": "#authors"}}
    if agent:
        crate.add_jsonld({"@id": "#agent", "@type": "Person", "name": agent})
        who = {"agent": {"@id": "#agent"}}
    data = [_data(crate, item, record) for record in records.values() for item in record["outputs"]]
    verbs = {path: record["command"].split()[1] for path, record in records.items()}
    for verb in sorted(set(verbs.values())):
        version = importlib.metadata.version("clpapers")
        tool = {"@type": "SoftwareApplication", "name": f"clpapers {verb}", "softwareVersion": version}
        step = {"@type": "HowToStep", "name": verb, "workExample": {"@id": f"#tool/{verb}"}}
        crate.add_jsonld({"@id": f"#tool/{verb}", **tool})
        crate.add_jsonld({"@id": f"#step/{verb}", **step})
    actions = []
    for path, record in records.items():
        actions.append(f"#run/{path}")
        crate.add_jsonld(action(crate, path, record, verbs[path]) | who)
        control: dict = {"@type": "ControlAction", "name": f"ran {path}"}
        control |= {"instrument": {"@id": f"#step/{verbs[path]}"}, "object": {"@id": f"#run/{path}"}}
        crate.add_jsonld({"@id": f"#control/{path}", **control})
    spans = [times(record) for record in records.values()]
    start, end = min(start for start, _ in spans), max(end for _, end in spans)
    span = {"startTime": start, "endTime": end}

    workflow = crate.get(WORKFLOW)
    workflow["name"] = "clpapers"
    workflow["hasPart"] = links(f"#tool/{verb}" for verb in sorted(set(verbs.values())))
    workflow["step"] = links(f"#step/{verb}" for verb in sorted(set(verbs.values())))
    workflow["version"] = importlib.metadata.version("clpapers")
    workflow["conformsTo"] = {"@id": "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"}
    workflow["softwareRequirements"] = {"@id": "requirements.lock"}
    configured = [quote(path) for path in sorted(contents) if path.startswith("config/")]
    crate.add_jsonld(
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": f"snakemake, scale {plan.scale}",
            "instrument": {"@id": WORKFLOW},
            **span,
            "description": "all jobs, from the first to the last; Snakemake may have been started more than once",
            "object": links([*configured, *filter(None, data)]),
            "result": links(quote(str(path)) for path in results),
            **who,
        }
    )
    engine = {"@type": "SoftwareApplication", "name": "Snakemake", "url": "https://snakemake.github.io"}
    crate.add_jsonld({"@id": "#snakemake", **engine, "softwareVersion": importlib.metadata.version("snakemake")})
    crate.add_jsonld(
        {
            "@id": "#jobs",
            "@type": "OrganizeAction",
            "name": "Snakemake's jobs",
            "instrument": {"@id": "#snakemake"},
            **span,
            "object": links(f"#control/{path}" for path in records),
            "result": {"@id": "#run"},
            **who,
        }
    )

    add_profiles(crate, PROFILES)
    root = crate.root_dataset
    root["mentions"] = links(["#run", "#jobs", *actions])
    root["name"] = f"clpapers, scale {plan.scale}"
    papers = [title for paper, title in plan.titles.items() if any(path.parts[3] == paper for path in results)]
    root["description"] = f"{'; '.join(papers)}. {plan.settings['description']}"
    crate.datePublished = end  # the end of the last job, so that the same results make the same crate


def links(names: Iterable[str]) -> list[dict] | dict:
    """References to entities: a list, or for a single one no list, as RO-Crate demands."""
    references = [{"@id": name} for name in names]
    return references[0] if len(references) == 1 else references


def _data(crate: ROCrate, item: dict, record: dict) -> str | None:
    """Describe a data set or weights by checksum and return the entity's name; None for any other file."""
    if not by_checksum(item["path"]):
        return None
    sums = []
    for name, facts in record["data"].items():
        for part, digest in facts["sha256"].items():
            number = f"#content/{item['path']}/{name}/{part}"
            value = {"name": f"content SHA-256 of {name}, {part}", "value": digest}
            crate.add_jsonld({"@id": number, "@type": "PropertyValue", "propertyID": "sha256", **value})
            sums.append(number)
    origins = [f"{name}: {_origin(facts)}" for name, facts in record["data"].items()]
    licences = dict.fromkeys(facts["licence"] for facts in record["data"].values())
    entity = {"@type": "Dataset", "name": item["path"], "description": "; ".join(origins), "sha256": item["sha256"]}
    crate.add_jsonld({"@id": f"#{item['path']}", **entity, "license": "; ".join(licences), "identifier": links(sums)})
    return f"#{item['path']}"


def _origin(facts: dict) -> str:
    if facts["standin"]:
        kind = "stand-in, synthetic"
    elif facts["partial"]:
        kind = "a part of the real data"
    else:
        kind = "real data"
    return f"{kind}, from {facts['source']} ({facts['owner']}), proven by {facts['proof']}"


def action(crate: ROCrate, path: str, record: dict, verb: str) -> dict:
    """The CreateAction of one record, without its agent; an imported run's inputs are named by checksum."""

    def name(item: dict) -> str:
        if not is_imported(path):
            return f"#{item['path']}" if by_checksum(item["path"]) else quote(item["path"])
        number = f"#{item['path']}/{item['sha256']}"
        if crate.get(number) is None:
            crate.add_jsonld({"@id": number, "@type": "Dataset", "name": item["path"], "sha256": item["sha256"]})
        return number

    made = [quote(str(Path(path).with_name(Path(item["path"]).name))) for item in record["outputs"]]
    usage = []
    for key, unit in UNITS.items():
        number = f"#usage/{path}/{key}"
        value = {"name": key, "propertyID": key, "unitCode": unit, "value": str(record[key])}
        crate.add_jsonld({"@id": number, "@type": "PropertyValue", **value})
        usage.append(number)
    start, end = times(record)
    git = record["git"]
    commit = f"{git['commit'] or 'no git'}{', edited' if git['dirty'] else ''}"
    return {
        "@id": f"#run/{path}",
        "@type": "CreateAction",
        "name": record["command"],
        "description": f"code {record['code']} at commit {commit}",
        "instrument": {"@id": f"#tool/{verb}"},
        "object": links(map(name, record["inputs"])),
        "result": links(made if is_imported(path) else map(name, record["outputs"])),
        "startTime": start,
        "endTime": end,
        "resourceUsage": links(usage),
        "subjectOf": {"@id": quote(path)},
    }


def times(record: dict) -> tuple[str, str]:
    """The start and the end of a record's job, in ISO format."""
    start = datetime.datetime.fromisoformat(record["started"])
    end = start + datetime.timedelta(seconds=record["wall_seconds"])
    return start.isoformat(timespec="seconds"), end.isoformat(timespec="seconds")
