"""The command `snakemake` of this environment: Snakemake's own, with a few things done before it starts.

A bare `--cores` means all of them: Snakemake's help promises that, the parser of Snakemake 9 refuses it, and `snakemake
all --cores` is what people type. A target's or a paper's name stands for its files: `stf/table1`, `stf`; what nothing
makes is refused. A dry run counts jobs by rule, unless more is asked for, and says how long they take: job by job,
`all` has a line of 12,000 characters. A build shows one line of progress (`builds.progress`). Its scheduler looks
through the waiting jobs when one ends. And the folders that Snakemake writes to, with a traceback where it cannot, are
tried: that of the project is told of in one line, that of a home which cannot be written is replaced by one of the
project's. Jobs find this environment's `clpapers`, whether or not it is activated.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clpapers.config.model import Target
    from clpapers.config.plan import Plan

OWN = Path(".snakemake")
DRY = {"-n", "--dry-run", "--dryrun"}
QUIET = ("-q", "--quiet")
WORDY = r"-q|--quiet.*|-p|--printshellcmds|--verbose|--logger.*|--debug-dag|--summary|--detailed-summary|--dag"
WORDY += "|--rulegraph|--filegraph|-D"


def with_cores(arguments: list[str]) -> list[str]:
    """The arguments, with `all` given to a `--cores` or `-c` that has no number."""
    following = [*arguments[1:], "--"]
    return [
        "--cores=all" if argument in ("--cores", "-c") and after.startswith("-") else argument
        for argument, after in zip(arguments, following)
    ]


def completed(arguments: list[str]) -> list[str]:
    """The arguments `with_cores`; a dry run kept short and a build to its line, unless they say how much is told."""
    from clpapers.builds.preparation import TELLING
    from clpapers.builds.progress import NAME

    whole = with_cores(arguments)
    if any(re.fullmatch(WORDY, argument) for argument in whole):
        return whole
    if DRY & set(whole):
        return [*whole, "--quiet", "rules"]
    prints = "audit" in whole or any(TELLING.match(argument) for argument in whole)  # by itself
    return whole if prints or not whole else [*whole, "--logger", NAME]


def resolved(arguments: list[str]) -> tuple[list[str], Plan | None, list[Target]]:
    """The arguments, each name of a paper or target replaced by its files; the plan; the targets that are asked for.

    The scale and, of `all`, the papers are those of config.yaml or of `--config`. Files and rules other than `all` ask
    for no target, nor does what a budget tells the hours of. Without names, and where nothing is asked that needs one,
    there is no plan. Raises `ConfigError` for names and settings that are wrong.
    """
    from clpapers.builds.preparation import budgeted
    from clpapers.config.facts import Facts
    from clpapers.config.files import read_text
    from clpapers.config.plan import Plan
    from clpapers.config.schemas import schema
    from clpapers.config.settings import all_papers, check_settings
    from clpapers.graph.pages import shown

    given = [re.fullmatch(rf"({'|'.join(schema('config')['properties'])})=(.*)", each, re.DOTALL) for each in arguments]
    told = {match[1]: read_text(f"{match[1]}: {match[2]}", "--config") for match in given if match}
    settings = check_settings(
        {key: value for each in told.values() for key, value in each.items()}
    )  # takes in files from outside
    papers = "|".join(all_papers())
    after = ["", *arguments]  # `--quiet rules` is no paper
    names = {
        i
        for i, (before, argument) in enumerate(zip(after, arguments))
        if re.fullmatch(rf"({papers})(/\w+)?", argument) and before not in QUIET and not Path(argument).is_file()
    }
    if not names and not DRY & set(arguments):
        return arguments, None, []
    tells = budgeted(Facts(settings["scale"]), settings.get("hours"))  # a budget tells its hours
    if not names and tells:
        return arguments, None, []
    plan = Plan(settings["scale"], all_papers())
    found: list[str] = []
    wanted: list[Target] = []
    for i, argument in enumerate(arguments):
        if i not in names:
            found.append(argument)
            continue
        targets = [each for each in plan.named_targets([argument]) if "/" in argument or not each.spec.get("extra")]
        found += [str(path) for target in targets for path in target.outputs]
        wanted += targets
    if "all" in arguments or all(argument.startswith("-") or "=" in argument for argument in arguments):
        wanted += shown(plan, settings["papers"])
    return found, plan, [] if tells else wanted


def refuse_unknown(arguments: list[str], meant: list[str]) -> None:
    """Raise `ConfigError` for a target that nothing makes, before Snakemake reads the rules and data are fetched.

    meant: the arguments as from `resolved`; what is new in them is known. Runs and GANs are left to the rules, as
    methods from outside may add some.
    """
    from snakemake.cli import get_argument_parser

    from clpapers.config.paths import RESULTS
    from clpapers.config.plan import Plan
    from clpapers.config.refusals import ConfigError, names
    from clpapers.config.settings import all_papers
    from clpapers.graph import jobs

    given, _ = get_argument_parser().parse_known_args(with_cores(meant))
    text = "".join(path.read_text(encoding="utf-8") for path in (Path("Snakefile"), *Path("rules").glob("*.smk")))
    rules = re.findall(r"^rule (\w+):", text, re.MULTILINE)
    plan = functools.cache(lambda scale: Plan(scale, all_papers()))
    for word in (word for word in given.targets if word in arguments and word not in rules):
        path = Path(word)
        if path.exists() or path.parts[2:3] in (("runs",), ("gans",)):
            continue
        if path.parts[:1] == (str(RESULTS),) and len(path.parts) > 2:
            jobs.of(plan(path.parts[1]), path)
        else:
            known = [*rules, *plan("paper").titles, *plan("paper").targets]
            raise ConfigError(f"{word}: no paper, target, rule or file; there are: {names(known, word)}")


def fault_of(folder: Path) -> str:
    """Why no file can be made in a folder, which is made if it is not there; empty where one can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def taken(arguments: list[str], short: str, long: str) -> str | None:
    """Take an option of Snakemake's out of the arguments; returns its value, None without one."""
    for i, argument in enumerate(arguments):
        if argument in (f"-{short}", f"--{long}") and i + 1 < len(arguments):
            value = arguments[i + 1]
            del arguments[i : i + 2]
            return value
        if match := re.fullmatch(rf"(?:-{short}|--{long}=)(.+)", argument, re.DOTALL):
            del arguments[i]
            return match[1]
    return None


