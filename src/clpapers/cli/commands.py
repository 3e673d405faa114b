"""The commands with their options, and how one is run. A module is imported by the command that needs it."""

import argparse
import contextlib
import difflib
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
    """The command with its options; `makes` says whether it makes a file of the pipeline."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "train" and options.jobs:
        if options.until is None:
            parser.error("train --jobs: give --until MINUTES, too")
        options.makes = False
    if options.command == "stream" and (given := [key for key in STREAMS if getattr(options, key) is not None]):
        if missing := [f"--{key}" for key in STREAMS[:3] if key not in given]:
            parser.error(f"stream: {', '.join(f'--{key}' for key in given)}: give {', '.join(missing)} too")
        options.makes, options.scale, options.order = False, options.scale or "paper", options.order or "{}"
    return options


def _run(options: argparse.Namespace) -> int:
    without_config = getattr(options, "check", None) or getattr(options, "jobs", None)
    if not Path("config/config.yaml").is_file() and not without_config:
        from clpapers import home

        if options.makes or options.command not in (ANYWHERE if home.root() == home.CARRIED else (*ANYWHERE, "next")):
            print(f"clpapers: {ROOTLESS}", file=sys.stderr)
            return 2
        absolute: dict[str, object] = {
            key: value.expanduser().absolute() for key, value in vars(options).items() if isinstance(value, Path)
        }
        if methods := getattr(options, "methods", None):
            absolute["methods"] = [str(Path(each).expanduser().absolute()) for each in methods]
        vars(options).update(absolute | {"started_in": Path.cwd()})
        with contextlib.chdir(home.root()):  # a process of its own, unlike that of the library
            return _run_here(options)
    return _run_here(options)


def _run_here(options: argparse.Namespace) -> int:
    """Run a command in the project's folder."""
    from clpapers.provenance import Refusal, escaped

    try:
        if getattr(options, "jobs", None):
            from clpapers.bundle.train import train

            print(train(options.jobs, options.out, options.until, options.abreast, options.without))
            return 0
        if not options.makes:
            people = importlib.import_module("clpapers.cli.describe")
            return getattr(people, getattr(options, "does", options.command))(options) or 0
        from clpapers.cli.job_context import JobContext

        task: JobContext = JobContext(options)
        getattr(importlib.import_module(f"clpapers.cli.{task.job.module}"), options.command)(task)
        return 0
    except Refusal as error:
        lines = map(escaped, str(error).split("\n  "))  # a data set has a line for each source
        print("clpapers: " + "\n  ".join(lines), file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        if options.makes:
            raise  # of a build, which tells
        print(f"clpapers: {options.command}: interrupted; give the same command again", file=sys.stderr)
        return 128 + signal.SIGINT
    except OSError as error:  # a full disk, a missing file, a folder without permission
        subject = error.filename or getattr(options, "out", None) or options.command
        remedy = REMEDIES.get(error.errno or 0, "mend that")
        fault = f"{error.strerror or error}; {remedy} and give the same command again"
        print(f"clpapers: {escaped(subject)}: {fault}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        RESERVE.clear()  # or else there may be no memory to say so
        of_torch = "can't allocate memory" in str(error)  # torch has no exception of its own for that
        if isinstance(error, RecursionError):
            print(f"clpapers: {options.command}: what it reads nests, or descends, too deep", file=sys.stderr)
            return 2
        if not isinstance(error, MemoryError) and not of_torch:
            raise
        print(f"clpapers: {getattr(options, 'out', options.command)}: {SHORT_OF_MEMORY}", file=sys.stderr)
        return 2


RESERVE = [bytearray(1 << 20)]
STREAMS = ("paper", "dataset", "seeds", "order", "scale")  # options of `stream` where it writes to a user's folder
ANYWHERE = ("new", "try", "stream")  # commands that run in any folder; `next` too from a checkout, as it needs its runs
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
    ("metrics", "metrics/P/T.csv", "compute a target's metrics"),
    ("table", "targets/P/T.csv", "render a table"),
    ("figure", "targets/P/T.pdf", "render a figure"),
    ("note", "targets/P/T.unrun.md", "say what a figure without any run waits for"),
    ("reported", "targets/P/T.reported.csv", "compare reproduced with reported numbers"),
    ("paired", "targets/P/T.paired.csv", "compare methods on the same streams"),
    ("claims", "targets/P/claims.csv", "test a paper's claims on the measurements"),
    ("scorecard", "targets/scorecard.csv", "count the claims that hold"),
    ("report", "report/index.html", "make the report, a folder of static pages"),
)


SHARED: dict[str, dict] = {  # arguments of several commands
    "--scale": {"help": "the scale; config.yaml's by default"},
    "papers": {"nargs": "*", "metavar": "PAPER", "help": "the papers; config.yaml's by default"},
}


class _Parser(argparse.ArgumentParser):
    """Answers a mistyped command with its nearest neighbour, not with all there are."""

    def _check_value(self, action: argparse.Action, value: str) -> None:
        if action.dest == "command" and action.choices is not None and value not in action.choices:
            near = difflib.get_close_matches(value, action.choices, n=1)
            remedy = f"do you mean {near[0]}" if near else f"{self.prog} --help lists them"
            raise argparse.ArgumentError(None, f"{value!r} is no command; {remedy}")
        super()._check_value(action, value)


@functools.cache
def _parser() -> argparse.ArgumentParser:
    stages = ", ".join(name for name, *_ in MAKING)
    parser = _Parser(
        prog="clpapers",
        description="describe, check and pack the results of builds; make your own streams",
        epilog=f"further commands each make one file of the pipeline, exactly as its rule does: {stages}",
    )
    parser.add_argument("--version", action="version", version=f"clpapers {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def command(name: str, text: str, *shared: str, out: str | None = None) -> argparse.ArgumentParser:
        if out:  # without `help`, the list of commands leaves it out
            sub = commands.add_parser(name, description=text)
            sub.add_argument("--out", required=True, type=Path, metavar=f"results/S/{out}", help="the file to make")
        else:
            sub = commands.add_parser(name, description=text, help=text)
        for option in shared:
            sub.add_argument(option, **SHARED[option])
        sub.set_defaults(makes=out is not None)
        return sub

    made = {name: command(name, text, out=out) for name, out, text in MAKING}
    for name, folder in (("dataset", "<dataset>"), ("weights", "weights")):
        made[name].add_argument("--data-folder", type=Path, default="data", help=f"your copies, <folder>/{folder}/…")
        made[name].add_argument("--downloads", type=Path, default="downloads", help="the folder for fetched files")
    for sub in made.values():
        sub.add_argument("--runs", default="all", metavar="results/S/choices/C.json", help="the runs of its build")
    for name in ("features", "gans", "train", "selection", "index", "metrics", "report"):
        text = "1: train on a GPU, 0: on the CPU; a command that trains nothing needs the device of its runs"
        made[name].add_argument("--gpus", type=int, choices=(0, 1), default=0, help=text)
    for name in ("features", "gans", "train"):
        made[name].add_argument("--gpu-mem-mb", type=int, default=0, metavar="MB", help="of its memory; 0: all of it")
    text = "whether seeds of MLPs are one stack on a CPU; by default the faster choice on this machine"
    made["train"].add_argument("--stacking", type=int, choices=(0, 1), help=text)
    text = "a bundle's jobs (`clpapers pack`): trains them all, into crates in the folder --out, and needs no config/"
    made["train"].add_argument("--jobs", type=Path, metavar="jobs.json", help=text)
    text = "with --jobs: from now until all is written"
    made["train"].add_argument("--until", type=float, metavar="MINUTES", help=text)
    text = "with --jobs: processes at a time; as many as the cores and the card's memory hold"
    made["train"].add_argument("--abreast", type=int, metavar="N", help=text)
    text = "with --jobs: leave out jobs with it in their path"
    made["train"].add_argument("--without", nargs="+", default=[], metavar="WORD", help=text)
    for name in ("scorecard", "report"):
        text = "the papers; for a report config.yaml's by default"
        made[name].add_argument("--papers", nargs="+", required=name == "scorecard", metavar="P", help=text)
    made["method"].add_argument("--file", required=True, type=Path, help="the file")
    sub = command("stream", "permute a data set into streams of some seeds, or into one stream of the pipeline")
    sub.set_defaults(makes=True)
    text = "the folder for DIR/<dataset>/<order>/seed<k>.npz; or one file of the pipeline"
    sub.add_argument("--out", required=True, type=Path, metavar="DIR|results/S/streams/D/ORDER/seedK.npz", help=text)
    sub.add_argument("--paper", help="the paper whose order to use, with --dataset and --seeds")
    sub.add_argument("--dataset", metavar="D", help="one of the paper's data sets")
    sub.add_argument("--seeds", nargs="+", metavar="SEEDS", help="the seeds, a stream each: 3, 0-19 or 0,2,5")
    text = "changes of the paper's order, such as '{name: split, tasks: 5}'"
    sub.add_argument("--order", metavar="YAML", help=text)
    sub.add_argument("--scale", help="the scale; by default the papers' own, paper")
    sub = command("lineage", "show the ancestry of a paper, a target, a file or one number of a table", "--scale")
    sub.add_argument("name", metavar="PAPER[/TARGET]|FILE")
    sub.add_argument("--cell", metavar="ROW,COLUMN", help='one number, as the CSV names it; quote a comma: "a, b",c')
    sub.add_argument("--json", action="store_true", help="as JSON")
    sub = command("cell", "show the origin of each value of a cell: the file, the line and the layer", "--scale")
    text = "its hash, as in results/<scale>/runs/index.csv; of a target, the hashes of its cells are listed"
    sub.add_argument("hash", metavar="HASH|PAPER/TARGET", help=text)
    sub = command(
        "audit", "hash every file again; list edited, stale and foreign files, and missing records", "--scale"
    )
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET]", help="only these and their ancestors; default: all")
    sub.add_argument("--strict", action="store_true", help="fail on warnings too")
    sub.add_argument("--json", action="store_true", help="as JSON")
    command("summary", "summarise the built targets on one page", "--scale", "papers")
    command("targets", "list every target with its command, its runs and its cost", "--scale", "papers")
    sub = command("next", "list the runs that a build would train next, and the questions that they decide", "--scale")
    text = "papers, as `all` builds them, a file of one's own among them, or targets; config.yaml's papers by default"
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET]|PAPER.yaml", help=text)
    text = "core-hours, or all; by default 1 for papers and all for targets"
    sub.add_argument("--hours", type=core_hours, metavar="H", help=text)
    sub.add_argument("--methods", nargs="+", metavar="FILE.py", help="methods from outside, whose runs it would train")
    sub.set_defaults(does="upcoming")  # `next` is Python's
    sub = command("rehearse", "measure the cost of each kind of cell, by a small part of its run", "--scale")
    sub.add_argument("--papers", nargs="+", metavar="P", help="the papers; config.yaml's by default")
    text = "only cells of these, or a cell's hash; all by default"
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET]", help=text)
    sub.add_argument("--methods", nargs="+", metavar="FILE.py", help="only these methods from outside")
    sub.add_argument("--seconds", type=float, default=1.0, help="of steps in a rehearsal, roughly")
    sub.add_argument("--out", type=Path, metavar="FILE.csv", help="the table; results/S/costs.csv by default")
    sub = command(
        "export", "pack built targets with all their ancestors into a research object; or check one", "--scale"
    )
    where = sub.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, metavar="FILE.zip|FOLDER", help="the crate to write")
    where.add_argument("--check", type=Path, metavar="FILE.zip|FOLDER", help="a crate to audit, in any folder")
    sub.add_argument(
        "names", nargs="*", metavar="PAPER[/TARGET]", help="the targets to pack; all built ones by default"
    )
    sub.add_argument("--agent", metavar="NAME", help="the person who ran it; the authors in CITATION.cff by default")
    sub = command("try", "try a method's file on a small problem, as a build does before it takes the file")
    sub.add_argument("file", type=Path, metavar="FILE.py")
    sub.add_argument("--contracts", action="store_true", help="only check its contracts, without timing its steps")
    sub.set_defaults(does="try_out")  # `try` is Python's
    sub = command("publish", "pack the new runs of each paper into a crate, results/published/PAPER-DIGEST.zip")
    sub.add_argument("names", nargs="*", metavar="PAPER", help="the papers; all by default")
    sub.add_argument("--scale", default="paper")
    text = "methods from outside to publish too: their runs and their files"
    sub.add_argument("--methods", nargs="+", default=[], metavar="FILE.py", help=text)
    sub.add_argument("--replace", action="store_true", help="replace differing runs by runs of today's code")
    text = "published result files to take out"
    sub.add_argument("--without", nargs="+", type=Path, default=[], metavar="RUN.json", help=text)
    sub = command(
        "reproduction", "write what README, docs/ and results/published have of the published runs, and the site"
    )
    sub.add_argument("--site", type=Path, metavar="FOLDER", help="build the site of the published runs there, too")
    sub = command("import", "import the runs of research objects, published ones or other machines'")
    sub.add_argument("crates", nargs="+", type=Path, metavar="FILE.zip|FOLDER", help="written by `publish` or `export`")
    sub.set_defaults(does="import_runs")  # `import` is Python's
    sub = command("pack", "pack code, streams and data of runs into a bundle that trains on a node without a network")
    text = "papers, targets or cells in the order to train, with seeds (default: all); config.yaml's papers by default"
    sub.add_argument("names", nargs="*", metavar="PAPER[/TARGET][:SEEDS]|HASH[:SEEDS]", help=text)
    sub.add_argument("--out", required=True, type=Path, metavar="FILE.tgz", help="the bundle to write")
    text = "the core-hours that choose runs of papers and targets, or all; a build's by default"
    sub.add_argument("--hours", type=core_hours, metavar="H", help=text)
    sub.add_argument("--card", action="store_true", help="the node has a GPU: its costs choose, and hours are a card's")
    text = "seeds a job, neighbours of one cell; by default ten for an MLP, otherwise one"
    sub.add_argument("--stack", type=int, metavar="N", help=text)
    sub.add_argument("--scale", help="the scale; config.yaml's by default")
    sub.add_argument("--data-folder", metavar="DIR", help="your copies; config.yaml's folder by default")
    sub = command("verify", "train a random sample of published runs again, here, and compare")
    text = "the crates with the runs; the project's own by default"
    sub.add_argument("crates", nargs="*", type=Path, metavar="FILE.zip", help=text)
    sub.add_argument("--hours", type=float, default=1.0, metavar="H", help="core-hours to spend, by prediction")
    sub.add_argument("--draw", type=int, default=0, metavar="N", help="the seed of the sample")
    sub.add_argument(
        "--within", type=float, default=0.01, metavar="A", help="the largest difference of same accuracies"
    )
    text = "train the cheapest run of each crate and one more, one on each core at a time"
    sub.add_argument("--of-each", action="store_true", help=text)
    text = "only the first N steps, of the first published file of each cell, whatever the hours"
    sub.add_argument("--steps", type=int, metavar="N", help=text)
    sub.add_argument("--each", action="store_true", help="with --steps: of all published files")
    text = "a file for the outcomes; with --steps those that it has are kept"
    sub.add_argument("--out", type=Path, metavar="FILE.csv", help=text)
    sub.add_argument("--data-folder", metavar="DIR", help="your copies; config.yaml's folder by default")
    sub.add_argument("--scale", default="paper")
    sub = command("new", "write a commented file to start from, which runs unchanged")
    sub.add_argument("kind", choices=("method", "dataset", "paper"), help="the kind of file")
    sub.add_argument("name", metavar="NAME", help="the name of the file and in it: small letters, digits and _")
    sub.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help="its folder; this one by default")
    command("doctor", "check whether a build would succeed, with a remedy for each fault", "--scale")
    return parser


def core_hours(text: str) -> float | str:
    """A number of core-hours, or `all`."""
    try:
        return text if text == "all" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of core-hours, or all") from None


def _version() -> str:
    try:
        return importlib.metadata.version("clpapers")
    except importlib.metadata.PackageNotFoundError:  # imported from its folder, not installed
        return "of this folder"
