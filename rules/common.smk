# Helpers of the rules: from wildcards to plans, cells, targets and digests. No science.
import fcntl
import functools
import inspect
import math
import os
import re
import shutil
import sys
from pathlib import Path

from clpapers.budget import priority
from clpapers.budget.card_costs import megabytes
from clpapers.builds import preparation, progress
from clpapers.graph import jobs, pages, user_methods
from clpapers.runs import cards
from clpapers.runs.cards import resolve_device
from clpapers.graph.claims import claiming
from clpapers.cli import server
from clpapers.config import selected_runs
from clpapers.config.paths import block_seeds
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers, check_settings
from clpapers.provenance import ProvenanceError, record_path


def claimed_folder():
    """The open file whose lock this build holds as long as its process lives; another build in the folder is refused.

    Snakemake would let both write the same files, since it looks for the locks of equal outputs alone. The locks of one
    that was killed are removed: they would refuse the same command given again.
    """
    Path(".snakemake/locks").mkdir(parents=True, exist_ok=True)
    alive = open(".snakemake/alive", "a")
    try:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("clpapers: another build is at work in this folder; wait for it, or end it, and try again")
    except OSError:
        return alive  # a file system without such locks: `snakemake --unlock` remains
    for lock in Path(".snakemake/locks").glob("*.lock"):
        lock.unlink(missing_ok=True)
    return alive


def results_folder():
    """The deepest existing folder that results are written below."""
    return next(path for path in (Path("results", SCALE), Path("results"), Path(".")) if path.is_dir())


def refuse_unwritable():
    """Where results cannot be written, say so in one line: Snakemake would fail on its first file, with a traceback."""
    if not os.access(results_folder(), os.W_OK):
        sys.exit(
            f"clpapers: {results_folder()}: cannot be written to; make it writable and give the same command again"
        )


REQUESTED, DESCRIBES = preparation.requested_targets(sys.argv[1:])
ALIVE = claimed_folder() if workflow.is_main_process and not DESCRIBES else None
BUDGET = priority.Budget(selected_runs.SelectedRuns())
RUNS = None if workflow.is_main_process else config.pop("runs", None)  # the file of the choice, told to jobs as below
try:
    # Jobs work with what their build has taken in, and what only describes a build takes nothing in.
    SETTINGS = check_settings(config, take=workflow.is_main_process, keep=not DESCRIBES)
    SCALE = SETTINGS["scale"]
    if not DESCRIBES:
        refuse_unwritable()
    CUDA = resolve_device(SETTINGS["device"]) == "cuda"
    CHOICE = selected_runs.read(Path(RUNS)) if RUNS else None
    OWN = user_methods.take_in(SCALE, SETTINGS.get("methods", ())) if workflow.is_main_process else ()
    if workflow.is_main_process:
        user_methods.try_of_papers(SETTINGS["papers"])
    PLAN = Plan.load(SCALE, all_papers(), cuda=CUDA, choice=CHOICE, methods=OWN)
    CLAIMING = claiming(SETTINGS["papers"])  # configured papers with claims
    if workflow.is_main_process:  # once: jobs neither check again what they share, nor choose
        if preparation.concerns(SCALE, REQUESTED):
            preparation.restore_times(Path("results", SCALE))
        if not DESCRIBES:
            preparation.keep_finished(PLAN)
        jobs.claims_of(PLAN)
        if OWN or preparation.budgeted(PLAN, SETTINGS.get("hours")):
            NOTES, BUDGET, DATA = preparation.prepare(PLAN, SETTINGS, sys.argv[1:])
            if preparation.concerns(SCALE, REQUESTED):
                NOTES += preparation.announcement(BUDGET, DATA)
            sys.stderr.writelines(f"clpapers: {line}\n" for line in NOTES)
            if not DESCRIBES and not preparation.confirmed(BUDGET, SETTINGS.get("hours")):
                sys.exit("clpapers: nothing was trained")
            progress.PREDICTED.update(BUDGET.pending)
            RUNS = str(BUDGET.choice.write(SCALE))
            told = workflow.config_settings  # what Snakemake tells the Snakemake of a job on a cluster
            told.config_args = [*(told.config_args or ()), f"runs={RUNS}"]
            PLAN = PLAN.using(BUDGET.choice)
except (ConfigError, ProvenanceError) as error:
    sys.exit(f"clpapers: {error}")
except OSError as error:
    place = error.filename or results_folder()
    sys.exit(f"clpapers: {place}: {error.strerror or error}; once it is mended, give the same command again")
except KeyboardInterrupt:
    sys.exit("clpapers: interrupted before anything was trained; the same command goes on")
DERIVED = [name for name, facts in PLAN.datasets.items() if "features" in facts]  # data sets of features


