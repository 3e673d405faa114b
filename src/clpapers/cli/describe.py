"""The commands for people: they describe, check and pack a build, and make no file of the pipeline."""

import argparse
import contextlib
import csv
import json
import re
import shlex
from collections import Counter
from pathlib import Path

from clpapers import provenance
from clpapers.cli.job_context import plan_of
from clpapers.config import user_files
from clpapers.config.facts import Facts
from clpapers.config.files import CONFIG, read_text, read_yaml
from clpapers.config.paths import MOST, dataset_path, seeds_of
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError, one_of
from clpapers.config.settings import all_papers, check_settings, project_papers
from clpapers.config.targets import read_paper
from clpapers.graph import jobs
from clpapers.provenance import Refusal
from clpapers.runs.cards import resolve_device

ALL_HOURS = 1e6  # core-hours: the most that settings may have, so that there is a sequence of steps
NAMED = 3  # questions of a step that `clpapers next` names


def lineage(options: argparse.Namespace) -> None:
    """Print the ancestry of a file, of a target or of all built targets of a paper."""
    from clpapers.audit import lineage

    files = [Path(options.name)]
    if not files[0].is_file():
        files = _built(options)
    if options.cell is None:
        read = provenance.Files()
        nodes = [lineage.tree(file, read) for file in files]
    else:
        names = next(csv.reader([options.cell]), []) if options.cell.isprintable() else []
        choice_file = provenance.read_record(files[0]).get("choice")  # of its runs and methods from outside
        plan = plan_of(files[0], choice_file=Path(choice_file) if choice_file else None)
        job = jobs.job_of(plan, files[0])
        of_table = job.command == "table" and files[0] in job.outputs
        if not isinstance(job, jobs.TargetJob) or not of_table or len(names) != 2 or len(files) > 1:
            raise Refusal(
                f"{options.name}: --cell {options.cell!r}: give a table, and ROW,COLUMN as its CSV names them"
            )
        row, column = names
        nodes = [lineage.of_cell(plan, job.target, row, column)]
    if options.json:
        print(json.dumps(nodes[0] if len(nodes) == 1 else nodes, indent=1))
    else:
        print("\n".join(provenance.escaped(line) for node in nodes for line in lineage.text(node)))


def _built(options: argparse.Namespace) -> list[Path]:
    """The first file of a target, or of each target of a paper that is built."""
    scale, name = _settings(options)["scale"], options.name
    if not re.fullmatch(r"\w+(/\w+)?", name):
        raise Refusal(f"{name}: no such file; build it with snakemake")
    files = [target.outputs[0] for target in Plan.load(scale, all_papers()).named_targets([name])]
    built = [file for file in files if file.is_file()]
    if not built:
        raise Refusal(f"{name}: nothing of it is built at the scale {scale}; snakemake {files[0]} --cores")
    return built


def stream(options: argparse.Namespace) -> None:
    """Write the streams of some seeds to a folder: over a paper's data set, in the paper's order or another."""
    import tempfile

    from clpapers import home
    from clpapers.cli.datasets import permitted, substitutes
    from clpapers.cli.streams import write
    from clpapers.datasets.build import build
    from clpapers.streams.orders import slug
    from clpapers.streams.stream import ITEM_ORDER, data_of, load

    settings, facts = _settings(options), Facts(options.scale)
    one_of("--paper", options.paper, all_papers())
    given, grid = read_text(options.order, "--order"), read_paper(facts, options.paper).grid
    name = options.dataset
    if name in grid.content.get("datasets", {}) and "name" not in grid.usual_order(name) | given:
        every = [each for (of, _), each in Plan(options.scale, [options.paper]).orders.items() if of == name]
        written = (", ".join(f"{key}: {json.dumps(value)}" for key, value in each.items() if value) for each in every)
        orders = ", ".join(f"'{{{each}}}'" for each in written).replace('"', "")
        raise Refusal(f"--order: {options.paper} has {len(every)} orders of {name}; give one: {orders}")
    name, order, _ = grid.stream(options.command, {"dataset": name, "order": given, "seed": 0})
    seeds = seeds_of(options.seeds, "--seeds")
    spec, file = facts.datasets.get(name), dataset_path(options.scale, name)
    folder = options.out / name / slug(order)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.out, prefix=".") as temporary:
        source: tuple[Path, tuple] | None = None
        if not facts.class_sizes(name) or (file.is_file() and spec and not spec["sha256"]["train"]):
            assert spec is not None  # the sizes of a toy's classes are known
            if file.is_file():
                provenance.verified_record({"path": str(file), "sha256": provenance.sha256(file)})
                source = file, data_of(name, file)
            elif "features" in spec:
                raise Refusal(f"{file}: features are made by the pipeline; snakemake {file} --cores")
            else:
                file = Path(temporary, f"{name}.npz")
                before = getattr(options, "started_in", Path.cwd())
                data_folder = home.folder_for_downloads(before, settings["data_folder"])
                built = build(
                    name,
                    permitted(facts.settings, spec),
                    data_folder=user_files.data_folder(spec, data_folder),
                    downloads=home.folder_for_downloads(before, settings["downloads"]),
                    out=file,
                    **substitutes(facts.settings, name),
                )
                source = file, (name, ITEM_ORDER, built["sha256"]["train"])
        for seed in seeds:
            write(facts, name, order, seed, folder / f"seed{seed}.npz", source)
    _, items, checksum = load(folder / f"seed{seeds[0]}.npz").data
    print(f"{folder}: {len(seeds)} streams, {name} {items}, checksum {checksum or 'none, a toy'}")


