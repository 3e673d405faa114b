"""Prepares a build: finds data and finished results, and chooses the runs to add.

The Snakefile asks once, before its graph of jobs is made; the jobs read the choice (`config.selected_runs`).
"""

import base64
import contextlib
import functools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from graphlib import TopologicalSorter
from pathlib import Path

from clpapers.archive.imported import import_published, imported
from clpapers.budget import costs, priority
from clpapers.budget.priority import Budget
from clpapers.config import user_files
from clpapers.config.facts import Facts
from clpapers.config.model import Cell, Target
from clpapers.config.paths import RESULTS, block_seeds, dataset_path, weights_path
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError, one_of
from clpapers.graph import jobs
from clpapers.graph.maker import Maker, process
from clpapers.graph.pages import targets_of
from clpapers.machine import end_with_parent
from clpapers.provenance import (
    ProvenanceError,
    is_imported,
    parse_record,
    read_record,
    record_path,
    seal,
    sha256,
    write_text,
)

RETRY = 24 * 3600  # seconds until missing data are tried again
NAMED = 3  # trainings that go on; of more the announcement has their number
DEAR = 3600.0  # core-seconds without given hours, above which a person must confirm
DESCRIBING = re.compile(
    r"-[a-z]*[nlSD]\b|--(dry-?run|lint|list|dag|rulegraph|filegraph|d3dag|summary|detailed|unlock|report(?!-after))",
    re.ASCII,
)
OF_PAPERS = ("all", "report", "audit")  # targets of the Snakefile that are of whole papers


def restore_times(top: Path) -> int:
    """Update the times of files below a folder that are older than their inputs, where their records match both.

    Copies lose the times, by which alone Snakemake decides. A file needs no new job if it has the bytes that its record
    holds and its inputs have the bytes that it was made of. Returns how many files have other times now.
    """
    made: dict[str, tuple[list[str], list[str], dict[str, str]]] = {}  # by an output: all, the inputs, their digests
    for path in top.rglob("*.record.json") if top.is_dir() else ():
        if path.name.startswith(".") or is_imported(path):
            continue
        with contextlib.suppress(ProvenanceError):
            record = parse_record(path, path)
            recorded = {each["path"]: each["sha256"] for part in ("inputs", "outputs") for each in record[part]}
            if record.get("seal") == seal(record):
                outputs, inputs = ([each["path"] for each in record[part]] for part in ("outputs", "inputs"))
                made |= dict.fromkeys(outputs, ([*outputs, str(path)], inputs, recorded))
    digest, changed = functools.cache(sha256), 0
    readers = {output: inputs for output, (_, inputs, _) in made.items()}
    for outputs, inputs, recorded in (made[path] for path in TopologicalSorter(readers).static_order() if path in made):
        with contextlib.suppress(OSError):  # a missing file, or another user's
            newest = max((os.stat(file).st_mtime_ns for file in inputs), default=0)
            late = [file for file in outputs if os.stat(file).st_mtime_ns < newest]
            if late and all(digest(file) == sha for file, sha in recorded.items()):
                for file in late:
                    os.utime(file, ns=(newest, newest))
                changed += len(late)
    return changed


def keep_finished(plan: Plan, folder: Path = Path(".snakemake/incomplete")) -> None:
    """Take Snakemake's marks of unfinished files away from runs that are finished: their job outlived its build.

    The mark of a file lies at its path in base 64, cut into folders that begin with an @.
    """
    marks = [path for path in folder.rglob("*") if path.is_file()]
    runs = [path for files in priority.finished(plan).values() for path in files] if marks else []
    outputs = {str(file): path for path in runs for file in (path, record_path(path))}
    for mark in marks:
        parts = (part.removeprefix("@") for part in mark.relative_to(folder).parts)
        with contextlib.suppress(ValueError):
            run = outputs.get(base64.urlsafe_b64decode("".join(parts)).decode())
            if run and sha256(run) in {each["sha256"] for each in read_record(run)["outputs"]}:
                mark.unlink()


def hours_of(plan: Plan | Facts, requested: float | str | None) -> float:
    """The core-hours that a build may add: the requested ones, or the scale's; ∞ for all."""
    hours = plan.settings.get("hours", "all") if requested is None else requested
    return math.inf if hours == "all" else float(hours)


def budgeted(plan: Plan | Facts, requested: float | str | None) -> bool:
    """Whether a build chooses among runs. A scale that trains all its runs does so only for requested hours."""
    return requested is not None or plan.settings.get("hours", "all") != "all"


