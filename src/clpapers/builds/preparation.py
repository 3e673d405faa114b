"""Prepares a build: finds data and finished results, and chooses the runs to add.

The Snakefile asks once, before its graph of jobs is made; the jobs read the choice (`config.choice`).
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Set
from pathlib import Path

from clpapers.archive.imported import import_published, imported
from clpapers.budget import costs, priority
from clpapers.budget.priority import Budget
from clpapers.config import outside
from clpapers.config.facts import Facts
from clpapers.config.model import Cell, Target
from clpapers.config.paths import RESULTS, block_seeds, dataset_path, weights_path
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError, one_of
from clpapers.graph import jobs
from clpapers.graph.pages import targets_of
from clpapers.provenance import ProvenanceError, is_imported, parse_record, seal, sha256, write_text

AGAIN = 24 * 3600  # seconds until missing data are asked for again
DEAR = 3600.0  # core-seconds that nobody gave hours for, above which a person is asked
TELLING = re.compile(
    r"-[a-z]*[nlSD]\b|--(dry-?run|lint|list|dag|rulegraph|filegraph|d3dag|summary|detailed|unlock|report(?!-after))",
    re.ASCII,
)
TRIED = ". Tried:"  # ends the line of a data set that no source serves, over a line for each source
WHOLE = ("all", "report", "audit")  # targets of the Snakefile that are of whole papers


def vouch(top: Path) -> int:
    """Give files below a folder that are older than what they were made of its times, where records vouch for both.

    Copies lose the times, by which alone Snakemake tells what is due: what has the bytes that its record holds, and was
    made of those that are there, is not. Returns how many files have other times now.
    """
    made: list[tuple[str, list[str], list[str], dict[str, str]]] = []
    for place in top.rglob("*.record.json") if top.is_dir() else ():
        if place.name.startswith(".") or is_imported(place):
            continue
        with contextlib.suppress(ProvenanceError):
            record = parse_record(place, place)
            known = {each["path"]: each["sha256"] for part in ("inputs", "outputs") for each in record[part]}
            if record.get("seal") == seal(record):
                outputs, inputs = ([each["path"] for each in record[part]] for part in ("outputs", "inputs"))
                made.append((record["started"], [*outputs, str(place)], inputs, known))
    digest, changed = functools.cache(sha256), 0
    for _, outputs, inputs, known in sorted(made, key=lambda each: each[0]):  # so what others are made of comes first
        with contextlib.suppress(OSError):  # a file that is missing, or another user's
            newest = max((os.stat(path).st_mtime_ns for path in inputs), default=0)
            late = [path for path in outputs if os.stat(path).st_mtime_ns < newest]
            if late and all(digest(path) == sha for path, sha in known.items()):
                for path in late:
                    os.utime(path, ns=(newest, newest))
                changed += len(late)
    return changed


def hours_of(plan: Plan | Facts, asked: float | str | None) -> float:
    """The core-hours that a build may add: those asked for, or else the scale's; ∞ for all."""
    hours = plan.settings.get("hours", "all") if asked is None else asked
    return math.inf if hours == "all" else float(hours)


def budgeted(plan: Plan | Facts, asked: float | str | None) -> bool:
    """Whether a build chooses among runs. A scale that trains all its runs does so only where hours are asked for."""
    return asked is not None or plan.settings.get("hours", "all") != "all"


def named_targets(plan: Plan, words: Iterable[str]) -> list[Target]:
    """The targets of files below results/ that are asked for by name; a table of claims stands for all it compares."""
    found: dict[str, Target] = {}
    for path in map(Path, words):
        if len(path.parts) < 5 or path.parts[:2] != (str(RESULTS), plan.scale):
            continue
        stage, paper, name = path.parts[2], path.parts[3], path.name.partition(".")[0]
        if stage not in ("targets", "metrics"):
            continue
        if name == "claims":
            found |= {f"{t.paper}/{t.name}": t for t in jobs.claimed_targets(plan, jobs.claims_of(plan).get(paper, []))}
        elif f"{paper}/{name}" in plan.targets:
            found[f"{paper}/{name}"] = plan.targets[f"{paper}/{name}"]
    return list(found.values())


def named_runs(plan: Plan, words: Iterable[str], made: Mapping[str, Collection[Path]]) -> dict[str, dict[Path, range]]:
    """The result files of runs that were asked for by name and are not `made` yet, with their seeds, by cell."""
    found: dict[str, dict[Path, range]] = {}
    for path in map(Path, words):
        key = path.parent.name[-10:]
        if path.parts[:3] != (str(RESULTS), plan.scale, "runs") or path.suffix != ".json" or key not in plan.cells:
            continue
        with contextlib.suppress(ConfigError):  # a record's
            if path not in made.get(key, ()):
                found.setdefault(key, {})[path] = block_seeds(path.stem)
    return found


