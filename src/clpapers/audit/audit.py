"""Checks that every file under results/ is the one that the present configuration and code make from its inputs.

Every output, record and input is hashed once, never from a cache, and held against the records. Records are held
against each other and against the jobs of the present configuration (`clpapers.graph.jobs`). docs/audit.md lists the
faults that this finds, and the faults that nothing can find. Logs, benchmarks, checkpoints of our runs and unfinished
files of a running job are left alone.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from clpapers import provenance
from clpapers.archive.imported import FOLDER, imported, place_of, source_of
from clpapers.config import choice
from clpapers.config.paths import RESULTS
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.graph.jobs import Job
from clpapers.provenance import (
    ProvenanceError,
    as_published,
    escaped,
    is_imported,
    read_record,
    record_apart,
    record_path,
)
from clpapers.targets.notes import notes_on

FAILURE, WARNING = "failure", "warning"
# Below results/<scale>/: data that cannot be had, measured times, how published runs that were trained again came out.
DECIDE_NOTHING = ("absent.json", "costs.csv", "machine.json", "verified.csv")
LEFT_ALONE = ("logs", "benchmarks", FOLDER, "published")  # below results/<scale>/: Snakemake's, and what was imported
REMAINS = re.compile(r"\.(.+)\.[a-z0-9_]{8}(\.[^.]+)?")  # of a file that is being written (`write_atomically`)
# Made for the papers that were asked for; which these were, their records alone say.
ON_TOP = ("targets/scorecard.record.json", "report/index.record.json")


class Finding(NamedTuple):
    """A fault of a file. severity: `failure` or `warning`. reason: with the remedy."""

    severity: str
    file: str
    reason: str


def findings(plan: Plan, names: Iterable[str] = (), *, strict: bool = False) -> list[Finding]:
    """The faults of the files of a plan's scale; see `audit`."""
    return audit(plan, names, strict=strict)[0]


def audit(plan: Plan, names: Iterable[str] = (), *, strict: bool = False) -> tuple[list[Finding], int]:
    """Check what is built of a plan.

    Parameters
    ----------
    plan: of all papers, as `fitting` makes it; its files need not be built.
    names: papers, or targets as `paper/target`: these must be built, and are checked with all that they descend from.
        Without any, all files under results/<scale>/ are checked.
    strict: whether a warning is a failure.

    Returns
    -------
    The findings, in the order of the files' paths, and the number of files that were hashed. Raises `ConfigError` for
    an unknown name.
    """
    targets, check = plan.named_targets(names), _Check(plan)
    expected = jobs.behind(plan, targets, check.told)
    if not names:
        index = record_path(RESULTS / plan.scale / "runs" / "index.csv")
        expected[index] = jobs.of(check.plan_of(index), index)
        claims = (RESULTS / plan.scale / "targets").glob("*/claims.record.json")
        claims = [place for place in claims if place.parent.name in jobs.claims_of(plan)]
        expected |= {place: jobs.of(check.plan_of(place), place) for place in claims}
        for place in (RESULTS / plan.scale / name for name in ON_TOP):
            with contextlib.suppress(ConfigError, TypeError):  # where the papers are not those of config/, or no list
                expected[place] = jobs.of(check.plan_of(place), place, (check.record(place) or {}).get("papers"))
        loose = [*(RESULTS / plan.scale / "runs").glob("*/*/*/[!.]*.record.json")]
        loose = [place for place in loose if place.name.startswith("seed")]
        loose += (RESULTS / plan.scale / "methods").glob("[!.]*.record.json")
        for place in loose:
            with contextlib.suppress(ConfigError):  # runs that no target uses yet, those behind them with them
                if place not in expected:
                    expected |= {each: job for each, job in _with_inputs(check, place) if each not in expected}
    there = {
        place: job for place, job in expected.items() if any(os.path.lexists(path) for path in (place, *job.outputs))
    }
    check.hash_all(path for place, job in there.items() for path in (place, *job.outputs, *job.inputs))
    with tqdm(there.items(), desc="audit", unit=" jobs", disable=None, leave=False) as progress:
        for place, job in progress:
            check.job(place, job)
    if names:
        for path in {path for job in there.values() for path in job.inputs if is_imported(path) and path.is_file()}:
            check.imported(path)
        due = {path: target for target in targets for path in target.outputs if not path.exists()}
        for path, target in due.items():
            if not target.spec.get("extra") or f"{target.paper}/{target.name}" in names:
                check.fail(path, f"not built; snakemake {path} --cores")
    else:
        check.imported_all()
        check.foreign({path for job in expected.values() for path in job.outputs} | expected.keys())
    found = sorted(dict.fromkeys(check.found), key=lambda finding: finding.file)
    return [f._replace(severity=FAILURE) if strict else f for f in found], len(check.digests)


