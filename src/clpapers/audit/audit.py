"""Checks that every file under results/ is the one that the present configuration and code make from its inputs.

Every output, record and input is hashed once, never from a cache, and compared with the records. Records are compared
with each other and with the jobs of the present configuration (`clpapers.graph.jobs`). docs/provenance.md lists the
faults that this finds, and the faults that nothing can find. Logs, benchmarks, checkpoints of our runs and unfinished
files of a running job are not checked.
"""

from __future__ import annotations

import contextlib
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
from clpapers.archive.imported import FOLDER, folder_of, imported, source_of
from clpapers.config import selected_runs
from clpapers.config.paths import RESULTS
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.graph.jobs import Job
from clpapers.home import project_path
from clpapers.provenance import (
    AS_RECORDED,
    BY_CHECKSUM,
    CHANGED,
    EDITED,
    MANIFEST,
    MISSING,
    NO_RECORD,
    REMADE,
    as_published,
    escaped,
    files_of,
    is_imported,
    record_apart,
    record_path,
)
from clpapers.targets.footnotes import notes_on

FAILURE, WARNING = "failure", "warning"
# Below results/<scale>/: unavailable data, measured times, the verdicts on published runs that were trained again.
DECIDE_NOTHING = ("absent.json", "costs.csv", "machine.json", "verified.csv")
# Below results/<scale>/: whatever trainings need or made, which no target need use (yet, or in this build).
KEPT = ("datasets", "weights", "streams", "gans", "runs", "methods")
LEFT_ALONE = ("logs", "benchmarks", FOLDER, "published")  # below results/<scale>/: Snakemake's, and imported files
BY_OTHERS = "trained by other code than there is now"
REMAINS = re.compile(r"\.(.+)\.[a-z0-9_]{8}(\.[^.]+)?")  # of a file that is being written (`write_atomically`)
# Made for the requested papers, which only their records name.
ON_TOP = ("targets/scorecard.record.json", "report/index.record.json")


class Finding(NamedTuple):
    """A fault of a file. severity: `failure` or `warning`. reason: with the remedy."""

    severity: str
    file: str
    reason: str


def findings(plan: Plan, names: Collection[str] = (), *, strict: bool = False) -> list[Finding]:
    """The faults of the files of a plan's scale; see `audit`."""
    return audit(plan, names, strict=strict)[0]


def audit(plan: Plan, names: Collection[str] = (), *, strict: bool = False) -> tuple[list[Finding], int]:
    """Check the built files of a plan.

    Parameters
    ----------

    - plan: of all papers, as `fitting` makes it; its files need not be built.
    - names: papers, or targets as `paper/target`. These must be built, and are checked with all their ancestors.
      Without any, all files under results/<scale>/ are checked.
    - strict: whether a warning is a failure.

    Returns
    -------
    The findings, in the order of the files' paths, and the number of files that were hashed. Raises `ConfigError` for
    an unknown name.
    """
    targets, check = plan.named_targets(names), _Check(plan)
    expected = jobs.ancestors(plan, targets, check.recorded_plan)
    if not names:
        index = record_path(RESULTS / plan.scale / "runs" / "index.csv")
        expected[index] = check.job_of(index)
        for record in (RESULTS / plan.scale / "targets").glob("*/claims.record.json"):
            if record.parent.name in jobs.claims_of(plan):
                expected[record] = check.job_of(record)
        for record in (RESULTS / plan.scale / name for name in ON_TOP):
            with contextlib.suppress(ConfigError, TypeError):  # where its papers are unknown, or no list
                expected[record] = check.job_of(record, (check.files.record(record) or {}).get("papers"))
        for record in (each for kind in KEPT for each in (RESULTS / plan.scale / kind).rglob("[!.]*.record.json")):
            with contextlib.suppress(ConfigError):  # with its ancestors
                if record not in expected:
                    expected |= {each: job for each, job in _with_inputs(check, record) if each not in expected}
    built = {
        record: job for record, job in expected.items() if any(os.path.lexists(path) for path in (record, *job.outputs))
    }
    check.hash_all(path for record, job in built.items() for path in (record, *job.outputs, *job.inputs))
    with tqdm(built.items(), desc="audit", unit=" jobs", disable=None, leave=False) as progress:
        for record, job in progress:
            check.job(record, job)
    if names:
        for path in {path for job in built.values() for path in job.inputs if is_imported(path) and path.is_file()}:
            check.imported(path)
        missing = {  # of the files that the job makes, by the runs that its build had
            path: target
            for target in targets
            for record in dict.fromkeys(map(record_path, target.outputs))
            for path in expected[record].outputs
            if not path.exists()
        }
        for path, target in missing.items():
            if not target.spec.get("extra") or f"{target.paper}/{target.name}" in names:
                check.fail(path, f"not built; snakemake {path} --cores")
    else:
        check.imported_all()
        check.foreign({path for job in expected.values() for path in job.outputs} | expected.keys() | check.site())
    findings = sorted(dict.fromkeys(check.findings), key=lambda finding: finding.file)
    hashed = sum(map(bool, check.files.digests.values()))
    return [f._replace(severity=FAILURE) if strict else f for f in findings], hashed


