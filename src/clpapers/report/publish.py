"""Publish the finished runs of a scale: one research object a paper, which grows with each run trained.

A paper's crate holds the results and records of all runs of its cells, and the records of the streams, data sets and
selections that they used; any clone makes these files themselves anew. Runs of a method from outside go in where they
are asked for, with the file of the method. The layout is that of `clpapers import`. A cell that several papers use is
in the crate of each, so that every crate is complete.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rocrate.rocrate import ROCrate

from clpapers import provenance
from clpapers.archive.archive import MANIFEST, METADATA, CrateError, check, opened
from clpapers.archive.crate import PROFILES, action, add_profiles, crate_of, links, pack, times
from clpapers.archive.imported import RUN, folder_of, imported, published, records_apart, source_of
from clpapers.audit.audit import unfit
from clpapers.config.model import Cell
from clpapers.config.paths import block_seeds
from clpapers.config.plan import Plan
from clpapers.provenance import read_record, record_apart, record_path
from clpapers.runs.form import results

PROFILE = next(iter(PROFILES))  # Process Run Crate: no workflow runs in such a crate
BESIDE = ("CITATION.cff", "LICENSE")
Contents = dict[str, bytes]  # by path
Seeds = dict[str, dict[int, str]]  # a run's folder → seed → the file that holds it


def publish(plan: Plan, papers: list[str], *, replace: bool = False) -> list[str]:
    """Add the finished runs of papers to their crates (`published`).

    plan: of all papers. replace: whether runs of today's code replace published runs of the same seeds that have other
    results; by default the published runs stay, and a line says so.

    Only runs that pass the audit, trained by a committed state of the code, are added. Returns lines to print. Raises
    `CrateError` where the working tree has edits or is under no git, and for an existing crate that is damaged.
    """
    state = provenance.git_state()
    if state["commit"] is None or state["dirty"]:
        fault = "has edits that no commit has"
        if state["commit"] is None:
            fault = f"has no commit ({provenance.why_no_commit() or 'there is none yet'})"
        raise CrateError(f"{Path.cwd().name}: the working tree {fault}; commit, and give the same command again")
    for part in BESIDE:
        if not Path(part).is_file():
            raise CrateError(f"{part}: no such file; run `clpapers publish` in the project's folder")
    lines = []
    for paper in papers:
        cells = _cells(plan, paper)
        out = published(plan.scale, paper)
        held = _held(out)
        seeds = _seeds(held)
        before = sum(map(len, seeds.values()))
        local = {path: cell for cell in cells.values() for path in sorted(cell.folder.glob("seed*.json"))}
        fit, told = _fit(plan, [path for path in local if not path.name.endswith(".record.json")])
        brought = [path for key, files in imported(plan.scale).items() if key in cells for path in files]
        edited = {path for path in brought if read_record(path)["git"]["dirty"]}
        told += [f"{path}: left out: trained by a working tree with edits" for path in sorted(edited)]
        fit += [path for path in brought if path not in edited]
        for path in fit:
            told += _add(held, seeds, path, out, replace=replace)
        lines += told
        if not held:
            lines.append(f"{out}: nothing to publish; no run of {paper} is finished at scale {plan.scale}")
            continue
        lines.append(_written(plan, paper, held, out, seeds, before))
    return lines


def _cells(plan: Plan, paper: str) -> dict[str, Cell]:
    users = [cell for target in plan.targets.values() if target.paper == paper for _, cell in target.cells]
    searches = (search for search in plan.selections.values() if search.paper == paper)
    return {cell.hash: cell for cell in [*users, *(cell for search in searches for _, cell in search.points)]}


def _held(out: Path) -> Contents:
    """The runs and records in an existing crate; `CrateError` where it has changed since it was published."""
    if not out.is_file():
        return {}
    wrong, _ = check(out)
    if wrong:
        file, reason = wrong[0]
        raise CrateError(f"{out}: {file}: {reason}; take it from git again, then publish")
    with opened(out) as (members, _):
        held = {name: _read(members[name]) for name in members if name not in (MANIFEST, METADATA, *BESIDE)}
    for name in filter(RUN.fullmatch, held):
        try:
            results(held[name])
        except ValueError as error:
            raise CrateError(f"{out}: {name}: {error}; take it from git again, then publish") from None
    return held


def _read(member: Callable) -> bytes:
    with member() as stream:
        return stream.read()


def _seeds(contents: Contents) -> Seeds:
    """The seeds in a crate's contents."""
    found: Seeds = {}
    for name in sorted(contents):
        if RUN.fullmatch(name):
            found.setdefault(str(Path(name).parent), {}).update(dict.fromkeys(block_seeds(Path(name).stem), name))
    return found


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
    counted = Counter(reasons.values())
    return fit, [
        f"{path}{f' and {counted[reason] - 1} more' if counted[reason] > 1 else ''}: left out: {reason}"
        for reason, path in first.items()
    ]