def _with_inputs(check: _Check, place: Path) -> Iterator[tuple[Path, Job]]:
    """A job by its record's path, and the jobs that it descends from."""
    queue = [(place, check.plan)]
    for each, used in queue:
        used = check.told(each) or used
        job = jobs.of(used, each)
        yield each, job
        queue += [(record_path(path), used) for path in job.inputs]


def unfit(plan: Plan, results: Iterable[Path]) -> dict[Path, str]:
    """The runs' files among `results` that may not be published, with the first failure of each or its ancestors."""
    check, behind, failing = _Check(plan), dict[Path, Job](), dict[Path, str]()
    queue = list(results)
    for path in queue:
        place = record_path(path)
        if place in behind or is_imported(path):
            continue
        try:
            behind[place] = jobs.of(check.plan_of(place), place)
        except ConfigError as error:
            failing[path] = str(error).partition(": ")[2]
            continue
        queue += behind[place].inputs
    check.hash_all(file for place, job in behind.items() for file in (place, *job.outputs))
    for place, job in behind.items():
        check.job(place, job)
    faults = {Path(finding.file): finding.reason for finding in reversed(check.found) if finding.severity == FAILURE}

    def fault(path: Path) -> str | None:
        job = behind.get(record_path(path))
        told = faults.get(path) or faults.get(record_path(path))
        return told or next(filter(None, map(fault, job.inputs if job else ())), None)

    return failing | {path: told for path in results if path not in failing and (told := fault(path))}


def fitting(scale: str, methods: Collection[str] = ()) -> Plan:
    """The plan over all papers that fits the files built at a scale: the one for a GPU or the one for a CPU.

    These differ in the seeds that share a file; the one with more of the files fits. methods: methods from outside to
    include.
    """
    plans = [Plan(scale, all_papers(), methods=methods)]
    if plans[0].settings["seeds_per_job"] == "auto":
        plans.append(Plan(scale, all_papers(), cuda=True, methods=methods))
    return max(plans, key=lambda plan: sum(f.is_file() for cell in plan.cells.values() for f in plan.results(cell)))