def _with_inputs(check: _Check, record: Path) -> Iterator[tuple[Path, Job]]:
    """A job by its record's path, and the jobs that it descends from."""
    queue = [(record, check.plan)]
    for path, reader_plan in queue:
        own_plan = check.recorded_plan(path) or reader_plan
        job = jobs.job_of(own_plan, path)
        yield path, job
        queue += [(record_path(file), own_plan) for file in job.inputs]


def unfit(plan: Plan, results: Iterable[Path]) -> dict[Path, str]:
    """The runs' files among `results` that may not be published, with the first failure of each or its ancestors."""
    check, ancestors, failing = _Check(plan), dict[Path, Job](), dict[Path, str]()
    queue = list(results)
    for path in queue:
        record = record_path(path)
        if record in ancestors or is_imported(path):
            continue
        try:
            ancestors[record] = check.job_of(record)
        except ConfigError as error:
            failing[path] = str(error).partition(": ")[2]
            continue
        queue += ancestors[record].inputs
    check.hash_all(file for record, job in ancestors.items() for file in (record, *job.outputs))
    for record, job in ancestors.items():
        check.job(record, job)
    reasons = {
        Path(finding.file): finding.reason for finding in reversed(check.findings) if finding.severity == FAILURE
    }

    def first_reason(path: Path) -> str | None:
        job = ancestors.get(record_path(path))
        own = reasons.get(path) or reasons.get(record_path(path))
        return own or next(filter(None, map(first_reason, job.inputs if job else ())), None)

    return failing | {path: reason for path in results if path not in failing and (reason := first_reason(path))}


def fitting(scale: str, methods: Collection[str] = ()) -> Plan:
    """The plan over all papers that fits the files built at a scale: the one for a GPU or the one for a CPU.

    These differ in the seeds that share a file; the plan with more existing files fits. methods: methods from outside
    to include.
    """
    plans = [Plan.load(scale, all_papers(), methods=methods)]
    if plans[0].settings["seeds_per_job"] == "auto":
        plans.append(Plan.load(scale, all_papers(), cuda=True, methods=methods))
    return max(plans, key=lambda plan: sum(f.is_file() for cell in plan.cells.values() for f in plan.results(cell)))