def cell(options: argparse.Namespace) -> None:
    """Print every value of a cell with its file and line, and with its layer or the reason of a derived value."""
    from clpapers.config.origins import origins

    scale = _settings(options)["scale"]
    if "/" in options.hash:
        (target,) = Plan.load(scale, all_papers()).named_targets([options.hash])
        print("\n".join(f"{c.hash}  {' '.join(f'{k}={v}' for k, v in factors.items())}" for factors, c in target.cells))
        return
    values = origins(scale, options.hash)
    rows = [(key, value if isinstance(value, str) else json.dumps(value), *rest) for key, value, *rest in values]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    print("\n".join("  ".join([*map(str.ljust, row, widths), row[3]]) for row in rows))


def audit(options: argparse.Namespace) -> int:
    """Print the faults of a scale's files; 1 where anything fails."""
    from clpapers.audit import audit

    scale = options.scale or check_settings(read_yaml(CONFIG / "config.yaml"))["scale"]
    findings, checked = audit.audit(audit.fitting(scale), options.names, strict=options.strict)
    if not checked and not findings:
        raise Refusal(f"results/{scale}: nothing is built; snakemake all --cores --config scale={scale}")
    print((audit.as_json if options.json else audit.text)(findings, checked))
    return int(any(severity == audit.FAILURE for severity, *_ in findings))


def _settings(options: argparse.Namespace, *more: str) -> dict:
    """The settings of config.yaml, overridden by the given options `scale`, `papers` and `more`."""
    values = {key: getattr(options, key, None) for key in ("scale", "papers", *more)}
    given = {key: value for key, value in values.items() if value is not None and value != []}
    return check_settings(given, keep=options.command not in ("next", "cell"), where=options.command)


def _configured(options: argparse.Namespace) -> Plan:
    """The plan of config.yaml, or of the requested scale and papers."""
    settings = _settings(options)
    return Plan.load(settings["scale"], settings["papers"], cuda=resolve_device(settings["device"]) == "cuda")


def summary(options: argparse.Namespace) -> None:
    """Print one page on the built targets."""
    from clpapers.archive.imported import imported
    from clpapers.builds import preparation
    from clpapers.report.summary import summary_of

    settings, plan, decided = _settings(options), _configured(options), ""
    one_hour = {"hours": 1.0, "published": bool(imported(plan.scale))}  # a build without published runs has none
    with contextlib.suppress(ConfigError, provenance.ProvenanceError):  # the built targets are reported anyway
        every = Plan.load(plan.scale, all_papers(), cuda=plan.cuda)
        decided = preparation.prepare(every, settings | one_hour, ["-n"])[1].decided
    print(summary_of(plan, list(plan.titles), decided))