def asked(arguments: Iterable[str]) -> tuple[list[str], bool]:
    """The targets on a command line of Snakemake, and whether it only describes a build, such as a dry run.

    Snakemake itself does not name them yet when it reads the Snakefile.
    """
    words = [word for word in arguments if word in WHOLE or word.startswith(f"{RESULTS}/")]
    return words, any(TELLING.match(word) for word in arguments)


def whole(words: Collection[str]) -> bool:
    """Whether papers are built, and not files alone that were asked for by name."""
    return not words or not set(words).isdisjoint(WHOLE)


def at(scale: str, words: Collection[str]) -> bool:
    """Whether anything that was asked for is of a scale: files of another one have all runs, and no budget."""
    return whole(words) or any(Path(word).parts[1:2] == (scale,) for word in words)


def page(words: Iterable[str]) -> str:
    """What is said at the end of files asked for by name: where they are, a line for those that differ in endings."""
    endings: dict[Path, list[str]] = {}
    for path in map(Path, words):
        name, _, ending = path.name.partition(".")
        endings.setdefault(path.with_name(name), []).append(ending)
    alike = ((stem, each[0] if len(each) == 1 else f"{{{','.join(each)}}}") for stem, each in endings.items())
    lines = [f"built: {stem}.{ending}" for stem, ending in alike]
    far = "; ".join(f"clpapers summary --scale {scale}" for scale in dict.fromkeys(path.parts[1] for path in endings))
    return "\n".join([*lines, f"where one came from: clpapers lineage FILE; how far all papers are: {far}"])


class Data:
    """Finds the data sets and weights that can be had.

    fetch: large data sets to fetch nonetheless. fetching: whether to fetch at all; a dry run does not. absent: names
    that cannot be had, with the remedies.
    """

    def __init__(
        self, plan: Plan, data_folder: Path, downloads: Path, fetch: Collection[str] = (), *, fetching: bool = True
    ):
        self.plan, self.data_folder, self.downloads = plan, data_folder, downloads
        self.fetch, self.fetching = fetch, fetching
        self.file = RESULTS / plan.scale / "absent.json"
        self.absent: dict[str, str] = {}
        self.tried: dict[str, dict] = self._remembered()
        self.asked: set[str] = set()

    def _remembered(self) -> dict[str, dict]:
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))
            here = (each for each in found.items() if each[1]["data_folder"] == str(self.data_folder))
            return {name: each for name, each in here if time.time() - float(each["time"]) < AGAIN}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def facts(self, name: str) -> dict:
        """The entry of a data set or of weights."""
        return self.plan.datasets.get(name) or self.plan.weights[name]

    def path(self, name: str) -> Path:
        """The file of a data set or of weights."""
        return (dataset_path if name in self.plan.datasets else weights_path)(self.plan.scale, name)

    def mine(self, name: str) -> Path:
        """The user's own folder of a data set, or of all weights."""
        facts = self.facts(name)
        inside = facts.get("folder", name) if name in self.plan.datasets else "weights"
        return outside.data_folder(facts, self.data_folder) / inside

    def look(self, names: Iterable[str]) -> None:
        """Note data sets and weights that cannot be had, without fetching any; a stand-in always can."""
        if self.plan.settings["sources"] != "real":
            return
        for name in dict.fromkeys(names):
            if "features" in self.facts(name) or self.path(name).is_file() or self.mine(name).is_dir():
                continue
            size, kept = self.facts(name).get("gigabytes"), self.downloads / name
            if size and name not in self.fetch and not (kept.is_dir() and any(kept.iterdir())):
                remedy = f"--config fetch=[{name}] fetches it, or put it into {self.mine(name)}/"
                self.absent[name] = f"{size:g} GB: {remedy}"
            elif name in self.tried and name not in self.fetch:
                self.absent[name] = self.tried[name]["remedy"]

    def get(self, names: Iterable[str]) -> bool:
        """Build the files of data sets and weights; returns whether one could not be had."""
        lost = False
        for name in dict.fromkeys(names):
            due = name not in self.absent and name not in self.asked and "features" not in self.facts(name)
            if not due or self.path(name).is_file() or not self.fetching:
                continue
            self.asked.add(name)
            print(f"clpapers: fetching {name}", file=sys.stderr, flush=True)
            if remedy := self._fetch(name):
                lost, self.absent[name] = True, remedy
                self.tried[name] = {"time": time.time(), "data_folder": str(self.data_folder), "remedy": remedy}
                self.file.parent.mkdir(parents=True, exist_ok=True)
                write_text(self.file, json.dumps(self.tried, indent=1))
        return lost

    def _fetch(self, name: str) -> str:
        """Build one file by its own job's command; empty on success, else the remedy."""
        command = "dataset" if name in self.plan.datasets else "weights"
        folders = ["--data-folder", str(self.data_folder), "--downloads", str(self.downloads)]
        made = subprocess.run(
            [sys.executable, "-m", "clpapers.cli", command, "--out", str(self.path(name)), *folders],
            capture_output=True,
            text=True,
        )
        if not made.returncode:
            return ""
        return reason(made).removeprefix(f"{name}: ")


