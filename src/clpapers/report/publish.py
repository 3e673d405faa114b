"""Publish the finished runs of a scale: one research object a paper, which grows with each run trained.

A paper's crate holds the results and records of all runs of its cells. It also holds the records of the streams, data
sets and selections that they used; any clone makes these files themselves again. Runs of a method from outside are
included on request, with the file of the method. `clpapers import` reads this layout. A cell that several papers use is
in the crate of each, so that every crate is complete.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rocrate.rocrate import ROCrate

from clpapers import provenance
from clpapers.archive.check import MANIFEST, METADATA, CrateError, check, opened
from clpapers.archive.crate import PROFILES, action, add_profiles, crate_of, links, pack, times
from clpapers.archive.imported import RUN, folder_of, imported, published, records_apart, source_of
from clpapers.audit.audit import unfit
from clpapers.budget.priority import relevant
from clpapers.config.paths import block_seeds
from clpapers.config.plan import Plan
from clpapers.provenance import read_record, record_apart, record_path
from clpapers.runs.form import results

PROFILE = next(iter(PROFILES))  # Process Run Crate: no workflow runs in such a crate
PROJECT_FILES = ("CITATION.cff", "LICENSE")
Contents = dict[str, bytes]  # by path
Seeds = dict[str, dict[int, str]]  # a run's folder → seed → the file that holds it


def publish(plan: Plan, papers: list[str], *, replace: bool = False) -> list[str]:
    """Add the finished runs of papers to their crates (`published`).

    plan: of all papers. replace: whether runs of today's code replace published runs of the same seeds with other
    results. By default the published runs stay, and a line says so.

    Only runs that pass the audit, trained by a committed state of the code, are added. Returns lines to print. Raises
    `CrateError` where the working tree has edits or is under no git, and for an existing crate that is damaged.
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
    lines = []
    for paper in papers:
        cells = relevant(plan, [target for target in plan.targets.values() if target.paper == paper])
        out = published(plan.scale, paper)
        contents = _contents(out)
        seeds = _seeds(contents)
        before = sum(map(len, seeds.values()))
        local = {path: cell for cell in cells.values() for path in sorted(cell.folder.glob("seed*.json"))}
        fit, notes = _fit(plan, [path for path in local if not path.name.endswith(".record.json")])
        imported_runs = [path for key, files in imported(plan.scale).items() if key in cells for path in files]
        edited = {path for path in imported_runs if read_record(path)["git"]["dirty"]}
        notes += [f"{path}: left out: trained by a working tree with edits" for path in sorted(edited)]
        fit += [path for path in imported_runs if path not in edited]
        for path in fit:
            notes += _add(contents, seeds, path, out, replace=replace)
        lines += notes
        if not contents:
            lines.append(f"{out}: nothing to publish; no run of {paper} is finished at scale {plan.scale}")
            continue
        lines.append(_write(plan, paper, contents, out, seeds, before))
    return lines


def _contents(out: Path) -> Contents:
    """The runs and records in an existing crate; `CrateError` where it has changed since it was published."""
    if not out.is_file():
        return {}
    faults, _ = check(out)
    if faults:
        file, reason = faults[0]
        raise CrateError(f"{out}: {file}: {reason}; take it from git again, then publish")
    with opened(out) as (members, _):
        names = [name for name in members if name not in (MANIFEST, METADATA, *PROJECT_FILES)]
        contents = {name: _read(members[name]) for name in names}
    for name in filter(RUN.fullmatch, contents):
        try:
            results(contents[name])
        except ValueError as error:
            raise CrateError(f"{out}: {name}: {error}; take it from git again, then publish") from None
    return contents


def _read(member: Callable) -> bytes:
    with member() as stream:
        return stream.read()


def _seeds(contents: Contents) -> Seeds:
    """The seeds in a crate's contents."""
    seeds: Seeds = {}
    for name in sorted(contents):
        if RUN.fullmatch(name):
            seeds.setdefault(str(Path(name).parent), {}).update(dict.fromkeys(block_seeds(Path(name).stem), name))
    return seeds


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