def upcoming(options: argparse.Namespace) -> None:
    """Print the runs that a build would train within some core-hours, in its order, and what each step decides."""
    from collections import Counter

    from clpapers.budget import priority
    from clpapers.budget.costs import duration
    from clpapers.builds import preparation
    from clpapers.graph import user_methods

    targets = [name for name in options.names if "/" in name and not name.endswith(".yaml")]
    options.papers = [name for name in options.names if name not in targets]
    if options.hours is None:
        options.hours = "all" if targets and not options.papers else 1.0
    if options.hours == "all":
        options.hours = ALL_HOURS
    settings = _settings(options, "hours", "methods")
    cuda, scale = resolve_device(settings["device"]) == "cuda", settings["scale"]
    plan = Plan.load(scale, all_papers(), cuda=cuda, methods=user_methods.take_in(scale, settings.get("methods", ())))
    files = [str(path) for target in (plan.named_targets(targets) if targets else ()) for path in target.outputs]
    _, budget, data = preparation.prepare(plan, settings, ["-n", *files, *(["all"] if options.papers else [])])
    print(
        f"{'takes':>7}  {'so far':>7}  {'paper':10}  runs → what they would decide"
        if budget.steps
        else "no step fits"
        if budget.too_dear
        else "no step is left"
    )
    total, others = 0.0, dict[str, list[priority.Step]]()
    for step in budget.steps:
        if step.decides[0].kind == priority.OTHER:
            others.setdefault(step.decides[0].name, []).append(step)
            continue
        total += step.seconds
        cells = Counter(cell for cell, _ in step.runs)
        runs = ", ".join(
            f"{each.spec['dataset']}/{each.slug}/{each.folder.name}{f' ×{n}' if n > 1 else ''}"
            for each, n in ((plan.cells[key], n) for key, n in cells.items())
        )
        names = [q.name.replace(f"{q.paper}: ", "claim ") for q in step.decides if q.kind != priority.SHOWN]
        more = f", and {len(names) - NAMED} more" if len(names) > NAMED else ""
        shown = dict.fromkeys(q.name.partition(":")[0] for q in step.decides)  # by further seeds
        decided = f" → {'; '.join(names[:NAMED])}{more}" if names else f" → more of {', '.join(shown)}"
        print(f"{duration(step.seconds):>7}  {duration(total):>7}  {step.paper:10}  {runs}{decided}")
    for name, steps in others.items():
        took = sum(step.seconds for step in steps)
        total += took
        print(
            f"{duration(took):>7}  {duration(total):>7}  {steps[0].paper:10}  {len(steps)} other runs → more of {name}"
        )
    print("\n".join(["", *preparation.announcement(budget, data)]))
    result = f"would decide {budget.decided or 'nothing'} more"
    if plan.methods:  # no paper prints numbers of them
        result = f"{sum(len(step.runs) for step in budget.steps)} runs for methods from outside"
    print(f"{result}, predicted {duration(3600 * budget.hours)} of one {budget.processor}")


def targets(options: argparse.Namespace) -> None:
    """Print a Markdown table of all targets."""
    from clpapers.archive.imported import import_published, imported
    from clpapers.budget import costs, priority

    plan, published = _configured(options), _settings(options).get("published", True)
    if published:
        import_published(plan.scale)
    there = priority.files_of_seeds(plan, priority.finished(plan), imported(plan.scale, published=published))
    print(costs.table(plan, left=priority.left(plan, there)))


def rehearse(options: argparse.Namespace) -> None:
    """Measure the costs of the kinds of cells of targets; with methods from outside, only of these."""
    from clpapers.budget import priority, rehearsals
    from clpapers.graph import user_methods

    if not 0 < options.seconds < 1e6:
        raise Refusal(f"--seconds {options.seconds}: give seconds above 0")
    plan = _configured(options)
    if options.methods or options.names:
        plan = Plan.load(plan.scale, all_papers(), methods=user_methods.take_in(plan.scale, options.methods or ()))
    hashes = [name for name in options.names if name in plan.cells]
    names = [name for name in options.names if name not in plan.cells]
    chosen = plan.named_targets(names) if names or not hashes else []
    relevant = priority.relevant(plan, chosen).values()
    of_targets = [cell for cell in relevant if "selection" not in cell.spec]  # its search's points are of its kind
    cells = [plan.cells[key] for key in hashes] + [c for c in of_targets if c.method or not options.methods]
    out = options.out or Path("results") / plan.scale / "costs.csv"
    rehearsals.rehearse(plan, list({cell.hash: cell for cell in cells}.values()), out, options.seconds)
    print(out)


