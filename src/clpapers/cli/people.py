"""The commands for people: they describe, check and pack a build, and make no file of the pipeline."""

from __future__ import annotations

import argparse
import contextlib
import csv
import functools
import json
import re
import subprocess
import sys
from pathlib import Path

from clpapers import provenance
from clpapers.cli.refusal import Refusal
from clpapers.cli.task import plan_of
from clpapers.config import outside
from clpapers.config.facts import Facts
from clpapers.config.files import CONFIG, read_text, read_yaml
from clpapers.config.paths import MOST, dataset_path, seed_range
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError, one_of
from clpapers.config.settings import all_papers, check_settings, own_papers
from clpapers.config.targets import read_paper
from clpapers.graph import jobs
from clpapers.runs.cards import resolve_device

NAMED = 3  # questions that `clpapers next` names of a step


def lineage(options: argparse.Namespace) -> None:
    """Print or draw the ancestry of a file, of a target or of all that is built of a paper."""
    from clpapers.audit import lineage

    files = [Path(options.name)]
    if not files[0].is_file():
        files = _built(options)
    if options.cell is None:
        seen = functools.cache(provenance.sha256)
        nodes = [lineage.tree(file, seen) for file in files]
    else:
        names = next(csv.reader([options.cell]), []) if options.cell.isprintable() else []
        told = provenance.read_record(files[0]).get("choice")  # of the runs, and methods from outside, that it shows
        plan = plan_of(files[0], chosen=Path(told) if told else None)
        job = jobs.of(plan, files[0])
        if len(names) != 2 or job.command != "table" or files[0] not in job.outputs or len(files) > 1:
            raise Refusal(
                f"{options.name}: --cell {options.cell!r}: give a table, and ROW,COLUMN as its CSV names them"
            )
        nodes = [lineage.of_cell(plan, job.subject, *names)]
    if options.svg:
        if len(nodes) > 1:
            raise Refusal(f"{options.name}: --svg {options.svg}: give one target of it, such as {files[0]}")
        lineage.picture(nodes[0], options.svg, lineage.ONE_BY_ONE if options.cell is None else lineage.OF_A_CELL)
    elif options.json:
        print(json.dumps(nodes[0] if len(nodes) == 1 else nodes, indent=1))
    else:
        print("\n".join(provenance.escaped(line) for node in nodes for line in lineage.text(node)))


def _built(options: argparse.Namespace) -> list[Path]:
    """The first file of a target, or of each target of a paper that is built."""
    scale, name = _settings(options)["scale"], options.name
    if not re.fullmatch(r"\w+(/\w+)?", name):
        raise Refusal(f"{name}: no such file; build it with snakemake")
    files = [target.outputs[0] for target in Plan(scale, all_papers()).named_targets([name])]
    built = [file for file in files if file.is_file()]
    if not built:
        raise Refusal(f"{name}: nothing of it is built at the scale {scale}; snakemake {files[0]} --cores")
    return built


def stream(options: argparse.Namespace) -> None:
    """Write the streams of some seeds, over a data set of a paper's, in its order there or in another, to a folder."""
    import tempfile

    from clpapers import home
    from clpapers.cli.datasets import permitted, substitutes
    from clpapers.cli.streams import write
    from clpapers.datasets.build import DatasetError, build
    from clpapers.streams.orders import slug
    from clpapers.streams.stream import ITEM_ORDER, data_of, load

    settings, facts = _settings(options), Facts(options.scale)
    one_of("--paper", options.paper, all_papers())
    asked = {"dataset": options.dataset, "order": read_text(options.order, "--order"), "seed": 0}
    name, order, _ = read_paper(facts, options.paper).grid.stream(options.command, asked)
    seeds = seed_range(options.seeds, "--seeds")
    spec, file = facts.datasets.get(name), dataset_path(options.scale, name)
    place = options.out / name / slug(order)
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.out, prefix=".") as temporary:
        if facts.class_sizes(name) and (not file.is_file() or not spec or spec["sha256"]["train"]):
            source = ()
        elif file.is_file():
            provenance.believed({"path": str(file), "sha256": provenance.sha256(file)})
            source = ((file, data_of(name, file)),)
        elif "features" in spec:
            raise Refusal(f"{file}: features are made by the pipeline; snakemake {file} --cores")
        else:
            file = Path(temporary, f"{name}.npz")
            mine = getattr(options, "beside", Path.cwd())
            where = {key: home.beside(mine, settings[key]) for key in ("data_folder", "downloads")}
            where["data_folder"] = outside.data_folder(spec, where["data_folder"])
            allowed = facts.settings
            try:
                told = build(name, permitted(allowed, spec), **where, **substitutes(allowed, name), out=file)
            except DatasetError as error:
                raise Refusal(str(error)) from None
            source = ((file, (name, ITEM_ORDER, told["sha256"]["train"])),)
        for seed in seeds:
            write(facts, name, order, seed, place / f"seed{seed}.npz", *source)
    _, of, checksum = load(place / f"seed{seeds[0]}.npz").data
    print(f"{place}: {len(seeds)} streams, {name} {of}, checksum {checksum or 'none, a toy'}")


