"""The command line: `clpapers <stage> --out FILE` makes one file of the pipeline, exactly as its rule does.

The path says what is to be made; `config/` says how. Modules are imported by the command that needs them.
"""

from __future__ import annotations

import argparse
import csv
import errno
import functools
import importlib
import io
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from clpapers import jobs, provenance
from clpapers.cards import resolve_device
from clpapers.claims import FILE as CLAIMS
from clpapers.config import (
    CONFIG,
    ConfigError,
    Plan,
    Target,
    all_papers,
    block_seeds,
    check_settings,
    dataset_path,
    fill,
    read_yaml,
)
from clpapers.jobs import (
    SCORECARD_CODE,
    claimed_targets,
    claims_of,
    features_of,
    notes,
    report_code,
    selection_of,
)
from clpapers.metrics.inputs import inputs_of


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 on success, 1 where an audit fails, 2 where config or data do, with one line on stderr."""
    for stream in (each for each in (sys.stdout, sys.stderr) if isinstance(each, io.TextIOWrapper)):
        stream.reconfigure(errors="backslashreplace")  # a terminal may have no ‘, and a file's name any byte
    options = _parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except (ConfigError, provenance.ProvenanceError, Refusal) as error:
        lines = map(provenance.escaped, str(error).split("\n  "))  # of a data set, a line a source
        print("clpapers: " + "\n  ".join(lines), file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a missing file, a folder without permission
        place = error.filename or getattr(options, "out", None) or options.command
        fault = f"{error.strerror or error}; {REMEDIES.get(error.errno, 'mend that')} and give the same command again"
        print(f"clpapers: {provenance.escaped(place)}: {fault}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        of_torch = "can't allocate memory" in str(error)  # which has no type for that
        if isinstance(error, RecursionError):
            print(f"clpapers: {options.command}: what it reads nests, or descends, too deep", file=sys.stderr)
            return 2
        if not isinstance(error, MemoryError) and not of_torch:
            raise
        print(f"clpapers: {getattr(options, 'out', options.command)}: {SHORT_OF_MEMORY}", file=sys.stderr)
        return 2


REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f)",
    errno.EROFS: "make it writable",
    errno.EACCES: "make it readable and writable",
    errno.EPERM: "make it readable and writable",
    errno.ENOENT: "let Snakemake make it",
    errno.ENOMEM: "run fewer jobs at once",
}
SHORT_OF_MEMORY = (
    "memory did not suffice; run fewer jobs at once (snakemake --cores 1), or on a machine with more, "
    "and give the same command again"
)


class Refusal(Exception):
    """What a person must be told in one line."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="clpapers", description="make one file of the pipeline, exactly as its rule does"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, function, text: str, *, out: str | None = None) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=function)
        if out:
            sub.add_argument("--out", required=True, type=Path, metavar=out, help="the file to make")
        return sub

    sub = command("dataset", dataset, "fetch, verify and decode a data set", out="results/S/datasets/D.npz")
    sub.add_argument("--data-folder", type=Path, default="data", help="your own copies, <folder>/<dataset>/…")
    sub.add_argument("--downloads", type=Path, default="downloads", help="where fetched files are kept")
    sub = command("weights", weights, "fetch and verify pre-trained weights", out="results/S/weights/W.npz")
    sub.add_argument("--data-folder", type=Path, default="data", help="your own copy, <folder>/weights/…")
    sub.add_argument("--downloads", type=Path, default="downloads", help="where fetched files are kept")
    sub = command("features", features, "make features of a data set's images", out="results/S/datasets/D.npz")
    sub.add_argument("--gpus", type=int, choices=(0, 1), default=0, help="1: on a GPU, 0: on the CPU")
    sub.add_argument("--gpu-mem-mb", type=int, default=0, metavar="MB", help="of its memory; 0: all of it")
    command("stream", stream, "permute a data set into a stream", out="results/S/streams/D/ORDER/seedK.npz")
    command("entropy", entropy, "simulate stf's appendix E", out="results/S/streams/entropy/P-T.npz")
    command("net", net, "describe the net a data set is learnt with", out="results/S/runs/nets/P/D.json")
    sub = command("train", train, "train one cell's seeds", out="results/S/runs/D/ORDER/LEARNER-HASH/seedsA-B.json")
    sub.add_argument("--gpus", type=int, choices=(0, 1), default=0, help="1: train on a GPU, 0: on the CPU")
    sub.add_argument("--gpu-mem-mb", type=int, default=0, metavar="MB", help="of its memory; 0: all of it")
    for name, function, text, out in (
        ("selection", selection, "choose hyper-parameters from a grid", "results/S/selection/P/D-LEARNER.json"),
        ("index", index, "list the cells, their factors and the targets they serve", "results/S/runs/index.csv"),
        ("metrics", metrics, "measure what a target shows", "results/S/metrics/P/T.csv"),
    ):
        sub = command(name, function, text, out=out)
        sub.add_argument("--gpus", type=int, choices=(0, 1), default=0, help="where it was trained: 1: on the GPU")
    command("table", render, "render a table", out="results/S/targets/P/T.csv")
    command("figure", render, "render a figure", out="results/S/targets/P/T.pdf")
    command("reported", reported, "set reproduced beside reported", out="results/S/targets/P/T.reported.csv")
    command("paired", paired, "compare methods on the same streams", out="results/S/targets/P/T.paired.csv")
    command("claims", claims, "test a paper's claims on what was measured", out="results/S/targets/P/claims.csv")
    sub = command("scorecard", scorecard, "count the claims that hold", out="results/S/targets/scorecard.csv")
    sub.add_argument("--papers", nargs="+", required=True, metavar="PAPER", help="whose claims to count")
    sub = command("report", report, "make the report, a folder of static pages", out="results/S/report/index.html")
    sub.add_argument("--papers", nargs="+", metavar="P", help="on which papers; those of config.yaml by default")
    sub.add_argument("--gpus", type=int, choices=(0, 1), default=0, help="where it was trained: 1: on the GPU")
    sub = command("lineage", lineage, "tell the ancestry of a file, or of one number of a table")
    sub.add_argument("file", type=Path)
    sub.add_argument("--cell", metavar="ROW,COLUMN", help='of one number, as the CSV names it; quote a comma: "a, b",c')
    form = sub.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--svg", type=Path, metavar="OUT.svg", help="as a picture")
    sub = command("audit", audit, "hash every file anew: what was edited, is stale, foreign or without a record")
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET]", help="these and what is behind them; default: all")
    sub.add_argument("--scale", default=None)
    sub.add_argument("--strict", action="store_true", help="fail on warnings too")
    sub.add_argument("--json", action="store_true", help="as JSON")
    for name, function, text in (
        ("summary", summary, "one page: what was built, where to look"),
        ("targets", targets, "every target: its command, its runs, its cost"),
        ("desiderata", desiderata, "every target: which of Farquhar and Gal's desiderata its runs meet"),
    ):
        sub = command(name, function, text)
        sub.add_argument("--scale", default=None)
        sub.add_argument("--papers", nargs="+", metavar="P", help="of which papers; those of config.yaml by default")
    sub = command("export", export, "pack what was built, and all it came from, into a research object; or check one")
    where = sub.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="FILE.zip|FOLDER", help="the crate to write")
    where.add_argument("--check", type=Path, metavar="FILE.zip|FOLDER", help="a crate to audit, wherever it is")
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET]", help="what to pack; all that is built if left out")
    sub.add_argument("--scale", default=None)
    sub.add_argument(
        "--agent", default=None, metavar="NAME", help="who ran it; the authors in CITATION.cff if left out"
    )
    sub = command("doctor", doctor, "say what stands in the way of a build, and the remedy")
    sub.add_argument("--scale", default=None)
    sub = command("bench", bench, "measure this machine: learners, stacking, overheads, streams, dry runs")
    sub.add_argument("--quick", action="store_true", help="fewer repetitions")
    return parser


