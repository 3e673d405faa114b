# Helpers of the rules: from wildcards to plans, cells, targets and digests. No science.
import fcntl
import functools
import math
import os
import re
import shutil
import sys
from pathlib import Path

from clpapers import cards
from clpapers.cards import resolve_device
from clpapers.claims import FILE as CLAIMS
from clpapers.config.files import read_yaml
from clpapers.config.paths import block_seeds
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers, check_settings
from clpapers.jobs import (
    CLAIMS_CODE,
    SCORECARD_CODE,
    claimed_targets,
    claims_of,
    dataset_settings,
    features_of,
    net_code,
    reduced,
    render_code,
    report_code,
    run_code,
    run_inputs,
    searched_files,
    weights_settings,
)
from clpapers.metrics.inputs import inputs_of
from clpapers.provenance import code_digest

try:
    SETTINGS = check_settings(config)
    SCALE = SETTINGS["scale"]
    CUDA = resolve_device(SETTINGS["device"]) == "cuda"
    PLAN = Plan(SCALE, all_papers(), cuda=CUDA)
    CLAIMING = [paper for paper in read_yaml(CLAIMS) if paper in SETTINGS["papers"]]  # configured papers with claims
    if workflow.is_main_process:  # once: jobs need not check anew what all of them begin with
        claims_of(PLAN)
except ConfigError as error:
    sys.exit(f"clpapers: {error}")
DERIVED = [name for name, facts in PLAN.datasets.items() if "features" in facts]  # data sets of features


def drop_dead_locks():
    """Remove the locks of Snakemakes that were killed, which would refuse the same command given again.

    Every living Snakemake shares a lock of the kernel's, which dies with its process. Who gets that one alone is
    the only one alive, so that what lies in Snakemake's own folder of locks is a dead one's. Returns the open file
    that holds the share.
    """
    Path(".snakemake/locks").mkdir(parents=True, exist_ok=True)
    alive = open(".snakemake/alive", "a")
    try:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for lock in Path(".snakemake/locks").glob("*.lock"):
            lock.unlink(missing_ok=True)
    except BlockingIOError:
        pass  # another Snakemake is at work here: its locks stand
    except OSError:
        return alive  # a file system without such locks: `snakemake --unlock` remains
    fcntl.flock(alive, fcntl.LOCK_SH)
    return alive


if workflow.is_main_process:
    ALIVE = drop_dead_locks()
    if CUDA and "gpu_mem_mb" not in workflow.global_resources and (seen := cards.visible()):
        workflow.register_resource("gpu_mem_mb", sum(card.memory for card in seen))  # jobs beyond it would only wait


def results_folder():
    """The folder that results are written below, as far as it is there."""
    return next(path for path in (Path("results", SCALE), Path("results"), Path(".")) if path.is_dir())


def refuse_unwritable():
    """Where results cannot be written, say so in one line: Snakemake would fail on its first file, with a traceback."""
    if not os.access(results_folder(), os.W_OK):
        sys.exit(
            f"clpapers: {results_folder()}: cannot be written to; make it writable and give the same command again"
        )


def untold(logs):
    """What stopped jobs that had no way to say so: a line each, from Snakemake's logs and the state of the disk."""
    lines = []
    if shutil.disk_usage(results_folder()).free < 1 << 20:
        lines.append(f"{results_folder()}: the disk is full; free some space and give the same command again")
    said = [Path(log).read_text(errors="replace") for log in logs if Path(log).is_file()]
    if any(re.search("exit status 137|SIGKILL", text) for text in said):
        lines.append(
            "a job was killed (SIGKILL), as the kernel does when memory runs out (dmesg tells); run fewer jobs at once"
            " (--cores 1) or on a machine with more memory, and give the same command again"
        )
    return "".join(f"clpapers: {line}\n" for line in lines)


@functools.cache
def plan(scale):
    """The plan of a scale, over all papers: any target can be asked for, whatever is configured."""
    try:
        return PLAN if scale == SCALE else Plan(scale, all_papers(), cuda=CUDA)
    except ConfigError as error:
        sys.exit(f"clpapers: {error}")


