"""The command `snakemake` of this environment: Snakemake's own, with some preparations before it starts.

- A bare `--cores` means all cores. Snakemake's help promises that and people type it, but the parser of Snakemake 9
  refuses it.
- A target's or a paper's name stands for its files: `stf/table1`, `stf`. Names without a job are refused.
- A dry run counts jobs by rule, unless options request more, and predicts their time: job by job, `all` has a line of
  12,000 characters.
- A build shows one line of progress (`builds.progress`).
- The scheduler checks the waiting jobs when one ends, and not each second for each that has ended.
- Snakemake ends with a traceback where it cannot write to its folders, so these are tried first. For the project's
  folder one line says so; a home that cannot be written is replaced by a folder of the project.
- Jobs find this environment's `clpapers`, even if it is not activated.
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

SNAKEMAKE_FOLDER = Path(".snakemake")
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
    """The arguments `with_cores`, and with a short dry run or a line of progress, unless they set the output."""
    from clpapers.builds.preparation import DESCRIBING
    from clpapers.builds.progress import NAME

    arguments = with_cores(arguments)
    if any(re.fullmatch(WORDY, argument) for argument in arguments):
        return arguments
    if DRY & set(arguments):
        return [*arguments, "--quiet", "rules"]
    prints = "audit" in arguments or any(DESCRIBING.match(argument) for argument in arguments)  # by itself
    return arguments if prints or not arguments else [*arguments, "--logger", NAME]


def resolved(arguments: list[str]) -> tuple[list[str], Plan | None, list[Target]]:
    """The arguments, each name of a paper or target replaced by its files; the plan; the requested targets.

    config.yaml or `--config` gives the scale and, for `all`, the papers. Files and rules other than `all` request no
    target; nor does a build with a budget, which announces its hours itself. The plan is None where nothing needs it.
    Raises `ConfigError` for wrong names and settings.
    """
    from clpapers.builds.preparation import budgeted
    from clpapers.config.facts import Facts
    from clpapers.config.files import read_text
    from clpapers.config.plan import Plan
    from clpapers.config.refusals import ConfigError
    from clpapers.config.schemas import schema
    from clpapers.config.settings import all_papers, check_settings
    from clpapers.graph.pages import targets_of

    setting = re.compile(rf"({'|'.join(schema('config')['properties'])})=(.*)", re.DOTALL)
    written = {m[1]: m[2] for m in map(setting.fullmatch, arguments) if m}
    given = {key: read_text(f"{key}: {text}", "--config") for key, text in written.items()}
    for key, text in written.items():
        if isinstance(given[key][key], str) and re.match(r"[^'\"\s].*\s#", text):
            remedy = f"quote it: '{key}=\"{text}\"'"
            raise ConfigError(f"--config: {key}={text}: a value ends at a # after a space; {remedy}")
    settings = check_settings(  # the build itself takes files from outside in
        {key: value for each in given.values() for key, value in each.items()}, keep=False
    )
    papers = "|".join(all_papers())
    names = {
        i
        for i, (before, argument) in enumerate(zip(["", *arguments], arguments))  # `--quiet rules` is no paper
        if re.fullmatch(rf"({papers})(/\w+)?", argument) and before not in QUIET and not Path(argument).is_file()
    }
    if not names and not DRY & set(arguments):
        return arguments, None, []
    has_budget = budgeted(Facts(settings["scale"]), settings.get("hours"))
    if not names and has_budget:
        return arguments, None, []
    plan = Plan.load(settings["scale"], all_papers())
    replaced: list[str] = []
    requested: list[Target] = []
    for i, argument in enumerate(arguments):
        if i not in names:
            replaced.append(argument)
            continue
        targets = [each for each in plan.named_targets([argument]) if "/" in argument or not each.spec.get("extra")]
        replaced += [str(path) for target in targets for path in target.outputs]
        requested += targets
    if "all" in arguments or all(argument.startswith("-") or "=" in argument for argument in arguments):
        requested += targets_of(plan, settings["papers"])
    return replaced, plan, [] if has_budget else requested


def by_rule(arguments: list[str], files: list[str]) -> list[str]:
    """The arguments with the rule `requested` for all names of papers and targets: with a budget, their files depend
    on the choice of runs, which the Snakefile makes.

    files: the arguments as from `resolved`.
    """
    names = [argument for argument in arguments if argument not in files]
    told = ["requested" if argument in names[:1] else argument for argument in arguments]
    return [argument for argument in told if argument not in names[1:]]


def refuse_unknown(arguments: list[str], replaced: list[str]) -> None:
    """Raise `ConfigError` for a target without a job, before Snakemake reads the rules and data are fetched.

    replaced: the arguments as from `resolved`; the new ones among them have jobs. The rules check runs and GANs, as
    methods from outside may add some.
    """
    from snakemake.cli import get_argument_parser

    from clpapers.config.paths import RESULTS
    from clpapers.config.plan import Plan
    from clpapers.config.refusals import ConfigError, names
    from clpapers.config.settings import all_papers
    from clpapers.graph import jobs

    options, _ = get_argument_parser().parse_known_args(with_cores(replaced))
    text = "".join(path.read_text(encoding="utf-8") for path in (Path("Snakefile"), *Path("rules").glob("*.smk")))
    rules = [name for name in re.findall(r"^rule (\w+):", text, re.MULTILINE) if name != "requested"]  # by no user
    plan = functools.cache(lambda scale: Plan.load(scale, all_papers()))
    for name in (name for name in options.targets if name in arguments and name not in rules):
        path = Path(name)
        if path.exists() or path.parts[2:3] in (("runs",), ("gans",)):
            continue
        if path.parts[:1] == (str(RESULTS),) and len(path.parts) > 2:
            jobs.job_of(plan(path.parts[1]), path)
        else:
            available = [*rules, *plan("paper").titles, *plan("paper").targets]
            raise ConfigError(f"{name}: no paper, target, rule or file; there are: {names(available, name)}")


def why_unwritable(folder: Path) -> str:
    """Why no file can be written to a folder, which is made if absent; empty where one can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def pop_option(arguments: list[str], short: str, long: str) -> str | None:
    """Remove an option of Snakemake's from the arguments; returns its value, None without one."""
    for i, argument in enumerate(arguments):
        if argument in (f"-{short}", f"--{long}") and i + 1 < len(arguments):
            value = arguments[i + 1]
            del arguments[i : i + 2]
            return value
        if match := re.fullmatch(rf"(?:-{short}|--{long}=)(.+)", argument, re.DOTALL):
            del arguments[i]
            return match[1]
    return None