def named_targets(plan: Plan, files: Iterable[str]) -> list[Target]:
    """The targets of requested files below results/; a table of claims stands for all targets that it compares."""
    found: dict[str, Target] = {}
    for path in map(Path, files):
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


def named_runs(
    plan: Plan, files: Iterable[str], finished: Mapping[str, Collection[Path]]
) -> dict[str, dict[Path, range]]:
    """The requested result files of runs that are not finished yet, with their seeds, by cell."""
    runs: dict[str, dict[Path, range]] = {}
    for path in map(Path, files):
        key = path.parent.name[-10:]
        if path.parts[:3] != (str(RESULTS), plan.scale, "runs") or path.suffix != ".json" or key not in plan.cells:
            continue
        with contextlib.suppress(ConfigError):  # a record's
            if path not in finished.get(key, ()):
                runs.setdefault(key, {})[path] = block_seeds(path.stem)
    return runs


def requested_targets(arguments: Iterable[str]) -> tuple[list[str], bool]:
    """The targets on a command line of Snakemake, and whether it only describes a build, such as a dry run.

    Snakemake itself does not name them yet when it reads the Snakefile.
    """
    targets = [each for each in arguments if each in OF_PAPERS or each.startswith(f"{RESULTS}/")]
    return targets, any(DESCRIBING.match(each) for each in arguments)


def builds_papers(targets: Collection[str]) -> bool:
    """Whether whole papers are built, not only files by name."""
    return not targets or not set(targets).isdisjoint(OF_PAPERS)


def concerns(scale: str, targets: Collection[str]) -> bool:
    """Whether any requested target is of a scale: files of another scale have all runs, and no budget."""
    return builds_papers(targets) or any(Path(target).parts[1:2] == (scale,) for target in targets)


def conclusion(files: Iterable[str]) -> str:
    """The text at the end of a build of files by name: their paths, one line for files that differ in endings."""
    endings: dict[Path, list[str]] = {}
    for path in map(Path, files):
        name, _, ending = path.name.partition(".")
        endings.setdefault(path.with_name(name), []).append(ending)
    joined = ((stem, each[0] if len(each) == 1 else f"{{{','.join(each)}}}") for stem, each in endings.items())
    lines = [f"built: {stem}.{ending}" for stem, ending in joined]
    scales = dict.fromkeys(path.parts[1] for path in endings)
    commands = "; ".join(f"clpapers summary --scale {scale}" for scale in scales)
    return "\n".join([*lines, f"where one came from: clpapers lineage FILE; how far all papers are: {commands}"])


class Data:
    """Finds the data sets and weights that can be had.

    fetch: large data sets that may be fetched. fetching: whether to fetch at all; a dry run does not. absent: names
    that cannot be had, with the remedies.
    """

    def __init__(
        self, plan: Plan, data_folder: Path, downloads: Path, fetch: Collection[str] = (), *, fetching: bool = True
    ):
        self.plan, self.data_folder, self.downloads = plan, data_folder, downloads
        self.fetch, self.fetching = fetch, fetching
        self.file = RESULTS / plan.scale / "absent.json"
        self.absent: dict[str, str] = {}
        self.failures: dict[str, dict] = self._recent_failures()
        self.tried: set[str] = set()

    def _recent_failures(self) -> dict[str, dict]:
        try:
            failures = json.loads(self.file.read_text(encoding="utf-8"))
            same_folder = (each for each in failures.items() if each[1]["data_folder"] == str(self.data_folder))
            return {name: each for name, each in same_folder if time.time() - float(each["time"]) < RETRY}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def facts(self, name: str) -> dict:
        """The entry of a data set or of weights."""
        return self.plan.datasets.get(name) or self.plan.weights[name]

    def path(self, name: str) -> Path:
        """The file of a data set or of weights."""
        return (dataset_path if name in self.plan.datasets else weights_path)(self.plan.scale, name)

    def own_folder(self, name: str) -> Path:
        """The user's own folder of a data set, or of all weights."""
        facts = self.facts(name)
        inside = facts.get("folder", name) if name in self.plan.datasets else "weights"
        return user_files.data_folder(facts, self.data_folder) / inside

    def note_absent(self, names: Iterable[str]) -> None:
        """Note data sets and weights that cannot be had, without fetching any; a stand-in always can."""
        if self.plan.settings["sources"] != "real":
            return
        for name in dict.fromkeys(names):
            if "features" in self.facts(name) or self.path(name).is_file() or self.own_folder(name).is_dir():
                continue
            size, fetched = self.facts(name).get("gigabytes"), self.downloads / name
            if size and name not in self.fetch and not (fetched.is_dir() and any(fetched.iterdir())):
                remedy = f"--config fetch=[{name}] fetches it, or put it into {self.own_folder(name)}/"
                self.absent[name] = f"{size:g} GB: {remedy}"
            elif name in self.failures and name not in self.fetch:
                self.absent[name] = self.failures[name]["remedy"]

    def get(self, names: Iterable[str]) -> bool:
        """Build the files of data sets and weights; returns whether one could not be had."""
        any_failed = False
        for name in dict.fromkeys(names):
            untried = name not in self.absent and name not in self.tried and "features" not in self.facts(name)
            if not untried or self.path(name).is_file() or not self.fetching:
                continue
            self.tried.add(name)
            print(f"clpapers: fetching {name}", file=sys.stderr, flush=True)
            if remedy := self._fetch(name):
                any_failed, self.absent[name] = True, remedy
                self.failures[name] = {"time": time.time(), "data_folder": str(self.data_folder), "remedy": remedy}
                self.file.parent.mkdir(parents=True, exist_ok=True)
                write_text(self.file, json.dumps(self.failures, indent=1))
        return any_failed

    def _fetch(self, name: str) -> str:
        """Build one file; returns the remedy, empty on success."""
        own = "declared" in self.facts(name)  # then it remarks on the user's images; otherwise on mirrors that failed
        settings = {"data_folder": self.data_folder, "downloads": self.downloads}
        maker = Maker(self.plan, functools.partial(process, remarks=own), settings=settings)
        return maker.make(self.path(name)).removeprefix(f"{name}: ")


