"""The commands with their options, and how one is run. A module is imported by the command that needs it."""

from __future__ import annotations

import argparse
import errno
import functools
import importlib
import importlib.metadata
import io
import os
import signal
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 on success, 1 where an audit fails, 2 where config or data do, with one line on stderr."""
    for stream in (each for each in (sys.stdout, sys.stderr) if isinstance(each, io.TextIOWrapper)):
        stream.reconfigure(errors="backslashreplace")  # a terminal may have no ‘, and a file's name any byte
    try:
        try:
            return _run(options_of(arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """The command with its options; a command of a rule's `makes` a file of the pipeline."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "stream" and (given := [key for key in STREAMS if getattr(options, key) is not None]):
        if missing := [f"--{key}" for key in STREAMS[:3] if key not in given]:
            parser.error(f"stream: {', '.join(f'--{key}' for key in given)}: give {', '.join(missing)} too")
        options.makes, options.scale, options.order = False, options.scale or "paper", options.order or "{}"
    return options


def _run(options: argparse.Namespace) -> int:
    if not Path("config/config.yaml").is_file() and not getattr(options, "check", None):
        from clpapers import home

        if options.makes or options.command not in (ANYWHERE if home.root() == home.CARRIED else (*ANYWHERE, "next")):
            print(f"clpapers: {ROOTLESS}", file=sys.stderr)
            return 2
        given = {key: value.expanduser().absolute() for key, value in vars(options).items() if isinstance(value, Path)}
        if methods := getattr(options, "methods", None):
            given["methods"] = [str(Path(each).expanduser().absolute()) for each in methods]
        vars(options).update(given | {"beside": Path.cwd()})
        return home.at_home(_done)(options)
    return _done(options)