# --- what a path says ----------------------------------------------------------------------------------------


def _plan(path: Path, *, cuda: bool = False) -> Plan:
    """The plan of the scale a path lies in, over all papers there are, as the Snakefile makes it."""
    parts = path.parts
    if len(parts) < 3 or parts[0] != "results":
        raise Refusal(f"{path}: not a path of the pipeline; it begins with results/<scale>/<stage>/")
    return Plan(parts[1], all_papers(), cuda=cuda)


def _target(path: Path, *, cuda: bool = False) -> tuple[Plan, Target]:
    plan = _plan(path, cuda=cuda)
    name = f"{path.parts[3]}/{path.name.split('.')[0]}" if len(path.parts) > 4 else str(path)
    if name not in plan.targets:
        raise Refusal(f"{path}: no target {name}; there are: {', '.join(plan.targets)}")
    return plan, plan.targets[name]


def _recording(plan: Plan, path: Path, **facts):
    """The record of the job that makes `path`, with further facts."""
    job = jobs.of(plan, path)
    if job is None:
        raise Refusal(f"{path}: no job of config/ makes it")
    return provenance.recording(job.stage, job.outputs, job.inputs, job.code, settings=job.settings, **facts)


# --- the stages ----------------------------------------------------------------------------------------------


def dataset(options: argparse.Namespace) -> None:
    """results/<scale>/datasets/<dataset>.npz"""
    from clpapers.datasets.build import build

    plan = _plan(options.out)
    fetched = {name: facts for name, facts in plan.datasets.items() if "features" not in facts}
    small = None if plan.settings["sources"] == "real" else plan.settings.get("stand_ins", {}).get(options.out.stem)
    partial = plan.settings.get("partial_data", False)
    _fetch(options, plan, "data set", fetched, build, standin=small, allow_partial=partial)


