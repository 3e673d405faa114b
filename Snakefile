# The front door: config in, checked; `all`, the configured papers' targets. What a rule does stands in rules/.
# config/config.yaml is read in rules/common.smk, and not by `configfile:`, which would run Python that stands in it.
include: "rules/common.smk"


wildcard_constraints:
    scale="[a-z0-9_]+",
    dataset=r"[\w-]+",
    weights=r"\w+",
    order=r"[\w.-]+",
    run=r"[a-z0-9_]+-[0-9a-f]{10}",
    block=r"seeds?\d+(-\d+)?",
    paper="[a-z0-9_]+",
    target=r"(?!claims\.)\w+",  # the table of claims is no target
    search=r"\w+-\w+",


rule all:
    default_target: True
    input:
        outputs(PLAN),
        claim_outputs(SCALE),
        f"results/{SCALE}/runs/index.csv",
        announced(),


rule requested:
    """The targets that the command line names, where a budget decides which of their runs there are."""
    input:
        requested_outputs(),
        announced(),


include: "rules/datasets.smk"
include: "rules/streams.smk"
include: "rules/gans.smk"
include: "rules/runs.smk"
include: "rules/metrics.smk"
include: "rules/targets.smk"
include: "rules/claims.smk"
include: "rules/report.smk"
include: "rules/audit.smk"


onstart:
    if workflow.is_main_process and workflow.local_exec:
        if CUDA:
            cards.start_mps()  # first, as the server takes jobs of its own environment alone
        server.start()  # jobs of this machine begin in no time


onsuccess:
    progress.end(workflow.logger_manager.get_log_handlers())
    if preparation.builds_papers(REQUESTED):
        shell(
            f"clpapers summary --scale {SCALE} {' '.join(SETTINGS['papers'])} || true"
        )  # the build is complete anyway
    elif not {"-t", "--touch"}.intersection(sys.argv):
        print(preparation.conclusion(REQUESTED))
    if OWN:
        print("\n".join(user_methods.ending(PLAN, SETTINGS["papers"], BUDGET.made, REQUESTED)))


onerror:
    progress.end(workflow.logger_manager.get_log_handlers())
    sys.stderr.write(silent_failures(log))