if workflow.is_main_process:
    if CUDA and "gpu_mem_mb" not in workflow.global_resources and (seen := cards.visible()):
        workflow.register_resource("gpu_mem_mb", sum(card.memory for card in seen))  # jobs beyond it would only wait


def card_mb(wildcards, attempt):
    """The memory of a card for a training: what its kind needs, where a retry may take more; otherwise 0, which is all."""
    if not CUDA or not workflow.execution_settings.retries:
        return 0
    if attempt > 2:
        return 192_000  # more than any card has
    seeds = len(block_seeds(wildcards.block))
    of_scale = plan(wildcards.scale)
    return megabytes(of_scale, of_scale.cells[wildcards.run[-10:]], seeds) * 4 ** (attempt - 1)


def silent_failures(logs):
    """The reasons why jobs ended without a message: a line each, from Snakemake's logs and the state of the disk."""
    lines = []
    if shutil.disk_usage(results_folder()).free < 1 << 20:
        lines.append(f"{results_folder()}: the disk is full; free some space and give the same command again")
    texts = [Path(log).read_text(errors="replace") for log in logs if Path(log).is_file()]
    if any(re.search("exit status 137|SIGKILL", text) for text in texts):
        lines.append(
            "a job was killed (SIGKILL), as the kernel does when memory runs out (dmesg tells); run fewer jobs at once"
            " (--cores 1) or on a machine with more memory, and give the same command again"
        )
    return "".join(f"clpapers: {line}\n" for line in lines)


@functools.cache
def plan(scale):
    """The plan of a scale, over all papers: any target can be requested, whatever is configured.

    For another scale than the configured one it has all runs, at any cost.
    """
    try:
        return PLAN if scale == SCALE else Plan.load(scale, all_papers(), cuda=CUDA)
    except ConfigError as error:
        sys.exit(f"clpapers: {error}")


@functools.lru_cache(maxsize=1000)  # as Snakemake asks for inputs, params and resources one by one
def job(path):
    """The job that makes a file; exit with one line where no job makes it."""
    try:
        return jobs.job_of(plan(Path(path).parts[1]), Path(path), SETTINGS["papers"])
    except ConfigError as error:
        sys.exit(f"clpapers: {error}")


def job_of(rule, wildcards):
    """The job that makes a rule's first output."""
    return job(getattr(rules, rule).output[0].format_map(wildcards))


def of_wildcards(function):
    """A function that states its arguments: Snakemake looks them up for every job, and inspecting takes time."""
    function.__signature__ = inspect.signature(function)
    return function


def inputs_of(rule):
    """The input of a rule: the files that its output is made of."""
    return of_wildcards(lambda w: job_of(rule, w).inputs)


# Params that are functions of more than wildcards would be no reason for Snakemake to run a rule again.
def code_of(rule):
    """A param of every rule: the digest of the code that makes its output, so that an edit of it makes it again."""
    return of_wildcards(lambda w: job_of(rule, w).code)


def settings_of(rule):
    """A param where a rule's path does not determine its output: the digest of the other settings in config/."""
    return of_wildcards(lambda w: job_of(rule, w).settings)


def runs_of(rule):
    """The option `--runs` of a job. No param: the settings have what the job uses of the choice, and this names all."""
    of_choice = lambda w: RUNS and w.scale == SCALE and job_of(rule, w).depends_on_choice
    return of_wildcards(lambda w: RUNS if of_choice(w) else selected_runs.EVERY)


def decoded_mb(plan, dataset):
    """How many MB a data set's arrays take."""
    facts = plan.datasets[dataset]
    return math.prod(facts["shape"]) * (facts["train"] + facts["test"]) // 10**6


def outputs(plan):
    """All files of the plan's targets, for the configured papers."""
    return [path for target in pages.targets_of(plan, SETTINGS["papers"]) for path in plan.rendered(target)]


def requested_outputs():
    """The requested files of targets; for the pictures of a figure that waits for runs, its note."""
    files = [file for file in REQUESTED if file.startswith(f"results/{SCALE}/targets/")]
    rendered = {str(path) for target in preparation.named_targets(PLAN, files) for path in PLAN.rendered(target)}
    return sorted(rendered.intersection(files) | {file for file in rendered if file.endswith(".unrun.md")})


def announced():
    """The files that the build said it would make: Snakemake asks for none that only a finished file was made of."""
    return sorted({str(each) for path in BUDGET.pending for each in (path, record_path(path))})


def claim_outputs(scale):
    """The tables of the configured papers' claims, and the scorecard of all."""
    stems = [*(f"{paper}/claims" for paper in CLAIMING), *(["scorecard"] if CLAIMING else [])]
    return [f"results/{scale}/targets/{stem}.{ending}" for stem in stems for ending in ("csv", "md", "tex", "html")]