class _Check:
    """The files and plans read until now, and the findings."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.plans: dict[str, Plan] = {}  # by the file of a choice
        self.findings: list[Finding] = []
        self.files = provenance.Files()

    def job_of(self, record: Path, papers: Collection[str] | None = None) -> Job:
        """The job of a record, by the plan that it was done by."""
        return jobs.job_of(self.plan_of(record), record, papers)

    def plan_of(self, record: Path) -> Plan:
        """The plan by which the job of a record was done: with the runs that its build used, where it chose."""
        return self.recorded_plan(record) or self.plan

    def recorded_plan(self, record: Path) -> Plan | None:
        """The same; None where the record names no choice of runs."""
        file = (self.files.record(record) or {}).get("choice")
        if file is None:
            return None
        if file not in self.plans:
            try:
                self.plans[file] = self.plan.using(selected_runs.read(project_path(file)))
            except ConfigError as error:
                self.fail(file, str(error).partition(": ")[2])
                self.plans[file] = self.plan
        return self.plans[file]

    def fail(self, path: Path | str, reason: str) -> None:
        self.findings.append(Finding(FAILURE, str(path), reason))

    def warn(self, path: Path | str, reason: str) -> None:
        self.findings.append(Finding(WARNING, str(path), reason))

    def hash_all(self, paths: Iterable[Path]) -> None:
        """Hash files in advance, one on each core at a time."""
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            for _ in threads.map(self.files.digest, dict.fromkeys(paths)):
                pass

    def check_file(self, path: Path, remedy: str, record: dict | None = None) -> None:
        """Check a file against its record, or a record against its seal."""
        state = self.files.state(path, record)
        if state == MISSING:
            closed = self.files.unreadable.get(str(path))
            fault = f"cannot be read ({closed}); make it readable" if closed else "missing, or no plain file"
            self.fail(path, fault if closed else f"{fault}, and its record is there; snakemake {path} --cores")
        elif state == NO_RECORD:
            self.fail(path, f"no record {record_path(path).name} beside it, or none that can be read; {remedy}")
        elif state != AS_RECORDED:
            self.fail(path, f"edited: {EDITED[state]}; {remedy}")

    def job(self, path: Path, job: Job) -> None:
        """Check one job's outputs and its record at `path`."""
        first, remedy = job.outputs[0], f"snakemake {job.outputs[0]} --cores --force"
        record = self.files.record(path)
        for file in job.outputs:
            self.check_file(file, remedy, record)
        if record is None:
            return
        self.check_file(path, remedy)
        if {item["path"] for item in record["outputs"]} != {str(file) for file in job.outputs}:
            self.fail(path, f"a record of other files than those beside it; {remedy}")
        if {item["path"] for item in record["inputs"]} != {str(file) for file in job.inputs}:
            self.fail(first, f"made of other files than config/ asks for; {remedy}")
        for item in record["inputs"]:
            self.input(first, item, remedy)
        if job.code != record["code"]:
            self.fail(first, f"made by other code ({record['code']}) than there is now ({job.code}); {remedy}")
        if record.get("settings", job.settings) != job.settings:
            # One more paper changes the index, and nothing is made of it.
            report = self.warn if job.command == "index" else self.fail
            report(first, f"made with other settings than config/ has now; {remedy}")
        if record["git"]["dirty"]:
            commit = (record["git"]["commit"] or "no commit")[:10]
            self.warn(first, f"made by a working tree with edits that {commit} does not have; commit, then {remedy}")
        self.disclosures(first, record, remedy)

    def input(self, reader: Path, item: dict, remedy: str) -> None:
        """Check one input of the file `reader`. A fault of the input itself is found by the check of its own job."""
        path, state = project_path(item["path"]), self.files.state_since(item)
        if state in (MISSING, BY_CHECKSUM) and not record_path(path).is_file():
            self.fail(reader, f"made of {path}, which is missing; {remedy}")
        elif state == CHANGED and self.files.sound(path):
            self.fail(reader, f"made of another {path} than is there now; {remedy}")
        elif state == REMADE and self.files.sound(path) and self.files.sound(record_path(path)):
            self.warn(path, f"made anew, with the same bytes, since {reader} was made of it; {remedy}")

    def imported(self, path: Path) -> None:
        """Check a run that was imported; other code than today's is no fault of it."""
        top, remedy = folder_of(self.plan.scale), f"delete {folder_of(self.plan.scale)} and import its crates anew"
        record, own_record = self.files.record(path), record_path(path)
        if path == own_record:
            return
        self.check_file(path, remedy)
        if record is None:
            return
        self.check_file(own_record, remedy)
        for file in (path, own_record):
            if source_of(file, self.files.digest(file)) is None:
                self.fail(file, f"edited, or put there by hand: in no crate that {top / 'crates.json'} has; {remedy}")
        if self.plan.settings["sources"] == "real" and any(facts["standin"] for facts in record["data"].values()):
            self.fail(path, f"trained on a stand-in; {remedy}")
        try:
            job = jobs.job_of(self.plan, Path(as_published(path)))
        except ConfigError:
            return  # its cell is no longer in config/: nothing uses it
        for item in record["inputs"]:
            self.published_input(path, record, item, remedy)
        commit = record["git"]["commit"] or "unknown"
        if job.code != record["code"]:
            self.warn(path, f"{BY_OTHERS}; clpapers verify compares it with commit {commit[:10]}")
        if not in_clone(commit):
            self.warn(path, f"trained at a commit that is not in this clone; git fetch brings {commit[:10]}")

    def published_input(self, run: Path, record: dict, item: dict, remedy: str) -> None:
        """Check that an input of an imported run, where it exists, is the one that the run read."""
        path = project_path(item["path"])
        if self.files.state_since(item) != CHANGED or not self.files.sound(path):
            return
        if path.parts[2] == "selection":
            self.warn(run, f"trained with what another {path} selected than is there now; {remedy}")
        elif path.parts[2] == "streams" and self.of_other_code(path, item):
            self.warn(run, f"{BY_OTHERS}; it read another {path} than is drawn now, clpapers verify compares")
        elif path.parts[2] == "streams" or _contradicting(record["data"], (self.files.record(path) or record)["data"]):
            self.fail(run, f"trained on another {path} than is there now; {remedy}")

    def of_other_code(self, path: Path, item: dict) -> bool:
        """Whether other code made the published input `item` than the present file, by their records."""
        published = record_apart(self.plan.scale, item)
        return published is not None and json.loads(published)["code"] != (self.files.record(path) or {}).get("code")

    def imported_all(self) -> None:
        """Check all imported files, and that their folder has no others."""
        top = folder_of(self.plan.scale)
        runs = [path for files in imported(self.plan.scale).values() for path in files]
        self.hash_all(each for path in runs for each in (path, record_path(path)))
        for path in runs:
            self.imported(path)
        ours = {top / "crates.json", *runs, *map(record_path, runs)}
        for path in sorted(path for path in top.rglob("*") if not path.is_dir() and path not in ours):
            if path.parent in (top / "records", top / "crates") and self.files.digest(path) == path.stem:
                continue
            self.fail(path, "edited, or put there by hand: no import writes it; delete it, and import its crates anew")

    def disclosures(self, reader: Path, record: dict, remedy: str) -> None:
        """Check that a file discloses the stand-ins and reductions of its ancestors."""
        inherited: dict = {}
        for item in record["inputs"]:
            inherited |= (self.files.record(Path(item["path"])) or {}).get("data", {})
        lacking = ", ".join(name for name in inherited if name not in record["data"])
        if lacking:
            self.fail(reader, f"its record says nothing of {lacking}, which it descends from; {remedy}")
        if contradicting := ", ".join(_contradicting(record["data"], inherited)):
            self.fail(
                reader, f"its record does not say of {contradicting} what those that it descends from say; {remedy}"
            )
        for name, facts in record["data"].items():
            kind = "a stand-in" if facts["standin"] else "a part of the data" if facts.get("partial") else None
            if kind and self.plan.scale == "paper":
                self.fail(reader, f"{name} is {kind}, at the scale of the paper; {remedy}")
        target = self.plan.targets.get(f"{reader.parent.name}/{reader.stem}")
        if target is None or reader != target.outputs[0] or self.files.record(target.metrics) is None:
            return
        plan = self.plan_of(record_path(reader))
        notes = notes_on(plan, target, jobs.reduced(plan, target))
        required = {"Stand-in data": notes.standins, "Reduced scale": notes.reductions}
        for path in (p for p in target.outputs if p.suffix in (".md", ".tex", ".html") and p.is_file()):
            printed = path.read_text(encoding="utf-8", errors="replace")
            for note in (note for note, facts in required.items() if facts and note not in printed):
                self.fail(path, f"does not say ‘{note}’ below its numbers; {remedy}")

    def site(self) -> set[Path]:
        """Check the files that the site's manifest names; returns them."""
        folder = RESULTS / self.plan.scale / "report"
        manifest, found = folder / MANIFEST, set()
        for name, digest in (files_of(manifest.read_bytes()) if manifest.is_file() else {}).items():
            found.add(path := folder / name)
            if not path.is_file() or self.files.digest(path) != digest:
                fault = "edited: not the bytes that the manifest has" if path.is_file() else "missing"
                self.fail(path, f"{fault}; snakemake {folder / 'index.html'} --cores --force")
        return found

    def foreign(self, expected: set[Path]) -> None:
        """Report all files below results/<scale>/ that no rule makes. Links to folders are not followed."""
        top = RESULTS / self.plan.scale
        ours = expected | {path.with_name(f".{path.stem}.checkpoint") for path in expected if path.suffix == ".json"}
        ours |= {top / name for name in DECIDE_NOTHING}
        for name, folders, files in os.walk(top, onerror=self.closed) if top.is_dir() else ():
            folder = Path(name)
            if folder == top:
                folders[:] = [name for name in folders if name not in LEFT_ALONE]
            for path in (folder / name for name in folders if (folder / name).is_symlink()):
                self.warn(path, "a link to a folder: what it holds and no rule makes is not seen; put the folder here")
            if folder == top / selected_runs.FOLDER:
                self.choices(folder, files)
                continue
            for path in (folder / name for name in files):
                written = REMAINS.fullmatch(path.name)
                if path in ours or (written and path.with_name(written[1] + (written[2] or "")) in ours):
                    continue
                kind = "" if path.is_file() else "a dangling link or a device; "
                self.fail(path, kind + "no rule makes it with config/ as it is; delete it, or move it out of results/")

    def choices(self, folder: Path, files: Iterable[str]) -> None:
        """Report files that are no choice of a build's runs, or not the one that the file's name says."""
        for path in (folder / name for name in files):
            try:
                selected_runs.read(path)
            except ConfigError as error:
                self.fail(path, str(error).partition(": ")[2])

    def closed(self, error: OSError) -> None:
        self.fail(error.filename, f"cannot be read ({error.strerror}); make it readable")