def weights(options: argparse.Namespace) -> None:
    """results/<scale>/weights/<weights>.npz"""
    from clpapers.datasets.weights import build

    plan = _plan(options.out)
    _fetch(options, plan, "weights", plan.weights, build, standin=plan.settings["sources"] != "real")


def _fetch(
    options: argparse.Namespace, plan: Plan, kind: str, known: dict, build: Callable[..., dict], **more: object
) -> None:
    """Have what is `known` by its name built, from those of its sources that the scale allows."""
    from clpapers.datasets.build import DatasetError

    name, allowed = options.out.stem, plan.settings["sources"]
    if name not in known:
        raise Refusal(f"{options.out}: no {kind} {name!r}; there are: {', '.join(known)}")
    spec = dict(known[name])
    if allowed == "stand_in":
        spec["sources"] = [source for source in spec["sources"] if source["kind"] == "standin"]
    with _recording(plan, options.out, sources=allowed) as record:
        try:
            facts = build(
                name,
                spec,
                data_folder=options.data_folder,
                downloads=options.downloads,
                out=options.out,
                **more,
            )
        except DatasetError as error:
            raise Refusal(str(error)) from None
        record["data"] = {name: facts}


def features(options: argparse.Namespace) -> None:
    """results/<scale>/datasets/<dataset>.npz, where it is made of another's"""
    import torch

    from clpapers.datasets.features import build

    plan, name = _plan(options.out), options.out.stem
    derived = [each for each, facts in plan.datasets.items() if "features" in facts]
    if name not in derived:
        raise Refusal(f"{options.out}: no data set of features {name!r}; there are: {', '.join(derived)}")
    spec, (device, share) = plan.datasets[name], _device(options)
    facts = {"features": spec["features"], "hardware": _hardware(device)}
    with _recording(plan, options.out, **facts):
        try:
            build(spec, *features_of(plan, name), device, options.out)
        except torch.OutOfMemoryError:
            raise Refusal(_too_little(options, share)) from None