def _done(options: argparse.Namespace) -> int:
    """Do a command in the project's folder."""
    from clpapers.cli.refusal import Refusal
    from clpapers.cli.task import Task
    from clpapers.config.refusals import ConfigError
    from clpapers.provenance import ProvenanceError, escaped

    try:
        if not options.makes:
            people = importlib.import_module("clpapers.cli.people")
            return getattr(people, getattr(options, "does", options.command))(options) or 0
        task = Task(options)
        getattr(importlib.import_module(f"clpapers.cli.{task.job.module}"), options.command)(task)
        return 0
    except (ConfigError, ProvenanceError, Refusal) as error:
        lines = map(escaped, str(error).split("\n  "))  # of a data set, a line a source
        print("clpapers: " + "\n  ".join(lines), file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, a missing file, a folder without permission
        place = error.filename or getattr(options, "out", None) or options.command
        fault = f"{error.strerror or error}; {REMEDIES.get(error.errno, 'mend that')} and give the same command again"
        print(f"clpapers: {escaped(place)}: {fault}", file=sys.stderr)
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


STREAMS = ("paper", "dataset", "seeds", "order", "scale")  # of `stream`, where it writes to a folder of one's own
ANYWHERE = ("new", "try", "stream")  # commands that need no project at hand; `next` needs its runs, a checkout
ROOTLESS = "config/config.yaml: not here; go to the project's folder, where the Snakefile is, and try again"
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


MAKING = (  # commands that make a file below results/<scale>/
    ("dataset", "datasets/D.npz", "fetch, verify and decode a data set"),
    ("weights", "weights/W.npz", "fetch and verify pre-trained weights"),
    ("features", "datasets/D.npz", "make features of a data set's images"),
    ("entropy", "streams/entropy/P-T.npz", "simulate stf's appendix E"),
    ("net", "runs/nets/P/D.json", "describe the net a data set is learnt with"),
    ("gans", "gans/D/ORDER/GAN-HASH/seedK.npz", "train the GANs that runs share"),
    ("train", "runs/D/ORDER/LEARNER-HASH/seedsA-B.json", "train one cell's seeds"),
    ("method", "methods/LABEL-DIGEST.py", "copy the file of a method from outside"),
    ("selection", "selection/P/D-LEARNER.json", "choose hyper-parameters from a grid"),
    ("index", "runs/index.csv", "list the cells, their factors and the targets they serve"),
    ("metrics", "metrics/P/T.csv", "measure what a target shows"),
    ("table", "targets/P/T.csv", "render a table"),
    ("figure", "targets/P/T.pdf", "render a figure"),
    ("reported", "targets/P/T.reported.csv", "set reproduced beside reported"),
    ("paired", "targets/P/T.paired.csv", "compare methods on the same streams"),
    ("claims", "targets/P/claims.csv", "test a paper's claims on what was measured"),
    ("scorecard", "targets/scorecard.csv", "count the claims that hold"),
    ("report", "report/index.html", "make the report, a folder of static pages"),
)


SHARED: dict[str, dict] = {  # arguments of several commands
    "--scale": {"help": "of which scale; that of config.yaml by default"},
    "papers": {"nargs": "*", "metavar": "PAPER", "help": "which papers; those of config.yaml if left out"},
}


@functools.cache
def _parser() -> argparse.ArgumentParser:
    stages = ", ".join(name for name, *_ in MAKING)
    parser = argparse.ArgumentParser(
        prog="clpapers",
        description="tell of what was made, check it and pack it up; make streams of one's own",
        epilog=f"and, each for one file of the pipeline, exactly as its rule makes it: {stages}",
    )
    parser.add_argument("--version", action="version", version=f"clpapers {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, text: str, *shared: str, out: str | None = None) -> argparse.ArgumentParser:
        shown = {} if out else {"help": text}  # a stage's stands in no list
        sub = commands.add_parser(name, description=text, **shown)
        if out:
            sub.add_argument("--out", required=True, type=Path, metavar=f"results/S/{out}", help="the file to make")
        for option in shared:
            sub.add_argument(option, **SHARED[option])
        sub.set_defaults(makes=out is not None)
        return sub

    made = {name: command(name, text, out=out) for name, out, text in MAKING}
    for name, folder in (("dataset", "<dataset>"), ("weights", "weights")):
        made[name].add_argument("--data-folder", type=Path, default="data", help=f"your copies, <folder>/{folder}/…")
        made[name].add_argument("--downloads", type=Path, default="downloads", help="where fetched files are kept")
    for name in ("features", "gans", "train", "selection", "index", "metrics", "report"):
        said = "1: on a GPU, 0: on the CPU; where it was trained, if this trains nothing"
        made[name].add_argument("--gpus", type=int, choices=(0, 1), default=0, help=said)
    for name in ("features", "gans", "train"):
        made[name].add_argument("--gpu-mem-mb", type=int, default=0, metavar="MB", help="of its memory; 0: all of it")
    said = "whether seeds of MLPs are one stack on a CPU; by default as is faster on this machine"
    made["train"].add_argument("--stacking", type=int, choices=(0, 1), help=said)
    for name in ("scorecard", "report"):
        said = "on which papers; a report, on those of config.yaml by default"
        made[name].add_argument("--papers", nargs="+", required=name == "scorecard", metavar="P", help=said)
    made["method"].add_argument("--file", required=True, type=Path, help="the file")
    sub = command("stream", "permute a data set into streams of some seeds, or into the one of a path of the pipeline")
    sub.set_defaults(makes=True)
    said = "where they go, DIR/<dataset>/<order>/seed<k>.npz; or the one file of the pipeline"
    sub.add_argument("--out", required=True, type=Path, metavar="DIR|results/S/streams/D/ORDER/seedK.npz", help=said)
    sub.add_argument("--paper", help="in whose order, with --dataset and --seeds")
    sub.add_argument("--dataset", metavar="D", help="over which of the paper's data sets")
    sub.add_argument("--seeds", metavar="FIRST-LAST", help="a stream each")
    said = "laid over the paper's order, such as '{name: split, tasks: 5}'"
    sub.add_argument("--order", metavar="YAML", help=said)
    sub.add_argument("--scale", help="of which settings; by default the paper's own, paper")
    sub = command("lineage", "tell the ancestry of a paper, a target or a file, or of one number of a table", "--scale")
    sub.add_argument("name", metavar="PAPER[/TARGET]|FILE")
    sub.add_argument("--cell", metavar="ROW,COLUMN", help='of one number, as the CSV names it; quote a comma: "a, b",c')
    form = sub.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--svg", type=Path, metavar="OUT.svg", help="as a picture")
    sub = command("cell", "tell where each value of a cell comes from: the file, the line and the layer", "--scale")
    sub.add_argument("hash", help="as results/<scale>/runs/index.csv and the paths of runs have it")
    sub = command("audit", "hash every file anew: what was edited, is stale, foreign or without a record", "--scale")
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET]", help="these and what is behind them; default: all")
    sub.add_argument("--strict", action="store_true", help="fail on warnings too")
    sub.add_argument("--json", action="store_true", help="as JSON")
    command("summary", "one page: what was built, where to look", "--scale", "papers")
    command("targets", "every target: its command, its runs, its cost", "--scale", "papers")
    said = "every target: which of Farquhar and Gal's desiderata its runs meet"
    command("desiderata", said, "--scale", "papers")
    said = "what a build would train next within a budget, and what each step decides"
    sub = command("next", said, "--scale")
    few = "papers, as `all` builds them, or targets; the papers of config.yaml if left out"
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET]", help=few)
    sub.add_argument("--hours", type=core_hours, metavar="H", help="core-hours, or all; 1 if left out, all of targets")
    sub.add_argument("--methods", nargs="+", metavar="FILE.py", help="methods from outside, whose runs it would train")
    sub.set_defaults(does="upcoming")  # `next` is Python's
    sub = command("rehearse", "measure what each kind of cell costs, by a small part of its run", "--scale")
    sub.add_argument("--papers", nargs="+", metavar="P", help="of which papers; those of config.yaml by default")
    said = "cells of these alone, or a cell's hash; all if left out"
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET]", help=said)
    sub.add_argument("--methods", nargs="+", metavar="FILE.py", help="methods from outside, and no others")
    sub.add_argument("--seconds", type=float, default=1.0, help="of steps in a rehearsal, roughly")
    sub.add_argument("--out", type=Path, metavar="FILE.csv", help="the table; results/S/costs.csv by default")
    sub = command(
        "export", "pack what was built, and all it came from, into a research object; or check one", "--scale"
    )
    where = sub.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="FILE.zip|FOLDER", help="the crate to write")
    where.add_argument("--check", type=Path, metavar="FILE.zip|FOLDER", help="a crate to audit, wherever it is")
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET]", help="what to pack; all that is built if left out")
    sub.add_argument(
        "--agent", default=None, metavar="NAME", help="who ran it; the authors in CITATION.cff if left out"
    )
    sub = command("try", "try a method's file on a small problem: what a build would hold it to")
    sub.add_argument("file", type=Path, metavar="FILE.py")
    sub.add_argument("--contracts", action="store_true", help="and nothing else: its steps are not timed")
    sub.set_defaults(does="try_out")  # `try` is Python's
    sub = command("publish", "pack the finished runs of each paper into its crate, results/published/PAPER.zip")
    sub.add_argument("names", nargs="*", metavar="PAPER", help="which papers; all if left out")
    sub.add_argument("--scale", default="paper")
    said = "methods from outside whose runs to publish too, and their files with them"
    sub.add_argument("--methods", nargs="+", default=[], metavar="FILE.py", help=said)
    sub.add_argument("--replace", action="store_true", help="runs of today's code take the place of differing ones")
    command("reproduction", "write docs/reproduction and README's tables from what is published")
    sub = command("import", "take in the runs of research objects: published ones, or those of other machines")
    sub.add_argument("crates", nargs="+", type=Path, metavar="FILE.zip|FOLDER", help="of `publish` or `export`")
    sub.set_defaults(does="take_in")  # `import` is Python's
    sub = command("pack", "pack code, streams and data of runs into a bundle that trains on a node without a network")
    said = "papers, targets or cells, in the order to train, and their seeds, all by default; else config.yaml's papers"
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET][:SEEDS]|HASH[:SEEDS]", help=said)
    sub.add_argument("--out", required=True, type=Path, metavar="DIR", help="a new folder; python DIR/run.py trains it")
    said = "core-hours to choose runs of papers and targets by, or all; those of a build if left out"
    sub.add_argument("--hours", type=core_hours, metavar="H", help=said)
    sub.add_argument("--part-mb", type=float, default=55.0, metavar="MB", help="of a part, at most")
    said = "seeds a job, neighbours of one cell; by default ten of an MLP, else one"
    sub.add_argument("--stack", type=int, metavar="N", help=said)
    sub.add_argument("--scale", help="of which scale; that of config.yaml by default")
    sub.add_argument("--data-folder", metavar="DIR", help="your copies; that of config.yaml by default")
    sub = command("verify", "train a random sample of published runs again, here, and compare")
    sub.add_argument(
        "crates", nargs="*", type=Path, metavar="FILE.zip", help="of which crates; the project's own if left out"
    )
    sub.add_argument("--hours", type=float, default=1.0, metavar="H", help="core-hours to spend, by prediction")
    sub.add_argument("--draw", type=int, default=0, metavar="N", help="the seed of the sample; another, other runs")
    sub.add_argument("--within", type=float, default=0.01, metavar="A", help="accuracies no further apart are the same")
    said = "the cheapest run of each crate and one more, as many at once as there are cores"
    sub.add_argument("--of-each", action="store_true", help=said)
    sub.add_argument("--out", type=Path, metavar="FILE.csv", help="write the outcomes there too")
    sub.add_argument("--scale", default="paper")
    sub = command("new", "write a commented file to start from, which runs as it is")
    sub.add_argument(
        "kind", choices=("method", "dataset", "paper"), help="of a method, a data set or a paper of one's own"
    )
    sub.add_argument("name", metavar="NAME", help="the file's and its own: small letters, digits and _")
    sub.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help="where it goes; here if left out")
    sub = command("doctor", "say what stands in the way of a build, and the remedy", "--scale")
    sub = command(
        "bench", "measure this machine: learners, what changes were worth, stacking, overheads, streams, dry runs"
    )
    sub.add_argument("--quick", action="store_true", help="fewer repetitions")
    return parser


def core_hours(text: str) -> float:
    """A number of core-hours; for `all` the largest that settings may have, so that there is a sequence to tell."""
    try:
        return 1e6 if text == "all" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of core-hours, or all") from None


def _version() -> str:
    try:
        return importlib.metadata.version("clpapers")
    except importlib.metadata.PackageNotFoundError:  # taken from its folder, not installed
        return "of this folder"