def entered(arguments: list[str]) -> None:
    """Go to the project's folder, where `--directory` names one; end with one line where this is another folder.

    Folders whose names Snakemake reads as patterns end so too.
    """
    others = list(arguments)
    file, folder = taken(others, "s", "snakefile"), taken(others, "d", "directory")
    place = Path(folder or ".").expanduser()
    ours = Path(file).parent if file else place
    if not (ours / "rules" / "common.smk").is_file():
        return  # another workflow
    if not (place / "config" / "config.yaml").is_file():
        from clpapers.cli.commands import ROOTLESS

        sys.exit(f"clpapers: {ROOTLESS}")
    if set("{}") & set(str(place.absolute())):
        sys.exit(f"clpapers: {place.absolute()}: Snakemake reads braces as a pattern; give the folder another name")
    if folder:
        arguments[:] = [*others, *(["--snakefile", str(Path(file).absolute())] if file else [])]
        os.chdir(place)


def prepare() -> None:
    """Try the folders; ends the process with one line where Snakemake could not begin."""
    fault = fault_of(OWN)
    if fault:
        sys.exit(
            f"clpapers: {OWN}: Snakemake cannot write there ({fault}); make the project's folder writable, or free "
            "space and inodes (df -h, df -i), and give the same command again"
        )
    home = os.path.expanduser("~/.cache")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or home)
    if not caches.is_absolute() or fault_of(caches / "snakemake"):  # as where nobody knows a home
        os.environ["XDG_CACHE_HOME"] = str(OWN.absolute() / "cache")


def reach_programs() -> None:
    """Let jobs find the `clpapers` beside this Python, which a shell that runs `.venv/bin/snakemake` may not know."""
    programs = Path(sys.executable).parent
    if shutil.which("clpapers") != str(programs / "clpapers"):
        os.environ["PATH"] = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])


def evaluate_at_ends() -> None:
    """Have Snakemake look through waiting jobs when one ends; by the clock only where its rate limit held some.

    As it comes, each look starts a timer that ends in another one: after n jobs it looks n times a second.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    by_the_clock = JobScheduler._schedule_reevalutation

    def where_held(scheduler: JobScheduler, delay: float) -> None:
        limit = scheduler.job_rate_limiter
        if limit is None or not limit.get_free_jobs():
            by_the_clock(scheduler, delay)

    JobScheduler._schedule_reevalutation = where_held


def main() -> None:
    """Run Snakemake."""
    arguments, plan = sys.argv[1:], None
    wanted: list[Target] = []
    entered(arguments)
    sys.argv[1:] = arguments
    if Path("Snakefile").is_file() and not {"--help", "-h", "--version", "-v"} & set(arguments):
        from clpapers.config.refusals import ConfigError

        prepare()
        reach_programs()
        try:
            arguments, plan, wanted = resolved(arguments)
            refuse_unknown(sys.argv[1:], arguments)
        except ConfigError as error:
            sys.exit(f"clpapers: {error}")
        sys.argv[1:] = arguments  # for the Snakefile, which asks what is to be built (clpapers.builds.preparation)
    gc.set_threshold(100_000, 50, 100)  # a graph of jobs lives to the end: to search it often took a tenth of the plan
    from snakemake.cli import main as run
    from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

    from clpapers.builds import progress

    if DRY & set(arguments):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # its logger has a traceback for `| head`
    LoggerPluginRegistry().register_plugin(f"snakemake_logger_plugin_{progress.NAME}", progress)
    evaluate_at_ends()
    try:
        run(completed(arguments))
    except SystemExit as end:
        if plan and wanted and not end.code and DRY & set(arguments):
            from clpapers.budget.costs import due

            print(due(plan, wanted))
        raise


if __name__ == "__main__":
    main()