def cell(options: argparse.Namespace) -> None:
    """Print every value of a cell with its file and line, and with its layer or the reason of a derived value."""
    from clpapers.config.origins import origins

    found = origins(_settings(options)["scale"], options.hash)
    rows = [(key, value if isinstance(value, str) else json.dumps(value), *rest) for key, value, *rest in found]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    print("\n".join("  ".join([*map(str.ljust, row, widths), row[3]]) for row in rows))


def audit(options: argparse.Namespace) -> int:
    """Print the faults of a scale's files; 1 where anything fails."""
    from clpapers.audit import audit

    scale = options.scale or check_settings(read_yaml(CONFIG / "config.yaml"))["scale"]
    found, checked = audit.audit(audit.fitting(scale), options.names, strict=options.strict)
    if not checked and not found:
        raise Refusal(f"results/{scale}: nothing is built; snakemake all --cores --config scale={scale}")
    print((audit.as_json if options.json else audit.text)(found, checked))
    return int(any(severity == audit.FAILURE for severity, *_ in found))


def _settings(options: argparse.Namespace, *more: str) -> dict:
    """The settings of config.yaml, overridden by the scale, the papers and the options in `more` that are given."""
    asked = {key: getattr(options, key, None) for key in ("scale", "papers", *more)}
    given = {key: value for key, value in asked.items() if value is not None and value != []}
    return check_settings(given, where=options.command)


def _configured(options: argparse.Namespace) -> Plan:
    """The plan of config.yaml, or of the scale and the papers that are asked for."""
    settings = _settings(options)
    return Plan(settings["scale"], settings["papers"], cuda=resolve_device(settings["device"]) == "cuda")


def summary(options: argparse.Namespace) -> None:
    """Print one page on what was built."""
    from clpapers.archive.imported import imported
    from clpapers.builds import preparation
    from clpapers.report.summary import page

    settings, plan, decided = _settings(options), _configured(options), ""
    had = {"hours": 1.0, "published": bool(imported(plan.scale))}  # a build from nothing has imported none
    with contextlib.suppress(ConfigError, provenance.ProvenanceError):  # what is built is told all the same
        every = Plan(plan.scale, all_papers(), cuda=plan.cuda)
        decided = preparation.prepare(every, settings | had, ["-n"])[1].decided
    print(page(plan, list(plan.titles), decided))


def upcoming(options: argparse.Namespace) -> None:
    """Print what a build within so many core-hours would train, in its order, and what each step decides."""
    from collections import Counter

    from clpapers.budget import priority
    from clpapers.budget.costs import duration
    from clpapers.builds import preparation
    from clpapers.cli.commands import core_hours
    from clpapers.graph import own

    targets = [name for name in options.names if "/" in name]
    options.papers = [name for name in options.names if name not in targets]
    if options.hours is None:
        options.hours = core_hours("all") if targets and not options.papers else 1.0
    settings = _settings(options, "hours", "methods")
    cuda, scale = resolve_device(settings["device"]) == "cuda", settings["scale"]
    plan = Plan(scale, all_papers(), cuda=cuda, methods=own.take(scale, settings.get("methods", ())))
    words = [str(path) for target in (plan.named_targets(targets) if targets else ()) for path in target.outputs]
    _, found, data = preparation.prepare(plan, settings, ["-n", *words, *(["all"] if options.papers else [])])
    print(
        f"{'takes':>7}  {'so far':>7}  {'paper':10}  runs → what they decide"
        if found.steps
        else "no step fits, or none is left"
    )
    so_far = 0.0
    for step in found.steps:
        so_far += step.seconds
        cells = Counter(cell for cell, _ in step.runs)
        runs = ", ".join(
            f"{each.spec['dataset']}/{each.slug}/{each.folder.name}{f' ×{n}' if n > 1 else ''}"
            for each, n in ((plan.cells[key], n) for key, n in cells.items())
        )
        names = [q.name.replace(f"{q.paper}: ", "claim ") for q in step.decides if q.kind != priority.SHOWN]
        more = f", and {len(names) - NAMED} more" if len(names) > NAMED else ""
        shown = dict.fromkeys(q.name.partition(":")[0] for q in step.decides)  # by further seeds
        told = f" → {'; '.join(names[:NAMED])}{more}" if names else f" → more of {', '.join(shown)}"
        print(f"{duration(step.seconds):>7}  {duration(so_far):>7}  {step.paper:10}  {runs}{told}")
    print("\n".join(["", *preparation.told(plan, found, data)]))
    decides = f"decides {found.decided or 'nothing'} more"
    if plan.methods:  # of which nothing is printed
        decides = f"{sum(len(step.runs) for step in found.steps)} runs of methods from outside"
    print(f"{decides}, predicted {duration(3600 * found.hours)} of one core")