def export(options: argparse.Namespace) -> int:
    """Write a research object, or audit one; 1 where it has faults."""
    from clpapers.archive import check, crate

    if options.check:
        faults, fingerprint = check.check(options.check)
        print("\n".join([f"{file}: {reason}" for file, reason in faults] or [f"{options.check}: as recorded"]))
        print(f"manifest SHA-256 {fingerprint}")
        return int(bool(faults))
    plan = _configured(options)
    if options.names:
        plan = Plan.load(plan.scale, all_papers(), cuda=plan.cuda)
    fingerprint, missing = crate.export(plan, options.names, options.out, options.agent)
    print(f"{options.out}: manifest SHA-256 {fingerprint}")
    if missing:
        print(f"not built, so not in it: {', '.join(missing)}")
    return 0


def try_out(options: argparse.Namespace) -> None:
    """Try a method's file: print its tables, a line for each contract that it keeps, and its cost."""
    from clpapers import home
    from clpapers.budget.rehearsals import beside_baseline, price
    from clpapers.graph import user_methods
    from clpapers.runs import contract_check

    file, scale = options.file, _settings(options)["scale"]
    user_methods.check(file)
    paper = user_methods.paper_of(file)
    plan = None if paper else Plan(scale, all_papers(), methods=[str(file)])
    for line in user_methods.placement(plan, file.stem) if plan else [f"a method of {paper}"]:
        print(f"{file}: {line}", flush=True)
    for contract in contract_check.contracts(file):
        print(contract, flush=True)
    if plan is None or options.contracts:
        return
    for cost in price(plan, file.stem):
        print(f"{file}: {cost}", flush=True)
    if home.root() == home.CARRIED or not (found := beside_baseline(plan, file.stem)):
        return
    _, target, _ = found
    methods = shlex.quote(f"methods=[{file.absolute()}]")
    print(f"next, in {home.root()}: the runs that two hours would train; then these runs, and the page of the method:")
    print(f"clpapers next {target.paper} --methods {shlex.quote(str(file.absolute()))} --hours 2")
    print(f"snakemake all report --cores --config {methods} papers={target.paper} hours=2")


def pack(options: argparse.Namespace) -> None:
    """Write a bundle: the runs of papers and targets in the order of `next`, and the runs of named cells."""
    from clpapers.archive.imported import import_published, imported
    from clpapers.budget import card_costs, costs, priority
    from clpapers.builds import preparation
    from clpapers.bundle.pack import pack
    from clpapers.graph.maker import Maker, process

    every = options.hours in (None, "all") or options.hours >= ALL_HOURS
    settings = _settings(options, "hours", "data_folder") | ({"hours": ALL_HOURS} if every else {})
    plan = Plan.load(settings["scale"], all_papers(), cuda=options.card)
    if with_published := settings.get("published", True):
        import_published(plan.scale)
    others = imported(plan.scale, published=with_published)
    present = priority.files_of_seeds(plan, priority.finished(plan), others)
    finished = {(cell, seed) for cell, files in present.items() for seeds in files.values() for seed in seeds}
    requested: dict[tuple[str, int], None] = {}
    for name, _, seeds in (each.partition(":") for each in options.names or settings["papers"]):
        chosen_seeds = seeds_of(seeds, f"pack: {name}") if seeds else range(MOST)
        cells, runs = [name] if name in plan.cells else [], []
        if not cells:
            targets = plan.named_targets([name])
            files = [str(path) for target in targets for path in target.outputs]
            _, budget, _ = preparation.prepare(plan, settings, ["-n", *files])
            runs = [run for step in budget.steps for run in step.runs]
            cells = list(priority.relevant(plan, targets)) if every else []
        runs += [(cell, seed) for cell in cells for seed in plan.seeds_of(plan.cells[cell])]
        requested |= dict.fromkeys(run for run in runs if run[1] in chosen_seeds)
    pending = [run for run in requested if run not in finished]
    data = preparation.Data(
        plan, Path(settings["data_folder"]), Path(settings["downloads"]), settings.get("fetch") or ()
    )
    required = list(dict.fromkeys(name for key, _ in pending for name in plan.data_of(plan.cells[key])))
    data.note_absent(required)
    data.get(required)
    for name, remedy in sorted(data.absent.items()):
        print(preparation.left_out(name, remedy))
    pending = [run for run in pending if data.absent.keys().isdisjoint(plan.data_of(plan.cells[run[0]]))]
    seconds = costs.predict(plan, costs.rehearsed(plan.scale), {key for key, _ in pending})
    here = (
        plan if not options.card else Plan(plan.scale, all_papers(), cuda=resolve_device(settings["device"]) == "cuda")
    )
    maker = Maker(here, process, settings=settings)
    of_card = {
        key: card_costs.seconds(plan, plan.cells[key], took)
        for key, took in seconds.items()
        if took and key in plan.cells
    }
    print(pack(plan, pending, options.out, make=maker.make, seconds=seconds, of_card=of_card, stack=options.stack))