def enter_project(arguments: list[str]) -> None:
    """Go to the project's folder, if `--directory` names it; exit with one line where the folder is no project.

    A folder whose name Snakemake reads as a pattern is refused too.
    """
    others = list(arguments)
    file, directory = pop_option(others, "s", "snakefile"), pop_option(others, "d", "directory")
    folder = Path(directory or ".").expanduser()
    of_workflow = Path(file).parent if file else folder
    if not (of_workflow / "rules" / "common.smk").is_file():
        return  # another workflow
    if not (folder / "config" / "config.yaml").is_file():
        from clpapers.cli.commands import ROOTLESS

        sys.exit(f"clpapers: {ROOTLESS}")
    if set("{}") & set(str(folder.absolute())):
        sys.exit(f"clpapers: {folder.absolute()}: Snakemake reads braces as a pattern; give the folder another name")
    if directory:
        arguments[:] = [*others, *(["--snakefile", str(Path(file).absolute())] if file else [])]
        os.chdir(folder)


def prepare() -> None:
    """Try the folders; ends the process with one line where Snakemake could not begin."""
    fault = why_unwritable(SNAKEMAKE_FOLDER)
    if fault:
        sys.exit(
            f"clpapers: {SNAKEMAKE_FOLDER}: Snakemake cannot write there ({fault}); make the project's folder "
            "writable, or free space and inodes (df -h, df -i), and give the same command again"
        )
    home = os.path.expanduser("~/.cache")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or home)
    if not caches.is_absolute() or why_unwritable(caches / "snakemake"):  # not absolute: the user has no home
        os.environ["XDG_CACHE_HOME"] = str(SNAKEMAKE_FOLDER.absolute() / "cache")


def reach_programs() -> None:
    """Let jobs find the `clpapers` beside this Python, which a shell that runs `.venv/bin/snakemake` may not know."""
    programs = Path(sys.executable).parent
    if shutil.which("clpapers") != str(programs / "clpapers"):
        os.environ["PATH"] = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])


def run(arguments: list[str]) -> None:
    """As Snakemake's own `main`, which ends the process; on this machine without its default limit of jobs a second.

    With a limit, each check of waiting jobs starts a timer that ends in another check: after n jobs it checks n times a
    second. Without one it checks when a job ends. A limit of the user's or of a profile holds.
    """
    from snakemake.cli import args_to_api, parse_args
    from snakemake.exceptions import print_exception

    try:
        parser, options = parse_args(arguments)
        limit = options.max_jobs_per_timespan
        if options.executor in (None, "local") and limit and (limit.max_jobs, limit.timespan) == (100, 1):
            options.max_jobs_per_timespan = None
        success = args_to_api(options, parser)
    except Exception as error:
        print_exception(error)
        sys.exit(1)
    sys.exit(0 if success else 1)


def main() -> None:
    """Run Snakemake."""
    arguments, plan = sys.argv[1:], None
    requested: list[Target] = []
    enter_project(arguments)
    sys.argv[1:] = arguments
    if Path("Snakefile").is_file() and not {"--help", "-h", "--version", "-v"} & set(arguments):
        from clpapers.config.refusals import ConfigError

        prepare()
        reach_programs()
        try:
            files, plan, requested = resolved(arguments)
            refuse_unknown(arguments, files)
        except ConfigError as error:
            sys.exit(f"clpapers: {error}")
        sys.argv[1:] = files  # for the Snakefile, which reads the targets from there (clpapers.builds.preparation)
        arguments = files if requested or plan is None else by_rule(arguments, files)
    gc.set_threshold(100_000, 50, 100)  # a graph of jobs lives to the end; collecting it often took a tenth of the time
    from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

    from clpapers.builds import progress

    if DRY & set(arguments):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # its logger has a traceback for `| head`
    LoggerPluginRegistry().register_plugin(f"snakemake_logger_plugin_{progress.NAME}", progress)
    try:
        run(completed(arguments))
    except SystemExit as end:
        if plan and requested and not end.code and DRY & set(arguments):
            from clpapers.budget.costs import pending

            print(pending(plan, requested))
        raise


if __name__ == "__main__":
    main()