def left_out(name: str, remedy: str) -> str:
    """The line on a data set, or weights, that a build goes without."""
    return f"{name}: not at hand, left out: {remedy}"


def prepare(plan: Plan, settings: dict, arguments: Collection[str]) -> tuple[list[str], Budget, Data]:
    """Choose the runs of a build and fetch their data; returns notes on imported results, the budget, and the data.

    settings: as from `check_settings`. arguments: the command line of Snakemake.
    """
    fetch, published = settings.get("fetch") or (), settings.get("published", True)
    for name in fetch:
        one_of("config/config.yaml or --config: fetch", name, [*plan.datasets, *plan.weights])
    notes = import_published(plan.scale) if published else []
    names, dry = requested_targets(arguments)
    finished = priority.finished(plan)
    request = request_of(plan, settings, names, finished)
    notes += rowless(plan, request.all_targets)
    cells, images = request.cells(plan), images_of(plan, request.all_targets)
    data = Data(plan, Path(settings["data_folder"]), Path(settings["downloads"]), fetch, fetching=not dry)
    data.note_absent([name for cell in cells.values() for name in plan.data_of(cell)] + images)
    data.get(images)
    if not dry and (request.hours > 0 or request.named or request.runs):
        _measure(plan, cells, data.absent.keys())
    present = priority.files_of_seeds(plan, finished, imported(plan.scale, published=published))
    claims, table, begun = jobs.claims_of(plan), costs.rehearsed(plan.scale), priority.begun_trainings(plan)
    choose = functools.partial(
        priority.choose, plan, request, claims, present=present, absent=data.absent, table=table, begun=begun
    )
    budget = choose()
    while data.get(required := [name for key in budget.made for name in plan.data_of(plan.cells[key])]):
        budget = choose()  # without the runs of a data set that could not be had
    if absent := next((name for name in required if name in data.absent), None):
        fault = f"{absent}: not at hand, and a run that is asked for by name needs it: {data.absent[absent]}"
        if not dry:  # which trains nothing, and tells what the run would take
            raise ConfigError(fault)
        notes.append(fault)
    return notes, budget, data


def request_of(
    plan: Plan, settings: dict, names: list[str], finished: Mapping[str, Collection[Path]]
) -> priority.Request:
    """The runs that a command line asks for. names: its targets, as from `requested_targets`. finished: by cell.

    Given hours are for files by name, too. Without them a file by name has all its runs, and a report or an audit adds
    none.
    """
    hours, named, runs = (
        hours_of(plan, settings.get("hours")),
        named_targets(plan, names),
        named_runs(plan, names, finished),
    )
    targets = targets_of(plan, settings["papers"]) if builds_papers(names) else []
    if settings.get("hours") is not None and hours < math.inf and names != ["audit"]:
        return priority.Request([*targets, *(each for each in named if each not in targets)], hours, runs=runs)
    adds = builds_papers(names) and (not names or "all" in names or math.isinf(hours))
    return priority.Request(targets, hours if adds else 0.0, named, runs)