def publish(options: argparse.Namespace) -> None:
    """Publish the finished runs of papers."""
    from clpapers.audit.audit import fitting
    from clpapers.graph import user_methods
    from clpapers.report.publish import publish

    plan = fitting(options.scale, user_methods.take_in(options.scale, options.methods))
    for name in options.names:
        one_of("publish: PAPER", name, project_papers())  # one from outside is packed by `export`
    papers = options.names or project_papers()
    print("\n".join(publish(plan, papers, replace=options.replace, without=options.without)))


def reproduction(options: argparse.Namespace) -> None:
    """Write what git has of the published runs, and the site where it is asked for."""
    from clpapers.cli import job_context, main
    from clpapers.report.reproduction import write

    job_context.CACHE = {}  # no file of the configuration changes meanwhile
    try:
        print("\n".join(map(str, write(main, options.site).files)))
    except ValueError as error:
        raise Refusal(str(error)) from None


def import_runs(options: argparse.Namespace) -> None:
    """Import the runs of crates."""
    from clpapers.archive.imported import import_crate

    for path in options.crates:
        print("\n".join(import_crate(path) or [f"{path}: imported before, nothing new"]))


def verify(options: argparse.Namespace) -> int:
    """Train a sample of runs again, or the first steps of runs; 1 where one differs."""
    from clpapers.builds.verify import DIFFERS, Outcome, verify

    if options.steps is not None:
        return _verify_steps(options)
    sample = options.hours, options.draw, options.within
    outcomes = []
    for outcome in verify(_settings(options, "data_folder"), options.crates, *sample, of_each=options.of_each):
        print(outcome, flush=True)
        outcomes.append(outcome)
    if options.out:
        with provenance.write_atomically(options.out) as temporary, temporary.open("w", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([Outcome._fields, *outcomes])
    return int(any(outcome.verdict == DIFFERS for outcome in outcomes))


def _verify_steps(options: argparse.Namespace) -> int:
    from clpapers.archive import beginnings
    from clpapers.builds.steps import verify_steps

    known = beginnings.read(options.out) if options.out else []
    settings, found = _settings(options, "data_folder"), {each.run: each for each in known}
    for beginning in verify_steps(settings, options.crates, options.steps, known, every_file=options.each):
        if beginning not in known:
            print(beginning, flush=True)
        found[beginning.run] = beginning
        if options.out:
            beginnings.write(options.out, found.values())
    counts = Counter(each.verdict for each in found.values())
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    return int(beginnings.OTHERWISE in counts)


def new(options: argparse.Namespace) -> None:
    """Write a file to start from."""
    from clpapers.cli.new import write
    from clpapers.graph import user_methods

    if options.kind == "method":
        user_methods.label_of(Path(f"{options.name}.py"))
    written = write(options.kind, options.name, options.folder)
    print(f"{', '.join(map(str, written))}: to build with it, --config '{options.kind}s=[{written[0].absolute()}]'")
    if options.kind == "method":
        started_in = getattr(options, "started_in", Path.cwd())
        file = written[0].relative_to(started_in) if written[0].is_relative_to(started_in) else written[0]
        print(f"next, to try it: clpapers try {shlex.quote(str(file))}")


def doctor(options: argparse.Namespace) -> int:
    """Print the findings on whether a build would succeed here; 1 where it would not."""
    from clpapers.builds.doctor import report

    settings = _settings(options)
    folders = Path(settings["data_folder"]), Path(settings["downloads"])
    text, fit = report(_configured(options), *folders, settings.get("fetch") or ())
    print(text)
    return 0 if fit else 1