def reason(failed: subprocess.CompletedProcess[str]) -> str:
    """Why a command failed, in a line of its stderr: the last, or the one above the sources that were tried."""
    lines = failed.stderr.strip().splitlines() or [f"exit {failed.returncode}"]
    told = [line for line in lines if line.endswith(TRIED)] or lines
    return told[-1].removeprefix("clpapers: ").removesuffix(TRIED)


def prepare(plan: Plan, settings: dict, arguments: Collection[str]) -> tuple[list[str], Budget, Data]:
    """Choose the runs of a build and fetch their data; returns news of imported results, the runs, and the data.

    settings: as from `check_settings`. arguments: the command line of Snakemake.
    """
    for name in settings.get("fetch") or ():
        one_of("config/config.yaml or --config: fetch", name, [*plan.datasets, *plan.weights])
    news = import_published(plan.scale) if settings.get("published", True) else []
    words, dry = asked(arguments)
    told, hours = settings.get("hours"), hours_of(plan, settings.get("hours"))
    made = priority.finished(plan)
    named, runs = named_targets(plan, words), named_runs(plan, words, made)
    due = targets_of(plan, settings["papers"]) if whole(words) else []
    if told is not None and hours < math.inf and words != ["audit"]:  # they hold for targets by name too
        due, named = [*due, *(target for target in named if target not in due)], []
    elif not whole(words) or (words and "all" not in words and hours < math.inf):  # the last tells of what is there
        hours = 0.0
    data = Data(
        plan,
        Path(settings["data_folder"]),
        Path(settings["downloads"]),
        settings.get("fetch") or (),
        fetching=not dry,
    )
    drawn = dict.fromkeys(stream[0] for target in (*due, *named) for stream in target.streams)
    images = [name for dataset in drawn if plan.drawn_from(dataset) for name in plan.made_from(dataset)]
    cells = priority.relevant(plan, [*due, *named], runs)
    data.look([name for cell in cells.values() for name in plan.data_of(cell)] + images)
    data.get(images)
    if not dry and (hours > 0 or named or runs):
        _measure(plan, cells, data.absent.keys())
    there = priority.files_of_seeds(plan, made, imported(plan.scale) if settings.get("published", True) else {})
    claims, table = jobs.claims_of(plan), costs.rehearsed(plan.scale)
    while True:
        found = priority.choose(
            plan,
            due,
            claims,
            hours,
            present=there,
            absent=data.absent,
            named=named,
            named_runs=runs,
            table=table,
        )
        new = [key for key, files in found.choice.runs.items() if files.keys() - there.get(key, {}).keys()]
        needed = dict.fromkeys(name for key in (*new, *runs) for name in plan.data_of(plan.cells[key]))
        if data.get(needed):
            continue
        for name in needed:
            if name in data.absent:
                raise ConfigError(
                    f"{name}: not at hand, and a run that is asked for by name needs it: {data.absent[name]}"
                )
        return news, found, data


def _measure(plan: Plan, cells: Mapping[str, Cell], absent: Set[str]) -> None:
    """Rehearse, of some cells by hash, those of methods and papers from outside whose kind was not measured.

    Unmeasured, each would count as long as the slowest method: a budget would have few of its runs, and the time left
    would be wrong. absent: data sets and weights that cannot be had; what waits for them is not measured.
    """
    table, own = costs.rehearsed(plan.scale), priority.relevant(plan, targets_of(plan, outside.files("papers")))
    due = [
        key
        for key, cell in cells.items()
        if (cell.method or key in own) and table.seconds(plan, cell) is None and absent.isdisjoint(plan.data_of(cell))
    ]
    if due:
        methods = ["--methods", *plan.methods] if plan.methods else []
        print("clpapers: measuring what methods and papers from outside take", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "clpapers.cli", "rehearse", *due, "--scale", plan.scale, *methods]
        subprocess.run(command, stdout=subprocess.DEVNULL)


def told(plan: Plan, found: Budget, data: Data) -> list[str]:
    """The lines that announce a build: its runs and their cost, and each data set that cannot be had."""
    there = sum(len(seeds) for seeds in found.present.values())
    trains = sum(len(block_seeds(path.stem)) for path in map(Path, found.pending) if path.parts[2] == "runs")
    told = f"{there:,} runs are there; training {trains:,} more"
    if found.pending:
        told += f", predicted {costs.duration(sum(found.pending.values()))} of one core"
    if found.questions and (left := sum(hours or 0 for hours in found.choice.unrun.values())):
        told += f"; all others take {costs.duration(3600 * left)}"
    lines = [told]
    lines += [f"{name}: not at hand, left out: {remedy}" for name, remedy in sorted(data.absent.items())]
    return lines


def agreed(found: Budget, hours: float | str | None) -> bool:
    """Whether to train: a person at a terminal is asked where it is dear, and no `hours` were given."""
    price = sum(found.pending.values())
    if hours is not None or price <= DEAR or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print("clpapers: within a budget instead: --config hours=8", file=sys.stderr)
    print(f"clpapers: train for {costs.duration(price)} of one core? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
