"""Publish the finished runs of a scale: each publication adds a research object a paper, and changes none.

It holds the results and records of the runs of the paper's cells that no earlier one holds. It also holds the records
of the streams, data sets and selections that they used; any clone makes these files itself again. It lists the runs
that it takes out of earlier ones. Runs of a method from outside are included on request, with the file of the method.
`clpapers import` reads this layout. A cell that several papers use is in crates of each.
"""

import functools
import hashlib
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from clpapers import provenance
from clpapers.archive.check import CrateError, manifest_of
from clpapers.archive.crate import authors
from clpapers.archive.imported import (
    TAKEN_OUT,
    folder_of,
    imported,
    published,
    published_folder,
    source_of,
)
from clpapers.archive.packing import pack, times, with_digest
from clpapers.archive.published import Run, runs_of
from clpapers.audit.audit import unfit
from clpapers.budget.priority import relevant
from clpapers.config.paths import block_seeds
from clpapers.config.plan import Plan
from clpapers.provenance import read_record, record_by_digest, record_of_input, record_path, records_behind
from clpapers.runs.result_schema import results

PROJECT_FILES = ("CITATION.cff", "LICENSE")
Contents = dict[str, bytes]  # by path


def publish(plan: Plan, papers: list[str], *, replace: bool = False, without: Collection[Path] = ()) -> list[str]:
    """Publish the finished runs of papers that are not published yet, in a new crate of each paper.

    plan: of all papers. replace: whether runs of today's code replace published runs of the same seeds with other
    results. By default the published runs stay, and a line says so. without: published result files to take out.

    Only runs that pass the audit, trained by a committed state of the code, are added. Returns lines to print. Raises
    `CrateError` where the working tree has edits or is under no git, for an existing crate that is damaged, and for a
    file to take out that is not published.
    """
    state = provenance.git_state()
    if state["commit"] is None or state["dirty"]:
        fault = "has edits that no commit has"
        if state["commit"] is None:
            fault = f"has no commit ({provenance.why_no_commit() or 'there is none yet'})"
        raise CrateError(f"{Path.cwd().name}: the working tree {fault}; commit, and give the same command again")
    for part in PROJECT_FILES:
        if not Path(part).is_file():
            raise CrateError(f"{part}: no such file; run `clpapers publish` in the project's folder")
    publications = [_Publication(plan, paper) for paper in papers]
    for path in without:
        name = str(folder_of(plan.scale) / Path(*path.parts[3:]))
        of_it = [each for each in publications if name in each.there]
        if not of_it:
            raise CrateError(f"publish: --without {path}: not published by {', '.join(papers)}; name a published run")
        for each in of_it:
            each.take_out(name)
    lines = []
    for each in publications:
        cells = relevant(plan, [target for target in plan.targets.values() if target.paper == each.paper])
        local = [path for cell in cells.values() for path in sorted(cell.folder.glob("seed*.json"))]
        fit, notes = _fit(plan, [path for path in local if not path.name.endswith(".record.json")])
        imported_runs = [path for key, files in imported(plan.scale).items() if key in cells for path in files]
        edited = {path for path in imported_runs if read_record(path)["git"]["dirty"]}
        notes += [f"{path}: left out: trained by a working tree with edits" for path in sorted(edited)]
        fit += [path for path in imported_runs if path not in edited]
        for path in fit:
            notes += each.add(path, replace=replace)
        lines += [*notes, each.write()]
    return lines