def targets(options: argparse.Namespace) -> None:
    """Print a Markdown table of all targets."""
    from clpapers.budget.costs import table

    print(table(_configured(options)))


def rehearse(options: argparse.Namespace) -> None:
    """Measure the costs of the kinds of cells of targets; with methods from outside, of theirs alone."""
    from clpapers.budget import priority, rehearsals
    from clpapers.graph import own

    if not 0 < options.seconds < 1e6:
        raise Refusal(f"--seconds {options.seconds}: give seconds above 0")
    plan = _configured(options)
    if options.methods or options.names:
        plan = Plan(plan.scale, all_papers(), methods=own.take(plan.scale, options.methods or ()))
    hashes = [name for name in options.names if name in plan.cells]
    names = [name for name in options.names if name not in plan.cells]
    wanted = plan.named_targets(names) if names or not hashes else []
    pairs = [pair for target in wanted for pair in target.cells]
    searches = {search for target in wanted for _, search in target.selections}
    searches |= {search for _, cell in pairs for search in priority.selections_of(plan, cell)}
    pairs = [pair for pair in pairs if "selection" not in pair[1].spec]  # which is as its search's points are
    pairs += [pair for search in sorted(searches, key=lambda each: each.name) for pair in search.points]
    cells = [plan.cells[key] for key in hashes] + [c for _, c in pairs if c.method or not options.methods]
    out = options.out or Path("results") / plan.scale / "costs.csv"
    rehearsals.rehearse(plan, list({cell.hash: cell for cell in cells}.values()), out, options.seconds)
    print(out)


def desiderata(options: argparse.Namespace) -> None:
    """Print a Markdown table of the desiderata that targets meet."""
    from clpapers.report.desiderata import table

    print(table(_configured(options)))


def export(options: argparse.Namespace) -> int:
    """Write a research object, or audit one: 1 where something in it is wrong."""
    from clpapers.archive import crate

    if options.check:
        wrong, fingerprint = crate.check(options.check)
        print("\n".join([f"{file}: {reason}" for file, reason in wrong] or [f"{options.check}: as recorded"]))
        print(f"manifest SHA-256 {fingerprint}")
        return int(bool(wrong))
    plan = _configured(options)
    if options.names:
        plan = Plan(plan.scale, all_papers(), cuda=plan.cuda)
    fingerprint, missing = crate.export(plan, options.names, options.out, options.agent)
    print(f"{options.out}: manifest SHA-256 {fingerprint}")
    if missing:
        print(f"not built, so not in it: {', '.join(missing)}")
    return 0


def try_out(options: argparse.Namespace) -> None:
    """Try a method's file: where it has a place, one line a contract that it keeps, and what it takes."""
    from clpapers.budget.rehearsals import price
    from clpapers.graph import own
    from clpapers.runs import trial

    file, scale = options.file, _settings(options)["scale"]
    own.check(file)
    print(f"{file}: {own.placed(file, scale)}", flush=True)
    try:
        for held in trial.contracts(file):
            print(held, flush=True)
        plan = Plan(scale, all_papers(), methods=[str(file)])
        for told in () if options.contracts else trial.within(file, lambda: price(plan, file.stem)):
            print(f"{file}: {told}", flush=True)
    except trial.Broken as error:
        raise Refusal(str(error)) from None