def stream(options: argparse.Namespace) -> None:
    """results/<scale>/streams/<dataset>/<order>/seed<k>.npz"""
    import numpy as np

    from clpapers.datasets.arrays import instances, labels
    from clpapers.streams import orders
    from clpapers.streams.stream import save

    plan, seed = _plan(options.out), block_seeds(options.out.stem)[0]
    name, slug = options.out.parts[-3:-1]
    if (name, slug) not in plan.orders:
        raise Refusal(f"{options.out}: no target needs the order {slug} of {name}")
    order = plan.orders[name, slug]
    with _recording(plan, options.out, dataset=name, order=order, seed=seed):
        if name.startswith("toy-"):
            y = np.repeat(np.arange(name.count("-")), [int(size) for size in name.split("-")[1:]])
            pixels, recorded = 0, None
        else:
            file = dataset_path(plan.scale, name)
            y, recorded = labels(file, "train"), instances(file)
            pixels = math.prod(plan.datasets[name]["shape"])
        try:
            save(orders.make(order, y, seed, pixels, recorded), options.out)
        except ValueError as error:
            raise Refusal(f"{options.out}: {error}") from None


def entropy(options: argparse.Namespace) -> None:
    """results/<scale>/streams/entropy/<paper>-<target>.npz: `ratios` float64 [simulations]."""
    import numpy as np

    from clpapers.streams.entropy import entropy_captured

    plan, name = _plan(options.out), options.out.stem.replace("-", "/", 1)
    if name not in plan.targets or "simulations" not in plan.targets[name].spec:
        raise Refusal(f"{options.out}: no target {name} of simulations")
    simulations = plan.targets[name].spec["simulations"]
    with (
        _recording(plan, options.out, simulations=simulations, seed=0),
        provenance.write_atomically(options.out) as temporary,
    ):
        np.savez(temporary, ratios=entropy_captured(simulations, 0))


def net(options: argparse.Namespace) -> None:
    """results/<scale>/runs/nets/<paper>/<dataset>.json or <dataset>-<learner>.json"""
    from clpapers.runs.nets import describe

    plan, name = _plan(options.out), options.out.stem
    key = f"{options.out.parent.name}/{name}"
    if key not in plan.nets:
        raise Refusal(f"{options.out}: no net {key}; there are: {', '.join(plan.nets)}")
    spec, facts = plan.nets[key], plan.datasets[name.partition("-")[0]]
    h, w, c = facts["shape"]
    with _recording(plan, options.out, dataset=name, net=spec):
        described = describe(spec, (c, h, w), plan.outputs[key], facts.get("attributes"))
        provenance.write_text(options.out, json.dumps(described, indent=1, ensure_ascii=False) + "\n")


def train(options: argparse.Namespace) -> None:
    """results/<scale>/runs/<dataset>/<order>/<learner>-<hash>/seed<k>.json or seeds<a>-<b>.json"""
    import torch

    from clpapers.datasets import arrays
    from clpapers.runs import loop
    from clpapers.runs.checkpoint import Checkpoint
    from clpapers.runs.course import CourseError
    from clpapers.streams.stream import load

    plan, seeds = _plan(options.out), block_seeds(options.out.stem)
    key = options.out.parent.name.rpartition("-")[2]
    if key not in plan.cells:
        raise Refusal(f"{options.out}: no target needs a cell {key}; results/{plan.scale}/runs/index.csv lists them")
    cell = plan.cells[key]
    chosen = selection_of(plan, cell)
    device, share = _device(options)
    streams = {seed: cell.stream(seed) for seed in seeds}
    with _recording(
        plan,
        options.out,
        cell=cell.spec,
        seeds=list(seeds),
        precision=cell.spec["precision"],
        hardware=_hardware(device),
    ) as record:
        train_split, test_split = (arrays.load(cell.dataset, split) for split in ("train", "test"))
        classes = len(plan.datasets[cell.spec["dataset"]]["classes"])
        known = arrays.attributes(cell.dataset)
        start = arrays.by_name(cell.weights) if cell.weights else None
        data = loop.Data(train_split.x, train_split.y, test_split.x, test_split.y, classes, known, start)
        loaded = {seed: load(path, len(data.train_y)) for seed, path in streams.items()}
        spec = cell.spec
        for file in chosen:
            found = json.loads(file.read_text(encoding="utf-8"))
            if found.get("search") != cell.spec["selection"]:
                raise Refusal(
                    f"{file}: is of another search than config/ describes; delete it and let Snakemake make it"
                )
            spec = record["cell"] = fill(spec, found["selected"])
        checkpoint = Checkpoint(options.out, _identity(record))
        if not options.gpus:  # what did not fit now may: that depends on what else was running
            fitted = {s: done for s, done in checkpoint.finished.items() if done is not None or len(s) > 1}
            checkpoint.finished = fitted
        record |= {"training_seconds": {}, "resumed": checkpoint.resumed, "earlier": checkpoint.earlier}
        try:
            results = loop.train(spec, data, loaded, device, record["training_seconds"], checkpoint)
        except CourseError as error:
            raise Refusal(f"{options.out}: {error}") from None
        if any("out_of_memory" in result for result in results):  # a result only of a GPU that was all the job's own
            if not options.gpus:
                raise Refusal(f"{options.out}: {SHORT_OF_MEMORY}")
            if share and not share.whole:
                checkpoint.remove()  # which would say so again
                raise Refusal(_too_little(options, share))
        text = json.dumps({"cell": spec, "seeds": results}, separators=(",", ":"))
        provenance.write_text(options.out, text + "\n")
        record["peak_device_bytes"] = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    checkpoint.remove()