class _Check:
    """The digests and records read so far, and the findings."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.plans: dict[str, Plan] = {}  # by the file of a choice
        self.found: list[Finding] = []
        self.digests: dict[Path, str] = {}
        self.records: dict[Path, dict | None] = {}

    def plan_of(self, place: Path) -> Plan:
        """The plan by which the job of a record was done: with the runs that its build used, where it chose."""
        return self.told(place) or self.plan

    def told(self, place: Path) -> Plan | None:
        """The same; None where the record names no choice of runs."""
        told = (self.record(place) or {}).get("choice")
        if told is None:
            return None
        if told not in self.plans:
            try:
                self.plans[told] = self.plan.using(choice.read(Path(told)))
            except ConfigError as error:
                self.fail(told, str(error).partition(": ")[2])
                self.plans[told] = self.plan
        return self.plans[told]

    def fail(self, path: Path | str, reason: str) -> None:
        self.found.append(Finding(FAILURE, str(path), reason))

    def warn(self, path: Path | str, reason: str) -> None:
        self.found.append(Finding(WARNING, str(path), reason))

    def hash_all(self, paths: Iterable[Path]) -> None:
        """Hash files ahead, as many at once as there are cores."""
        paths = [path for path in dict.fromkeys(paths) if path.is_file()]
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            for _ in threads.map(self.digest, paths):
                pass

    def digest(self, path: Path) -> str:
        """The SHA-256 of a file; empty, with a finding, where it cannot be read."""
        if path not in self.digests:
            try:
                self.digests[path] = provenance.sha256(path)
            except OSError as error:
                self.digests[path] = ""
                self.fail(path, f"cannot be read ({error.strerror}); make it readable")
        return self.digests[path]

    def record(self, path: Path) -> dict | None:
        """The record of a file; None without a readable one."""
        place = record_path(path)
        if place not in self.records:
            try:
                self.records[place] = read_record(path)
            except ProvenanceError:
                self.records[place] = None
        return self.records[place]

    def sound(self, path: Path) -> bool:
        """Whether a file is as its own record says; a record, as its seal says. If not, that is a finding."""
        record = self.record(path)
        if path.parts[0] == "config":
            return True
        if record is None:
            return False
        if path == record_path(path):
            return record.get("seal") == provenance.seal(record)
        return self.digest(path) == {item["path"]: item["sha256"] for item in record["outputs"]}.get(as_published(path))

    def job(self, place: Path, job: Job) -> None:
        """Check one job's outputs and record."""
        there = [path for path in job.outputs if path.is_file()]
        for path in job.outputs:
            if path not in there:
                self.fail(path, f"missing, or no plain file, and its record is there; snakemake {path} --cores")
        record, again = self.record(place), f"snakemake {job.outputs[0]} --cores --force"
        if record is None:
            for path in there:
                self.fail(path, f"no record {place.name} beside it, or none that can be read; {again}")
            return
        self.digest(place)
        if not self.sound(place):
            what = "its seal is not the digest of its content" if record.get("seal") else "it has no seal"
            self.fail(place, f"edited: {what}; {again}")
        held = {item["path"]: item["sha256"] for item in record["outputs"]}
        if held.keys() != {str(path) for path in job.outputs}:
            self.fail(place, f"a record of other files than those beside it; {again}")
        for path in there:
            if self.digest(path) != held.get(str(path)):
                self.fail(path, f"edited: not the bytes that its record holds; {again}")
        first = job.outputs[0]
        if {item["path"] for item in record["inputs"]} != {str(path) for path in job.inputs}:
            self.fail(first, f"made of other files than config/ asks for; {again}")
        for item in record["inputs"]:
            self.input(first, record, item, again)
        if not job.of_this_code(record):
            self.fail(first, f"made by other code ({record['code']}) than there is now ({job.code}); {again}")
        if record.get("settings", job.settings) != job.settings:
            say = self.warn if job.command == "index" else self.fail  # one more paper changes it; nothing is made of it
            say(first, f"made with other settings than config/ has now; {again}")
        if record["git"]["dirty"]:
            commit = (record["git"]["commit"] or "no commit")[:10]
            self.warn(first, f"made by a working tree with edits that {commit} does not have; commit, then {again}")
        self.admitted(first, record, again)

    def input(self, reader: Path, record: dict, item: dict, again: str) -> None:
        """Check one input of what `reader`'s record tells of."""
        path, place = Path(item["path"]), record_path(item["path"])
        if not path.is_file():
            if not place.is_file():  # else `sound` has the finding
                self.fail(reader, f"made of {path}, which is missing; {again}")
            return
        changed = self.digest(path) != item["sha256"]
        if not self.sound(path):
            return
        if changed:
            self.fail(reader, f"made of another {path} than is there now; {again}")
        elif path.parts[0] == "config" or path == place:
            return
        elif "record" not in item:
            self.fail(record_path(reader), f"edited: does not say with which record {path} was read; {again}")
        elif self.sound(place) and self.digest(place) != item["record"]:
            if self.made_anew(path, record):
                self.warn(path, f"made anew, with the same bytes, since {reader} was made of it; {again}")
            else:
                self.fail(place, f"edited: not the record that {reader} was made with, nor one of a later job; {again}")

    def made_anew(self, path: Path, reader: dict) -> bool:
        """Whether a file may have been made once more, to the same bytes, after what has the record `reader` read it.

        Then its record is later than the reader's and not of the future, the file itself no older than its job, and of
        data sets both say the same.
        """
        record = self.record(path)
        started, before = (datetime.datetime.fromisoformat(each["started"]) for each in (record, reader))
        now = datetime.datetime.now(datetime.UTC)
        in_time = before < started <= now and path.stat().st_mtime >= started.timestamp()
        return in_time and not _contradicting(record["data"], reader["data"])

    def imported(self, path: Path) -> None:
        """Check a run that was imported; a difference of today's code is no fault of it."""
        top, again = place_of(self.plan.scale), f"delete {place_of(self.plan.scale)} and import its crates anew"
        record, place = self.record(path), record_path(path)
        if path == place:
            return
        if record is None:
            self.fail(path, f"imported without a record {place.name}, or with none that can be read; {again}")
            return
        if not self.sound(place):
            self.fail(place, f"edited: its seal is not the digest of its content; {again}")
        if not self.sound(path):
            self.fail(path, f"edited: not the bytes that its record holds; {again}")
        for file in (path, place):
            if source_of(file, self.digest(file)) is None:
                self.fail(file, f"edited, or put there by hand: in no crate that {top / 'crates.json'} has; {again}")
        if self.plan.settings["sources"] == "real" and any(facts["standin"] for facts in record["data"].values()):
            self.fail(path, f"trained on a stand-in; {again}")
        try:
            job = jobs.of(self.plan, Path(as_published(path)))
        except ConfigError:
            return  # of a cell that config/ does not ask for any more: it is used nowhere
        for item in record["inputs"]:
            self.published_input(path, record, item, again)
        commit = record["git"]["commit"] or "unknown"
        if not job.of_this_code(record):
            self.warn(
                path, f"trained at commit {commit[:10]}, by other code than there is now; clpapers verify compares"
            )
        if not known(commit):
            self.warn(path, f"trained at commit {commit[:10]}, which is not in this clone; git fetch")

    def published_input(self, run: Path, record: dict, item: dict, again: str) -> None:
        """Check that the inputs of an imported run, where they are here, are the ones that it read."""
        path = Path(item["path"])
        if not path.is_file() or self.digest(path) == item["sha256"] or not self.sound(path):
            return
        if path.parts[2] == "selection":
            self.warn(run, f"trained with what another {path} selected than is there now; {again}")
        elif path.parts[2] == "streams" and self.of_other_code(path, item):
            self.warn(run, f"trained on another {path} than is drawn now, by other code; clpapers verify compares")
        elif path.parts[2] == "streams" or _contradicting(record["data"], (self.record(path) or {}).get("data", {})):
            self.fail(run, f"trained on another {path} than is there now; {again}")

    def of_other_code(self, path: Path, item: dict) -> bool:
        """Whether other code made the published input `item` than the file that is here, by their records."""
        place = record_apart(self.plan.scale, str(item.get("record")))
        if not place.is_file() or self.digest(place) != place.stem:
            return False
        return json.loads(place.read_bytes())["code"] != (self.record(path) or {}).get("code")

    def imported_all(self) -> None:
        """Check all that was imported, and that nothing else is there."""
        top = place_of(self.plan.scale)
        runs = [path for files in imported(self.plan.scale).values() for path in files]
        self.hash_all(each for path in runs for each in (path, record_path(path)))
        for path in runs:
            self.imported(path)
        ours = {top / "crates.json", *runs, *map(record_path, runs)}
        for path in sorted(path for path in top.rglob("*") if not path.is_dir() and path not in ours):
            if path.parent in (top / "records", top / "crates") and self.digest(path) == path.stem:
                continue
            self.fail(path, "edited, or put there by hand: no import writes it; delete it, and import its crates anew")

    def admitted(self, reader: Path, record: dict, again: str) -> None:
        """Check that a file discloses the stand-ins and reductions behind it."""
        inherited: dict = {}
        for item in record["inputs"]:
            inherited |= (self.record(Path(item["path"])) or {}).get("data", {})
        lacking = ", ".join(name for name in inherited if name not in record["data"])
        if lacking:
            self.fail(reader, f"its record says nothing of {lacking}, which it descends from; {again}")
        if other := _contradicting(record["data"], inherited):
            told = ", ".join(other)
            self.fail(reader, f"its record does not say of {told} what those that it descends from say; {again}")
        for name, facts in record["data"].items():
            kind = "a stand-in" if facts["standin"] else "a part of the data" if facts.get("partial") else None
            if kind and self.plan.scale == "paper":
                self.fail(reader, f"{name} is {kind}, at the scale of the paper; {again}")
        target = self.plan.targets.get(f"{reader.parent.name}/{reader.stem}")
        if target is None or reader != target.outputs[0] or self.record(target.metrics) is None:
            return
        plan = self.plan_of(record_path(reader))
        said = notes_on(plan, target, jobs.reduced(plan, target))
        due = {"Stand-in data": said.standins, "Reduced scale": said.reductions}
        for path in (p for p in target.outputs if p.suffix in (".md", ".tex", ".html") and p.is_file()):
            printed = path.read_text(encoding="utf-8", errors="replace")
            for words in (words for words, because in due.items() if because and words not in printed):
                self.fail(path, f"does not say ‘{words}’ below its numbers; {again}")

    def foreign(self, made: set[Path]) -> None:
        """Report all below results/<scale>/ that is not `made` by a rule. Links to folders are not followed."""
        top = RESULTS / self.plan.scale
        ours = made | {path.with_name(f".{path.stem}.checkpoint") for path in made if path.suffix == ".json"}
        ours |= {top / name for name in DECIDE_NOTHING}
        for folder, folders, files in os.walk(top, onerror=self.closed) if top.is_dir() else ():
            here = Path(folder)
            if here == top:
                folders[:] = [name for name in folders if name not in LEFT_ALONE]
            for path in (here / name for name in folders if (here / name).is_symlink()):
                self.warn(path, "a link to a folder: what it holds and no rule makes is not seen; put the folder here")
            if here == top / choice.FOLDER:
                self.choices(here, files)
                continue
            for path in (here / name for name in files):
                written = REMAINS.fullmatch(path.name)
                if path in ours or (written and path.with_name(written[1] + (written[2] or "")) in ours):
                    continue
                kind = "" if path.is_file() else "a dangling link or a device; "
                self.fail(path, kind + "no rule makes it with config/ as it is; delete it, or move it out of results/")

    def choices(self, folder: Path, files: Iterable[str]) -> None:
        """Report files that are no choice of a build's runs, or not the one that the file's name says."""
        for path in (folder / name for name in files):
            try:
                choice.read(path)
            except ConfigError as error:
                self.fail(path, str(error).partition(": ")[2])

    def closed(self, error: OSError) -> None:
        self.fail(error.filename, f"cannot be read ({error.strerror}); make it readable")