def _add(contents: Contents, seeds: Seeds, path: Path, out: Path, *, replace: bool) -> list[str]:
    """Add a run's file, its record and its inputs' records to a crate's contents, if it has a new seed; notes."""
    scale = path.parts[1]
    name = str(folder_of(scale) / Path(*path.parts[3:]))
    content, record = path.read_bytes(), record_path(path)
    if provenance.is_imported(path) and source_of(path, hashlib.sha256(content).hexdigest()) is None:
        return [f"{path}: left out: not as it was imported; delete {folder_of(scale)} and import its crates anew"]
    published_seeds = seeds.setdefault(str(Path(name).parent), {})
    _, new = results(content)
    same = {
        seed: results(contents[published_seeds[seed]])[1][seed] == entry
        for seed, entry in new.items()
        if seed in published_seeds
    }
    notes = []
    if not all(same.values()):
        numbers = ", ".join(str(seed) for seed, equal in same.items() if not equal)
        outcome = "this one takes its place" if replace else "the published one stays (--replace takes this one)"
        notes = [f"{path}: seed {numbers} differs from {out.name}'s; {outcome}"]
        if not replace or provenance.is_imported(path):
            return notes
        for file in {published_seeds[seed] for seed in same}:
            del contents[file], contents[str(record_path(file))]
        for seed in [seed for seed, file in published_seeds.items() if file not in contents]:
            del published_seeds[seed]
    elif same.keys() == new.keys() or name in contents:
        return []
    published_seeds |= dict.fromkeys(new, name)
    contents |= {name: content, str(record_path(name)): record.read_bytes()}
    contents |= _records_of_ancestors(scale, path)
    return notes


def _records_of_ancestors(scale: str, path: Path) -> Contents:
    """The records of all files that a run descends from, each under its path in `imported/records`."""
    if provenance.is_imported(path):
        return {str(file): file.read_bytes() for file in records_apart(scale, read_record(path))}
    contents: Contents = {}
    queue = [read_record(path)]
    while queue:
        for item in queue.pop()["inputs"]:
            own_record = record_path(item["path"])
            if item["path"].endswith(".py"):  # the file of a method from outside, which no clone has
                contents |= {str(file): file.read_bytes() for file in (Path(item["path"]), own_record)}
            published_record = record_apart(scale, str(item.get("record")))
            text = (own_record if own_record.is_file() else published_record).read_bytes()
            name = str(record_apart(scale, hashlib.sha256(text).hexdigest()))
            if name not in contents:
                contents[name] = text
                queue.append(json.loads(text))
    return contents


def _write(plan: Plan, paper: str, runs: Contents, out: Path, seeds: Seeds, before: int) -> str:
    """Write a paper's crate; returns a line that counts its runs."""
    contents: dict[str, Path | bytes] = {name: Path(name) for name in PROJECT_FILES}
    contents |= dict(sorted(_reachable(plan.scale, runs).items()))
    crate = crate_of(contents)
    _describe_runs(crate, plan, paper, runs)
    fingerprint = pack(crate, contents, out, "publish what is not damaged")
    count, size = sum(map(len, seeds.values())), f"{out.stat().st_size / 1e6:.2f} MB"
    counts = f"{count} runs of {sum(map(bool, seeds.values()))} cells, {count - before} of them new"
    return f"{out}: {counts}, {size}, manifest SHA-256 {fingerprint}"


def _reachable(scale: str, contents: Contents) -> Contents:
    """The contents, without records in `imported/records` that no run descends from any more.

    The record that a run read may be absent, because its data set was made again since. Then a record of the same bytes
    replaces it.
    """
    reachable = {name for name in contents if not name.startswith(str(record_apart(scale, "x").parent))}
    outputs = {name: json.loads(contents[name])["outputs"] for name in sorted(contents.keys() - reachable)}
    by_bytes = {(item["path"], item["sha256"]): name for name, items in outputs.items() for item in items}
    queue = [name for name in reachable if name.endswith(".record.json")]
    while queue:
        for item in json.loads(contents[queue.pop()])["inputs"]:
            name = str(record_apart(scale, str(item.get("record"))))
            if name not in contents:
                name = by_bytes.get((item["path"], item["sha256"]), "")
            if name in contents and name not in reachable:
                reachable.add(name)
                queue.append(name)
    return {name: contents[name] for name in reachable}


def _describe_runs(crate: ROCrate, plan: Plan, paper: str, runs: Contents) -> None:
    """Describe the runs: an action for each, by the code of its commit."""
    records = {str(record_path(name)): json.loads(runs[str(record_path(name))]) for name in runs if RUN.fullmatch(name)}
    for commit in sorted({record["git"]["commit"] for record in records.values()}):
        tool = {"@type": "SoftwareApplication", "name": "clpapers train", "softwareVersion": f"commit {commit}"}
        crate.add_jsonld({"@id": f"#tool/{commit}", **tool})
    actions = []
    for path, record in sorted(records.items()):
        entity = action(crate, path, record, record["git"]["commit"]) | {"agent": {"@id": "#authors"}}
        actions.append(crate.add_jsonld(entity).id)
    add_profiles(crate, {PROFILE: PROFILES[PROFILE]})
    root = crate.root_dataset
    root["mentions"] = links(actions)
    root["name"] = f"clpapers: runs of {paper}, scale {plan.scale}"
    root["description"] = (
        f"Finished runs of {plan.titles[paper]}, by `clpapers publish`; `clpapers import` takes them in."
    )
    crate.datePublished = max(times(record)[1] for record in records.values())  # same runs, same crate
