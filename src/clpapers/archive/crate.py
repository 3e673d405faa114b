"""Write a research object: targets with everything they came from, as a Process Run Crate.

A crate has the layout of the project: the paths in records hold inside it, and Snakemake runs in it. Data sets and
weights are left out, since they have owners; the records name them by checksum. The streams of imported runs are left
out too; their records stand in `imported/records`.
"""

from collections.abc import Collection
from pathlib import Path

import yaml

from clpapers.archive.check import CrateError, by_checksum
from clpapers.archive.imported import records_apart
from clpapers.archive.packing import pack
from clpapers.config import user_files
from clpapers.config.files import read_yaml
from clpapers.config.model import Target
from clpapers.config.plan import Plan
from clpapers.config.targets import paper_file
from clpapers.provenance import ancestry, is_imported, read_record

# The project's part of a crate: the workflow, all code that it runs, the configuration, the exact environment.
PARTS = ("Snakefile", "LICENSE", "CITATION.cff", "README.md", "pyproject.toml", "requirements.lock")
FOLDERS = ("rules", "src/clpapers", "config", "workflow", "profiles", "envs")


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
    contents, records = _with_sources(plan, results)
    papers = [title for paper, title in plan.titles.items() if any(path.parts[3] == paper for path in results)]
    description = f"{'; '.join(papers)}. {plan.settings['description']}"
    about = {"name": f"clpapers, scale {plan.scale}", "description": description, "authors": authors(), "agent": agent}
    fingerprint = pack(contents, records, out, about, "build it anew with snakemake, then export")
    return fingerprint, [name for name, target in absent.items() if not target.spec.get("extra")]


def _summaries(plan: Plan, targets: list[Target], names: list[str]) -> list[Path]:
    """The files about whole papers that exist."""
    folder = Path("results", plan.scale)
    papers = {target.paper for target in targets if not names or target.paper in names}
    files = [folder / "targets" / paper / "claims.csv" for paper in sorted(papers)]
    files += [] if names else [folder / "targets" / "scorecard.csv", folder / "runs" / "index.csv"]
    return [path for path in files if path.is_file()]


def authors() -> str:
    """The authors in CITATION.cff."""
    cited = yaml.safe_load(Path("CITATION.cff").read_text(encoding="utf-8-sig"))
    return "; ".join(each["name"] for each in cited["authors"])


def _with_sources(plan: Plan, results: list[Path]) -> tuple[dict[str, Path], dict[str, dict]]:
    """The contents of a crate, by path: results and all files that they descend from; and the records among them."""
    for file in results:
        read_record(file)  # raises where there is none
    records = {str(path): record for path, record in ancestry(*results).items()}
    files = _project_files(_from_outside(plan, results, records))
    for path, record in records.items():
        if is_imported(path):
            run = Path(path).with_name(Path(record["outputs"][0]["path"]).name)
            files |= dict.fromkeys(map(str, (path, run, *records_apart(plan.scale, record))))
        else:
            files |= {path: None} | {item["path"]: None for item in (*record["inputs"], *record["outputs"])}
    contents = {path: Path(path) for path in sorted(files) if not by_checksum(path)}
    for path, file in contents.items():
        if not file.is_file():
            raise CrateError(f"{path}: no such file, though a record names it; build it anew with snakemake")
    return contents, records


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