@functools.cache
def known(commit: str) -> bool:
    """Whether a commit is one of this clone's; True where git cannot tell."""
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):  # a record of others may have anything in its place
        return False
    if provenance.git_state()["commit"] is None:
        return True
    asked = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True)
    return asked.returncode == 0


def _contradicting(data: dict, others: dict) -> list[str]:
    """The data sets on whose bytes, or on whether they are the real ones, two records disagree."""
    facts = ("standin", "partial", "sha256")
    return [name for name in data if name in others and any(data[name][key] != others[name][key] for key in facts)]


# --- as text -------------------------------------------------------------------------------------------------


def text(found: list[Finding], checked: int) -> str:
    """A line a finding, those of one reason together where they are more than three; the last line counts."""
    alike: dict[tuple[str, str], list[str]] = {}
    for severity, file, reason in found:
        alike.setdefault((severity, _general(reason)), []).append(file)
    lines = []
    for severity, file, reason in found:
        files = alike[severity, _general(reason)]
        if len(files) <= 3:
            lines.append(f"{severity}: {escaped(file)}: {reason}")
        elif file == files[0]:
            lines.append(f"{severity}: {escaped(file)} and {len(files) - 1} more: {reason}")
    return "\n".join([*lines, _count(found, checked)])


def _general(reason: str) -> str:
    """A reason without its remedy, which names the file."""
    return reason.rpartition("; ")[0]


def _count(found: list[Finding], checked: int) -> str:
    failures = sum(finding.severity == FAILURE for finding in found)
    return f"{checked} files checked, {failures} failures, {len(found) - failures} warnings"


def as_json(found: list[Finding], checked: int) -> str:
    """The same as JSON: `checked`, `failures`, `warnings` and all `findings`."""
    failures = sum(finding.severity == FAILURE for finding in found)
    counts = {"checked": checked, "failures": failures, "warnings": len(found) - failures}
    return json.dumps(counts | {"findings": [finding._asdict() for finding in found]}, indent=1)