def _add(held: Contents, seeds: Seeds, path: Path, out: Path, *, replace: bool) -> list[str]:
    """Add a run's file, its record and its inputs' records to `held`, if it has a seed that is not there; notes."""
    scale = path.parts[1]
    name = str(folder_of(scale) / Path(*path.parts[3:]))
    content, record = path.read_bytes(), record_path(path)
    if provenance.is_imported(path) and source_of(path, hashlib.sha256(content).hexdigest()) is None:
        return [f"{path}: left out: not as it was imported; delete {folder_of(scale)} and import its crates anew"]
    there = seeds.setdefault(str(Path(name).parent), {})
    _, new = results(content)
    same = {seed: results(held[there[seed]])[1][seed] == entry for seed, entry in new.items() if seed in there}
    notes = []
    if not all(same.values()):
        told = ", ".join(str(seed) for seed, equal in same.items() if not equal)
        kept = "this one takes its place" if replace else "the published one stays (--replace takes this one)"
        notes = [f"{path}: seed {told} differs from {out.name}'s; {kept}"]
        if not replace or provenance.is_imported(path):
            return notes
        for each in {there[seed] for seed in same}:
            del held[each], held[str(record_path(each))]
        for seed in [seed for seed, file in there.items() if file not in held]:
            del there[seed]
    elif same.keys() == new.keys() or name in held:
        return []
    there |= dict.fromkeys(new, name)
    held |= {name: content, str(record_path(name)): record.read_bytes()}
    held |= _behind(scale, path)
    return notes


def _behind(scale: str, path: Path) -> Contents:
    """The records of a run's inputs and of theirs, each under its path in `imported/records`."""
    if provenance.is_imported(path):
        return {str(place): place.read_bytes() for place in records_apart(scale, read_record(path))}
    found: Contents = {}
    queue = [read_record(path)]
    while queue:
        for item in queue.pop()["inputs"]:
            beside = record_path(item["path"])
            if item["path"].endswith(".py"):  # the file of a method from outside, which no clone has
                found |= {str(each): each.read_bytes() for each in (Path(item["path"]), beside)}
            text = (beside if beside.is_file() else record_apart(scale, str(item.get("record")))).read_bytes()
            place = str(record_apart(scale, hashlib.sha256(text).hexdigest()))
            if place not in found:
                found[place] = text
                queue.append(json.loads(text))
    return found


def _written(plan: Plan, paper: str, held: Contents, out: Path, seeds: Seeds, before: int) -> str:
    """Write a paper's crate; returns a line that counts its runs."""
    contents: dict[str, Path | bytes] = {name: Path(name) for name in BESIDE}
    contents |= dict(sorted(_reached(plan.scale, held).items()))
    crate = crate_of(contents)
    _tell(crate, plan, paper, held)
    fingerprint = pack(crate, contents, out, "publish what is not damaged")
    runs, size = sum(map(len, seeds.values())), f"{out.stat().st_size / 1e6:.2f} MB"
    counted = f"{runs} runs of {sum(map(bool, seeds.values()))} cells, {runs - before} of them new"
    return f"{out}: {counted}, {size}, manifest SHA-256 {fingerprint}"


def _reached(scale: str, held: Contents) -> Contents:
    """The contents `held`, without records in `imported/records` that no run descends from any more.

    Where the record that a run read is not there, as its data set was made anew since, one of the same bytes stands in.
    """
    kept = {name for name in held if not name.startswith(str(record_apart(scale, "x").parent))}
    outputs = {name: json.loads(held[name])["outputs"] for name in sorted(held.keys() - kept)}
    alike = {(item["path"], item["sha256"]): name for name, items in outputs.items() for item in items}
    queue = [name for name in kept if name.endswith(".record.json")]
    while queue:
        for item in json.loads(held[queue.pop()])["inputs"]:
            named = str(record_apart(scale, str(item.get("record"))))
            told = {named if named in held else alike.get((item["path"], item["sha256"]))} & held.keys() - kept
            kept |= told
            queue += told
    return {name: held[name] for name in kept}


def _tell(crate: ROCrate, plan: Plan, paper: str, held: Contents) -> None:
    """Describe the runs: an action for each, by the code of its commit."""
    records = {str(record_path(name)): json.loads(held[str(record_path(name))]) for name in held if RUN.fullmatch(name)}
    for commit in sorted({record["git"]["commit"] for record in records.values()}):
        tool = {"@type": "SoftwareApplication", "name": "clpapers train", "softwareVersion": f"commit {commit}"}
        crate.add_jsonld({"@id": f"#tool/{commit}", **tool})
    actions = []
    for place, record in sorted(records.items()):
        told = action(crate, place, record, record["git"]["commit"]) | {"agent": {"@id": "#authors"}}
        actions.append(crate.add_jsonld(told).id)
    add_profiles(crate, {PROFILE: PROFILES[PROFILE]})
    root = crate.root_dataset
    root["mentions"] = links(actions)
    root["name"] = f"clpapers: runs of {paper}, scale {plan.scale}"
    root["description"] = (
        f"Finished runs of {plan.titles[paper]}, by `clpapers publish`; `clpapers import` takes them in."
    )
    crate.datePublished = max(times(record)[1] for record in records.values())  # same runs, same crate