def images_of(plan: Plan, targets: Iterable[Target]) -> list[str]:
    """The data sets and weights, by name, that targets draw streams from where the sizes of classes are not known."""
    datasets = dict.fromkeys(stream[0] for target in targets for stream in target.streams)
    return [name for dataset in datasets if plan.drawn_from(dataset) for name in plan.made_from(dataset)]


def _measure(plan: Plan, cells: Mapping[str, Cell], absent: Set[str]) -> None:
    """Rehearse the cells of methods and papers from outside whose kind was not measured.

    Unmeasured, each would count as long as the slowest method: a budget would have few of its runs, and the remaining
    time would be wrong.

    cells: by hash. absent: data sets and weights that cannot be had; cells that need them are not measured.
    """
    table, own = costs.rehearsed(plan.scale), priority.relevant(plan, targets_of(plan, user_files.files("papers")))
    unmeasured = [
        key
        for key, cell in cells.items()
        if (cell.method or key in own) and table.seconds(plan, cell) is None and absent.isdisjoint(plan.data_of(cell))
    ]
    if unmeasured:
        methods = ["--methods", *plan.methods] if plan.methods else []
        print("clpapers: measuring what methods and papers from outside take", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "clpapers.cli", "rehearse", *unmeasured, "--scale", plan.scale, *methods]
        subprocess.run(command, stdout=subprocess.DEVNULL, preexec_fn=_beneath)


def _beneath() -> None:
    """Leave Ctrl-C to the process that began this one, which says so in one line, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def rowless(plan: Plan, targets: Iterable[Target]) -> list[str]:
    """A line on the targets that show no method from outside, as they have one method and compare none."""
    alone = [f"{t.paper}/{t.name}" for t in targets if t.cells and len({f["learner"] for f, _ in t.cells}) == 1]
    return [f"{', '.join(alone)}: no row of a method from outside, as one method has no comparison"] * bool(
        plan.methods and alone
    )


def announcement(budget: Budget, data: Data) -> list[str]:
    """The lines that announce a build: its runs and their cost, and each data set that cannot be had."""
    trained = sum(len(seeds) for files in budget.made.values() for seeds in files.values())
    line = f"{len(budget.present):,} runs are there; training {trained:,} more"
    if budget.pending:
        line += f", predicted {costs.duration(sum(budget.pending.values()))} of one {budget.processor}"
    if budget.questions and (rest := sum(hours or 0 for hours in budget.choice.unrun.values())):
        line += f"; all others take {costs.duration(3600 * rest)}" + " of one core" * (budget.processor != "core")
    absent = [left_out(name, remedy) for name, remedy in sorted(data.absent.items())]
    return [line, *_going_on(budget.begun), *_too_dear(budget), *absent]


def _going_on(begun: Mapping[Path, float]) -> list[str]:
    """A line on each training that goes on from a checkpoint, and how far it is; of more than `NAMED` their number."""
    named = [f"{path} goes on at {100 * share:.0f} %" for path, share in sorted(begun.items())[:NAMED]]
    more = len(begun) - len(named)
    return [*named, *([f"{more} more go on from where they were"] if more else [])]


def _too_dear(budget: Budget) -> Iterator[str]:
    """A line on each paper that has no run within the hours: its cheapest, and the hours that train it."""
    shared = len({question.paper for question in budget.questions}) > 1
    for step in budget.too_dear:
        runs = "run takes" if len(step.runs) == 1 else f"{len(step.runs)} runs take"
        given = f"papers={step.paper} " * shared + f"hours={math.ceil(step.seconds / 36) / 100:g}"
        whose = f"no run of {step.paper}" if shared else "no run"
        yield f"{whose} fits: the cheapest {runs} {costs.duration(step.seconds)}; {given} trains it"


def confirmed(budget: Budget, hours: float | str | None) -> bool:
    """Whether to train. Where it costs much and no `hours` were given, a person at a terminal must confirm."""
    price = sum(budget.pending.values())
    if hours is not None or price <= DEAR or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print("clpapers: within a budget instead: --config hours=8", file=sys.stderr)
    print(
        f"clpapers: train for {costs.duration(price)} of one {budget.processor}? [y/N] ",
        end="",
        file=sys.stderr,
        flush=True,
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")