@functools.cache
def in_clone(commit: str) -> bool:
    """Whether a commit is one of this clone's; True where git cannot tell."""
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):  # an imported record may have any text there
        return False
    if provenance.git_state()["commit"] is None:
        return True
    git = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True)
    return git.returncode == 0


def _contradicting(data: dict, other: dict) -> list[str]:
    """The data sets on whose bytes, or on whether they are the real ones, two records disagree."""
    facts = ("standin", "partial", "sha256")
    return [name for name in data if name in other and any(data[name][key] != other[name][key] for key in facts)]


# --- as text -------------------------------------------------------------------------------------------------


def text(findings: list[Finding], checked: int) -> str:
    """A line for each finding, or for more than three of one reason, which --json lists; the last line counts."""
    by_reason: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        by_reason.setdefault((finding.severity, _general(finding.reason)), []).append(finding)
    lines = []
    for group in by_reason.values():
        more = len({finding.file for finding in group}) - 1
        others = f" and {more} more, which clpapers audit --json lists" if more > 2 else ""
        lines += [
            f"{severity}: {escaped(file)}{others}: {reason}"
            for severity, file, reason in group[: 1 if others else None]
        ]
    counts = _counts(findings, checked)
    return "\n".join([*lines, f"{checked} files checked, {counts['failures']} failures, {counts['warnings']} warnings"])


def _general(reason: str) -> str:
    """A reason without its remedy, which names the file."""
    return reason.rpartition("; ")[0]


def _counts(findings: list[Finding], checked: int) -> dict[str, int]:
    failures = sum(finding.severity == FAILURE for finding in findings)
    return {"checked": checked, "failures": failures, "warnings": len(findings) - failures}


def as_json(findings: list[Finding], checked: int) -> str:
    """The same as JSON: `checked`, `failures`, `warnings` and all `findings`."""
    return json.dumps({**_counts(findings, checked), "findings": [finding._asdict() for finding in findings]}, indent=1)