def _identity(record: dict) -> dict:
    """What a run's bits depend on: two runs may share a checkpoint if they are equal in it."""
    import numpy as np
    import torch

    return {
        "code": record["code"],
        "cell": record["cell"],
        "seeds": record["seeds"],
        "inputs": {entry["path"]: entry["sha256"] for entry in record["inputs"]},
        "device": record["hardware"]["device"],
        "processor": provenance.hardware()["processor"],
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
    }


def _device(options: argparse.Namespace):
    """The device to compute on, and the share that this process has of a GPU's memory, if of one that is known."""
    import torch

    from clpapers import cards

    if not options.gpus:
        return torch.device("cpu"), None
    if options.gpu_mem_mb < 0:
        raise Refusal(f"--gpu-mem-mb {options.gpu_mem_mb}: give megabytes, or 0 for all of a card")
    share = cards.take(options.gpu_mem_mb)
    if not torch.cuda.is_available():
        raise Refusal("--gpus 1: PyTorch sees no GPU here; set device: cpu in config/config.yaml")
    if share and share.fraction < 1:
        torch.cuda.set_per_process_memory_fraction(share.fraction)  # so that it is this job that runs out of it
    return torch.device("cuda"), share


def _too_little(options: argparse.Namespace, share) -> str:
    """That a GPU's memory ran out, and the remedy."""
    if share is None or share.memory == share.card.memory:
        free = "" if share is None else f" ({share.card.free} of {share.card.memory} MB were free)"
        return f"{options.out}: the GPU's memory ran out{free}; end what else uses it, or take another"
    more = min(4 * share.memory, share.card.memory)
    return (
        f"{options.out}: {share.memory} MB of the GPU's {share.card.memory} MB did not suffice; a retry asks for more, "
        f"and so does --set-resources {options.command}:gpu_mem_mb={more}"
    )


def _hardware(device) -> dict:
    import torch

    return {"device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"}


def selection(options: argparse.Namespace) -> None:
    """results/<scale>/selection/<paper>/<dataset>-<learner>.json"""
    from clpapers.metrics.selection import choose

    plan = _plan(options.out, cuda=bool(options.gpus))
    search = plan.selections.get(f"{options.out.parent.name}/{options.out.stem}")
    if search is None or search.file != options.out:
        raise Refusal(f"{options.out}: no such selection; there are: {', '.join(plan.selections) or 'none'}")
    with _recording(plan, options.out, selection=search.spec):
        runs = {}
        for _, cell in search.points:
            entries = [
                run for path in plan.results(cell, search.seeds) for run in json.loads(path.read_text())["seeds"]
            ]
            runs[cell.hash] = [run for run in entries if run["seed"] in search.seeds]
        chosen = choose(search.spec, search.published, [values for values, _ in search.points], runs)
        provenance.write_text(options.out, json.dumps(chosen, indent=1, ensure_ascii=False) + "\n")