def pack(options: argparse.Namespace) -> None:
    """Write a bundle: the runs of papers and targets as `next` orders them, and of cells as they are named."""
    from clpapers.archive.imported import import_published, imported
    from clpapers.budget import costs, priority
    from clpapers.builds import preparation
    from clpapers.bundle.pack import pack

    every = options.hours is None or options.hours >= 1e6
    settings = _settings(options, "hours", "data_folder") | ({"hours": 1e6} if every else {})
    plan = Plan(settings["scale"], all_papers())
    if settings.get("published", True):
        import_published(plan.scale)
    there = priority.used(plan, priority.finished(plan), imported(plan.scale))
    held = {(cell, seed) for cell, files in there.items() for seeds in files.values() for seed in seeds}
    runs: dict[tuple[str, int], None] = {}
    for name, _, seeds in (each.partition(":") for each in options.names or settings["papers"]):
        kept = seed_range(seeds, f"pack: {name}") if seeds else range(MOST)
        cells, found = [name] if name in plan.cells else [], []
        if not cells:
            targets = plan.named_targets([name])
            words = [str(path) for target in targets for path in target.outputs]
            found = [run for step in preparation.prepare(plan, settings, ["-n", *words])[1].steps for run in step.runs]
            cells = list(priority.relevant(plan, targets)) if every else []
        found += [(cell, seed) for cell in cells for seed in plan.seeds_of(plan.cells[cell])]
        runs |= dict.fromkeys(run for run in found if run[1] in kept)
    due = [run for run in runs if run not in held]
    data = preparation.Data(
        plan, Path(settings["data_folder"]), Path(settings["downloads"]), settings.get("fetch") or ()
    )
    needed = list(dict.fromkeys(name for key, _ in due for name in plan.data_of(plan.cells[key])))
    data.look(needed)
    data.get(needed)
    for name, remedy in sorted(data.absent.items()):
        print(f"{name}: not at hand, left out: {remedy}")
    due = [run for run in due if data.absent.keys().isdisjoint(plan.data_of(plan.cells[run[0]]))]
    seconds = costs.predict(plan, costs.known(plan.scale), {key for key, _ in due})
    making = ["--config", *(f"{key}={settings[key]}" for key in ("scale", "data_folder", "downloads"))]
    size, stack = options.part_mb, options.stack
    print(pack(plan, due, options.out, seconds=seconds, megabytes=size, stack=stack, making=making))


def publish(options: argparse.Namespace) -> None:
    """Pack the finished runs of papers into their crates."""
    from clpapers.audit.audit import fitting
    from clpapers.graph import own
    from clpapers.report.publish import publish

    plan = fitting(options.scale, own.take(options.scale, options.methods))
    for name in options.names:
        one_of("publish: PAPER", name, own_papers())  # one from outside is packed by `export`
    print("\n".join(publish(plan, options.names or own_papers(), replace=options.replace)))


def reproduction(options: argparse.Namespace) -> None:
    """Write the pages on the results of the published runs."""
    from clpapers.cli import main
    from clpapers.report.reproduction import write

    try:
        print("\n".join(map(str, write(main))))
    except ValueError as error:
        raise Refusal(str(error)) from None


def take_in(options: argparse.Namespace) -> None:
    """`clpapers import`: take in the runs of crates."""
    from clpapers.archive.imported import import_crate

    for path in options.crates:
        print("\n".join(import_crate(path) or [f"{path}: imported before, nothing new"]))


def verify(options: argparse.Namespace) -> int:
    """Train a sample of runs again: 1 where one comes out otherwise."""
    from clpapers.builds.verify import DIFFERS, Outcome, verify

    sample = options.hours, options.draw, options.within
    found = []
    for outcome in verify(_settings(options), options.crates, *sample, of_each=options.of_each):
        print(outcome, flush=True)
        found.append(outcome)
    if options.out:
        with provenance.write_atomically(options.out) as temporary, temporary.open("w", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([Outcome._fields, *found])
    return int(any(outcome.verdict == DIFFERS for outcome in found))


def new(options: argparse.Namespace) -> None:
    """Write a file to start from."""
    from clpapers.cli.new import write
    from clpapers.graph import own

    if options.kind == "method":
        own.label_of(Path(f"{options.name}.py"))
    written = write(options.kind, options.name, options.folder)
    print(f"{', '.join(map(str, written))}: to build with it, --config '{options.kind}s=[{written[0].absolute()}]'")


def doctor(options: argparse.Namespace) -> int:
    """Print the findings on whether a build would go through here; 1 where it would not."""
    from clpapers.builds.doctor import page

    settings = _settings(options)
    where = Path(settings["data_folder"]), Path(settings["downloads"])
    text, fit = page(_configured(options), *where, settings.get("fetch") or ())
    print(text)
    return 0 if fit else 1


def bench(options: argparse.Namespace) -> None:
    """Run the scripts of benchmarks/ in turn, each in a process of its own."""
    for part in ("learners", "passes", "changes", "stacking", "jobs", "start", "streams", "dry_run", "avalanche"):
        script = Path("benchmarks", f"bench_{part}.py")
        if not script.is_file():
            raise Refusal(f"{script}: no such file; run `clpapers bench` in the project's folder")
        if subprocess.run([sys.executable, script, *(["--quick"] if options.quick else [])]).returncode:
            raise Refusal(f"{script}: failed, see above")
        print(flush=True)