class _Publication:
    """A paper's next crate.

    there: the runs published before; new: those that it adds; out: those that it takes out, all by path in crates.
    seeds: of the first two, by a run's folder and seed, the path of the result. gone: records of runs that earlier
    crates take out. behind: by new run, the records that it descends from, and its method from outside.
    """

    def __init__(self, plan: Plan, paper: str) -> None:
        self.plan, self.paper = plan, paper
        self.there, self.gone = runs_of(published(plan.scale, paper))
        self.new: dict[str, Run] = {}
        self.out: dict[str, Run] = {}
        self.behind: dict[str, Contents] = {}
        self.seeds: dict[str, dict[int, str]] = {}
        for name in self.there:
            self._count(name)

    def _count(self, name: str) -> None:
        path = Path(name)
        self.seeds.setdefault(str(path.parent), {}).update(dict.fromkeys(block_seeds(path.stem), name))

    def take_out(self, name: str) -> None:
        """Take a run out, of this crate or of earlier ones."""
        if self.new.pop(name, None) is None:
            self.out[name] = self.there.pop(name)
        seeds = self.seeds[str(Path(name).parent)]
        for seed in [seed for seed, file in seeds.items() if file == name]:
            del seeds[seed]

    def add(self, path: Path, *, replace: bool) -> list[str]:
        """Add a run with its record and its inputs' records if it has a new seed; returns notes."""
        name = str(folder_of(self.plan.scale) / Path(*path.parts[3:]))
        run = Run(path.read_bytes(), record_path(path).read_bytes())
        if (str(record_path(name)), run.digest) in self.gone or self.out.get(name) == run:
            fault = f"{path}: left out: it was taken out; delete it and train it anew"
            return [] if provenance.is_imported(path) else [fault]
        if provenance.is_imported(path) and source_of(path, hashlib.sha256(run.content).hexdigest()) is None:
            fault = f"not as it was imported; delete {folder_of(self.plan.scale)} and import its crates anew"
            return [f"{path}: left out: {fault}"]
        seeds, present = self.seeds.get(str(Path(name).parent), {}), self.there | self.new
        _, entries = results(run.content)
        same = {
            seed: results(present[seeds[seed]].content)[1][seed] == entry
            for seed, entry in entries.items()
            if seed in seeds
        }
        notes = []
        if not all(same.values()):
            numbers = ", ".join(str(seed) for seed, equal in same.items() if not equal)
            displaced = {seeds[seed] for seed in same}
            lost = sorted(seed for seed, file in seeds.items() if file in displaced and seed not in entries)
            takes = replace and not lost and not provenance.is_imported(path)
            outcome = "this one takes its place" if takes else "the published one stays"
            if replace and lost:
                outcome += f": its file also has seed {', '.join(map(str, lost))}; train it too"
            elif not replace:
                outcome += " (--replace takes this one)"
            notes = [f"{path}: seed {numbers} differs from the published one; {outcome}"]
            if not takes:
                return notes
            for file in displaced:
                self.take_out(file)
        elif same.keys() == entries.keys() or name in present:
            return []
        self.new[name] = run
        self._count(name)
        self.behind[name] = _records_of_ancestors(self.plan.scale, path)
        return notes

    def write(self) -> str:
        """Write the crate, if it adds or takes out any run; returns a line that counts the paper's runs."""
        scale = self.plan.scale
        new = sum(len(block_seeds(Path(name).stem)) for name in self.new)
        all_runs = f"{sum(map(len, self.seeds.values()))} runs of {sum(map(bool, self.seeds.values()))} cells"
        if not self.new and not self.out:
            return f"{self.paper}: nothing to publish: {all_runs} are, and no other is finished at scale {scale}"
        runs: Contents = {}
        for name, run in self.new.items():
            runs |= {name: run.content, str(record_path(name)): run.recorded}
        contents: dict[str, Path | bytes] = {name: Path(name) for name in PROJECT_FILES}
        if self.out:
            listing = manifest_of({str(record_path(name)): run.digest for name, run in self.out.items()})
            contents[TAKEN_OUT] = listing.encode()
        behind = (content for name in self.new for content in self.behind[name].items())
        contents |= dict(sorted([*behind, *runs.items()]))
        records = {str(record_path(name)): run.record for name, run in self.new.items()}
        about = {
            "name": f"clpapers: runs of {self.paper}, scale {scale}",
            "description": f"Finished runs of {self.plan.titles[self.paper]}, by `clpapers publish`; `clpapers import` "
            "takes them in.",
            "authors": authors(),
            "date": max(times(run.record)[1] for run in (*self.new.values(), *self.out.values())),
        }
        out = published_folder(scale) / f"{self.paper}.zip"
        fingerprint = pack(contents, records, out, about, "publish what is not damaged", named=True)
        out = with_digest(out, fingerprint)
        counts = f"{new} new runs" + (f", {len(self.out)} files of runs taken out" if self.out else "")
        size = f"{out.stat().st_size / 1e6:.2f} MB"
        return f"{out}: {counts}, {size}, manifest SHA-256 {fingerprint}; {self.paper} has {all_runs}"


def _fit(plan: Plan, paths: list[Path]) -> tuple[list[Path], list[str]]:
    """The finished runs that may be published, and a line for each reason why others may not."""
    reasons, fit = unfit(plan, paths), []
    for path in paths:
        if path in reasons:
            continue
        git = read_record(path)["git"]
        if git["commit"] is None or git["dirty"]:
            reasons[path] = "trained by a working tree with edits, or under no git; commit, delete it and train it anew"
        else:
            fit.append(path)
    first = {reason: path for path, reason in reversed(reasons.items())}
    counts = Counter(reasons.values())
    return fit, [
        f"{path}{f' and {counts[reason] - 1} more' if counts[reason] > 1 else ''}: left out: {reason}"
        for reason, path in first.items()
    ]


def _records_of_ancestors(scale: str, path: Path) -> Contents:
    """The records of all files that a run descends from, each under its path in `imported/records`, and its method.

    The record that the run read may be absent, because its data set was made again since. Then the one there counts.
    """
    record = read_record(path)
    behind = records_behind(record, functools.partial(record_of_input, scale))
    contents = {str(record_by_digest(scale, digest)): text for digest, text in behind.items()}
    for method in (item["path"] for item in record["inputs"] if item["path"].endswith(".py")):  # which no clone has
        contents |= {str(file): file.read_bytes() for file in (Path(method), record_path(method))}
    return contents