def index(options: argparse.Namespace) -> None:
    """results/<scale>/runs/index.csv: cell, path, seeds, targets, and every factor of the cell in a column."""
    import pandas as pd

    plan = _plan(options.out, cuda=bool(options.gpus))
    rows = []
    for cell in plan.cells.values():
        uses = [name for name, target in plan.targets.items() if any(c.hash == cell.hash for _, c in target.cells)]
        uses += [search.name for search in plan.selections.values() if cell.hash in search.spec["points"]]
        seeds = " ".join(path.stem for path in plan.results(cell))
        factors = {f"{part}.{key}" if key else part: value for part, key, value in _flat(cell.spec)}
        rows.append(
            {
                "cell": cell.hash,
                "path": str(cell.folder),
                "seeds": seeds,
                "targets": " ".join(uses),
                **factors,
            }
        )
    with _recording(plan, options.out):
        provenance.write_text(options.out, pd.DataFrame(rows).to_csv(index=False, lineterminator="\n"))


def _flat(spec: dict):
    for part, value in spec.items():
        if isinstance(value, dict):
            yield from ((part, key, inner) for key, inner in value.items())
        else:
            yield part, "", value


def metrics(options: argparse.Namespace) -> None:
    """results/<scale>/metrics/<paper>/<target>.csv"""
    plan, target = _target(options.out, cuda=bool(options.gpus))
    measure = importlib.import_module(f"clpapers.metrics.{target.spec['measure']}").measure
    inputs = inputs_of(plan, target)[1]
    with _recording(plan, options.out, target=target.spec, seeds=list(target.seeds)):
        try:
            frame = measure(target.spec, inputs())
        except ValueError as error:
            raise Refusal(f"{options.out}: {error}") from None
        provenance.write_text(options.out, frame.to_csv(index=False, lineterminator="\n"))


# --- targets -------------------------------------------------------------------------------------------------


def render(options: argparse.Namespace) -> None:
    """results/<scale>/targets/<paper>/<target>.{csv,md,tex,html} or .{pdf,svg,png}"""
    import pandas as pd

    plan, target = _target(options.out)
    draw = importlib.import_module(f"clpapers.targets.{target.spec['render']}").render
    with _recording(plan, options.out, target=target.spec):
        frame, said = pd.read_csv(target.metrics), notes(plan, target)
        drawn = draw(target.spec, frame, said, *_printed(target))
        if target.spec["kind"] == "figure":
            from clpapers.targets.figure import write_figure

            write_figure(drawn, target.stem)
        else:
            from clpapers.targets.formats import write_table

            write_table(_compared(target, drawn, frame, said), target.stem)


def _printed(target: Target) -> list:
    """What a renderer that sets the paper's own lines into its table needs besides."""
    from clpapers.targets import comparison

    if target.spec["render"] != "cost_table":
        return []
    if not target.reported:
        raise Refusal(
            f"config/reported/{target.paper}.csv: no lines of {target.name}, which cost_table sets beside its own"
        )
    return [comparison.transcribed(target.reported, target.paper, target.name)]


def _compared(target: Target, table, frame, said):
    """The table with the reported numbers beside its own, where the paper prints any."""
    from clpapers.targets import comparison

    if not target.reported:
        return table
    printed = comparison.read_reported(target.reported, target.paper, target.name)
    return comparison.attach(table, target.spec, comparison.compare(target.spec, frame, printed, said), said)


def reported(options: argparse.Namespace) -> None:
    """results/<scale>/targets/<paper>/<target>.reported.csv"""
    import pandas as pd

    from clpapers.targets import comparison, formats

    plan, target = _target(options.out)
    with _recording(plan, options.out, target=target.spec):
        frame = pd.read_csv(target.metrics)
        printed = comparison.read_reported(target.reported, target.paper, target.name)
        compared = comparison.compare(target.spec, frame, printed, notes(plan, target))
        provenance.write_text(options.out, formats.to_csv(compared))