def known(what, name, those):
    """The entry `name` of the dictionary `those`; for a path that names another, one line and the end."""
    if name not in those:
        sys.exit(f"clpapers: no {what} {name!r} in what config/ asks for; there are: {', '.join(those)}")
    return those[name]


def outputs(plan):
    """All files that a plan's targets, those of the configured papers, come out as."""
    wanted = [t for t in plan.targets.values() if t.paper in SETTINGS["papers"] and not t.spec.get("extra")]
    return [path for target in wanted for path in target.outputs]


def claim_outputs(scale):
    """The tables of the configured papers' claims, and the scorecard of all."""
    stems = [*(f"{paper}/claims" for paper in CLAIMING), *(["scorecard"] if CLAIMING else [])]
    return [f"results/{scale}/targets/{stem}.{ending}" for stem in stems for ending in ("csv", "md", "tex", "html")]


@functools.cache
def claims(scale):
    """The claims of all papers that have any, at a scale."""
    try:
        return claims_of(plan(scale))
    except ConfigError as error:
        sys.exit(f"clpapers: {error}")


def claims_of_paper(wildcards):
    """The claims of the paper that wildcards name."""
    return known("claims of", wildcards.paper, claims(wildcards.scale))


def targets_of_claims(wildcards):
    """The targets whose metrics decide them."""
    return claimed_targets(plan(wildcards.scale), claims_of_paper(wildcards))


def dataset_spec(wildcards):
    """What decides a data set's bytes, in one string."""
    known("data set", wildcards.dataset, plan(wildcards.scale).datasets)
    return dataset_settings(plan(wildcards.scale), wildcards.dataset)


def decoded_mb(wildcards):
    """How many MB a data set's arrays take."""
    facts = known("data set", wildcards.dataset, plan(wildcards.scale).datasets)
    return math.prod(facts["shape"]) * (facts["train"] + facts["test"]) // 10**6


def weights_spec(wildcards):
    """What decides the bytes of pre-trained weights, in one string."""
    known("weights", wildcards.weights, plan(wildcards.scale).weights)
    return weights_settings(plan(wildcards.scale), wildcards.weights)


def dataset_of_stream(wildcards):
    """The data set a stream permutes; a toy stream needs none."""
    toy = wildcards.dataset.startswith("toy-")
    return [] if toy else f"results/{wildcards.scale}/datasets/{wildcards.dataset}.npz"


def cell_of(wildcards):
    """The cell whose hash a run's path ends in."""
    return known("cell", wildcards.run.rpartition("-")[2], plan(wildcards.scale).cells)


def inputs_of_run(wildcards):
    """What the block of seeds that wildcards name is trained on."""
    return run_inputs(plan(wildcards.scale), cell_of(wildcards), block_seeds(wildcards.block))


def search_of(wildcards):
    """The selection that wildcards name."""
    return known("selection", f"{wildcards.paper}/{wildcards.search}", plan(wildcards.scale).selections)


def net_of(wildcards):
    """The net that wildcards name."""
    return known("net", f"{wildcards.paper}/{wildcards.dataset}", plan(wildcards.scale).nets)


def target_of(wildcards):
    """The target that wildcards name."""
    targets = plan(wildcards.scale).targets
    of_paper = {name: target for name, target in targets.items() if target.paper == wildcards.paper}
    return known("target", f"{wildcards.paper}/{wildcards.target}", of_paper or targets)


def rendered_from(wildcards):
    """A target's metrics and, where the paper prints numbers, those."""
    target = target_of(wildcards)
    return [target.metrics, *([target.reported] if target.reported else [])]


def reported_on(wildcards):
    """The files that a scale's report shows, those of the configured papers."""
    shown = [*outputs(plan(wildcards.scale)), *(f"results/{wildcards.scale}/targets/{p}/claims.csv" for p in CLAIMING)]
    return [path for path in shown if Path(path).suffix in (".csv", ".html", ".svg")]