def paired(options: argparse.Namespace) -> None:
    """results/<scale>/targets/<paper>/<target>.paired.csv"""
    import pandas as pd

    from clpapers.targets import formats
    from clpapers.targets.paired import pairs

    plan, target = _target(options.out)
    with _recording(plan, options.out, target=target.spec):
        provenance.write_text(options.out, formats.to_csv(pairs(target.spec, pd.read_csv(target.metrics))))


def claims(options: argparse.Namespace) -> None:
    """results/<scale>/targets/<paper>/claims.{csv,md,tex,html}"""
    import pandas as pd

    from clpapers.targets.claims_table import render
    from clpapers.targets.formats import write_table
    from clpapers.targets.verdicts import decide

    plan, paper = _plan(options.out), options.out.parent.name
    there = claims_of(plan)
    if paper not in there or options.out.stem != "claims":
        raise Refusal(f"{options.out}: {CLAIMS} has claims of {', '.join(there) or 'no paper'}")
    of_paper = there[paper]
    used = {f"{paper}/{target.name}": target for target in claimed_targets(plan, of_paper)}
    with _recording(plan, options.out, claims={c.name: c.spec for c in of_paper}):
        said = {name: notes(plan, target) for name, target in used.items()}
        frames = {name: pd.read_csv(target.metrics) for name, target in used.items()}
        verdicts = [decide(claim, frames, {name: note.standins for name, note in said.items()}) for claim in of_paper]
        specs = {name: target.spec for name, target in used.items()}
        write_table(render(plan.titles[paper], of_paper, verdicts, specs, said), options.out.with_suffix(""))


def scorecard(options: argparse.Namespace) -> None:
    """results/<scale>/targets/scorecard.{csv,md,tex,html}"""
    import pandas as pd

    from clpapers.targets.claims_table import scorecard
    from clpapers.targets.formats import TABLE_SUFFIXES, write_table

    plan = _plan(options.out)
    for paper in options.papers:
        if paper not in plan.titles:
            raise Refusal(f"--papers: {paper!r} is not one of {', '.join(plan.titles)}")
    inputs = [options.out.parent / paper / "claims.csv" for paper in options.papers]
    outputs = [options.out.with_suffix(suffix) for suffix in TABLE_SUFFIXES]
    code = provenance.code_digest(*SCORECARD_CODE)
    with provenance.recording("targets", outputs, inputs, code, papers=options.papers):
        frames = {paper: pd.read_csv(path) for paper, path in zip(options.papers, inputs)}
        write_table(scorecard(frames, plan.titles, plan.scale), options.out.with_suffix(""))


def report(options: argparse.Namespace) -> None:
    """results/<scale>/report/index.html and the other pages beside it"""
    from clpapers.report import site

    plan = _plan(options.out, cuda=bool(options.gpus))
    if options.out != Path("results", plan.scale, "report", "index.html"):
        raise Refusal(f"{options.out}: the report's first page is results/{plan.scale}/report/index.html")
    papers = options.papers or check_settings(read_yaml(CONFIG / "config.yaml"))["papers"]
    for paper in papers:
        if paper not in plan.titles:
            raise Refusal(f"--papers: {paper!r} is not one of {', '.join(plan.titles)}")
    files, folder = site.inputs(plan, papers), options.out.parent
    for path in files:
        if not path.is_file():
            raise Refusal(f"{path}: no such file, which the report shows; build it with snakemake")
    outputs = site.outputs(plan, papers, folder)
    with provenance.recording("report", outputs, files, report_code(), papers=papers):
        site.write(plan, papers, folder, functools.partial(notes, plan))


# --- for people ----------------------------------------------------------------------------------------------


def lineage(options: argparse.Namespace) -> None:
    """Print or draw a file's ancestry."""
    from clpapers.report import lineage

    if not options.file.is_file():
        raise Refusal(f"{options.file}: no such file; build it with snakemake")
    if options.cell is None:
        node = lineage.tree(options.file)
    else:
        names = next(csv.reader([options.cell]), []) if options.cell.isprintable() else []
        plan, target = _target(options.file)
        if len(names) != 2 or options.file not in target.outputs or options.file.stem != target.name:
            raise Refusal(
                f"{options.file}: --cell {options.cell!r}: give a table, and ROW,COLUMN as its CSV names them"
            )
        node = lineage.of_cell(plan, target, *names)
    if options.svg:
        lineage.picture(node, options.svg, lineage.ONE_BY_ONE if options.cell is None else lineage.OF_A_CELL)
    else:
        lines = map(provenance.escaped, lineage.text(node))
        print(json.dumps(node, indent=1) if options.json else "\n".join(lines))


def audit(options: argparse.Namespace) -> int:
    """Print what is wrong with the files of a scale; 1 where anything fails."""
    from clpapers.report import audit

    scale = options.scale or check_settings(read_yaml(CONFIG / "config.yaml"))["scale"]
    found, checked = audit.audit(audit.fitting(scale), options.names, strict=options.strict)
    if not checked and not found:
        raise Refusal(f"results/{scale}: nothing is built; snakemake all --cores --config scale={scale}")
    print((audit.as_json if options.json else audit.text)(found, checked))
    return int(any(severity == audit.FAILURE for severity, *_ in found))


def _settings(options: argparse.Namespace) -> dict:
    """What config.yaml says, but for the scale and the papers that are asked for."""
    asked = {key: getattr(options, key, None) for key in ("scale", "papers")}
    return check_settings(read_yaml(CONFIG / "config.yaml") | {key: value for key, value in asked.items() if value})


def _configured(options: argparse.Namespace) -> Plan:
    """The plan of config.yaml, or of the scale and the papers that are asked for."""
    settings = _settings(options)
    return Plan(settings["scale"], settings["papers"], cuda=resolve_device(settings["device"]) == "cuda")


def summary(options: argparse.Namespace) -> None:
    """Print one page on what was built."""
    from clpapers.report.summary import page

    print(page(_configured(options)))


def targets(options: argparse.Namespace) -> None:
    """Print a Markdown table of all targets."""
    from clpapers.report.costs import table

    print(table(_configured(options)))


def desiderata(options: argparse.Namespace) -> None:
    """Print a Markdown table of the desiderata that targets meet."""
    from clpapers.report.desiderata import table

    print(table(_configured(options)))


def export(options: argparse.Namespace) -> int:
    """Write a research object, or audit one: 1 where something in it is wrong."""
    from clpapers.report import crate

    try:
        if options.check:
            wrong, fingerprint = crate.check(options.check)
            print("\n".join([f"{file}: {reason}" for file, reason in wrong] or [f"{options.check}: as recorded"]))
            print(f"manifest SHA-256 {fingerprint}")
            return 1 if wrong else 0
        plan = _configured(options)
        if options.names:
            plan = Plan(plan.scale, all_papers(), cuda=plan.cuda)
        fingerprint, missing = crate.export(plan, options.names, options.out, options.agent)
    except crate.CrateError as error:
        raise Refusal(str(error)) from None
    print(f"{options.out}: manifest SHA-256 {fingerprint}")
    if missing:
        print(f"not built, so not in it: {', '.join(missing)}")
    return 0


def doctor(options: argparse.Namespace) -> int:
    """Print what a build would find here: 1 where it would not go through."""
    from clpapers.report.doctor import page

    settings = _settings(options)
    text, fit = page(_configured(options), Path(settings["data_folder"]), Path(settings["downloads"]))
    print(text)
    return 0 if fit else 1


def bench(options: argparse.Namespace) -> None:
    """Run the scripts of benchmarks/ in turn, each in a process of its own."""
    for part in ("learners", "stacking", "jobs", "streams", "dry_run"):
        script = Path("benchmarks", f"bench_{part}.py")
        if not script.is_file():
            raise Refusal(f"{script}: no such file; run `clpapers bench` in the project's folder")
        if subprocess.run([sys.executable, script, *(["--quick"] if options.quick else [])]).returncode:
            raise Refusal(f"{script}: failed, see above")
        print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
