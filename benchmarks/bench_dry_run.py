"""The cost of planning very many runs, beside as many trivial jobs: `python benchmarks/bench_dry_run.py`.

A run is one learner on one stream with one seed. The configuration of a temporary copy of the project asks for the
runs: a hundred seeds of one paper's grid of learners, memory sizes and orders. `user` and `system` are processor
seconds; on an idle machine they are the wall seconds.
"""

import argparse
import re
import shutil
import tempfile
from pathlib import Path

import yaml
from bench_jobs import Cost, run
from tabulate import tabulate

COPIED = ("Snakefile", "rules", "workflow", "config", "profiles", "envs")
SEEDS, LEARNERS, ORDERS = 100, ("er", "ace"), 10  # memory sizes make up the rest of the grid
SETTINGS = "scale: many\npapers: [many]\ndevice: cpu\ndata_folder: data\ndownloads: downloads\n"
PAPER = {
    "paper": "many",
    "title": "A paper of very many runs",
    "defaults": {
        "order": {"name": "stf", "length": 30},
        "oracle": {"name": "none"},
        "restriction": {"name": "single_head"},
        "budget": {"optimizer": "sgd", "learning_rate": 0.1, "batch": 10, "replay_batch": 10},
        "scaling": "symmetric",
        "evaluation": {"points": 3, "probes": 10, "test": 20},
        "precision": "float32",
    },
    "datasets": {"mnist": {"net": {"name": "mlp", "hidden": [4]}}},
    "learners": {"er": {"forward": "separate"}, "ace": {"forward": "separate"}},
    "targets": {},
}
TARGET = {
    "title": "Table 1",
    "caption": "All methods.",
    "section": "1",
    "kind": "table",
    "measure": "learning",
    "render": "results_table",
    "metrics": ["final_accuracy"],
    "names": {},
}
BARE = """\
rule all:
    input:
        expand("{{job}}", job=range({jobs})),
rule job:
    output:
        "{{job}}",
    shell:
        "touch {{output}}"
"""


def configure(folder: Path, runs: int, seeds_per_job: int | str) -> None:
    """Copy the project into `folder` and have it ask for so many runs, a multiple of 2,000."""
    for part in COPIED:
        (shutil.copytree if Path(part).is_dir() else shutil.copy)(part, folder / part)
    grid = {
        "dataset": ["mnist"],
        "learner": list(LEARNERS),
        "order.mu_sigma": [round(0.01 * (i + 1), 2) for i in range(ORDERS)],
        "budget.memory": [10 * (i + 1) for i in range(runs // (SEEDS * len(LEARNERS) * ORDERS))],
    }
    scale = {
        "description": f"{runs} runs",
        "seeds": f"0-{SEEDS - 1}",
        "seeds_per_job": seeds_per_job,
        "sources": "stand_in",
        "stand_ins": {"mnist": {"train_per_class": 5, "test_per_class": 2}},
    }
    paper = PAPER | {"targets": {"table1": TARGET | {"grid": grid}}}
    for file, content in (("scales/many", scale), ("papers/many", paper)):
        (folder / f"config/{file}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    (folder / "config/config.yaml").write_text(SETTINGS, encoding="utf-8")


def dry_run(folder: Path, *arguments: str, module: str = "clpapers.cli.snakemake") -> tuple[int, Cost]:
    """A dry run in `folder` that prints counts of jobs only: how many there are, and the cost of the count."""
    cost = run("-m", module, "all", "-n", *arguments, "--quiet", "rules", folder=folder)
    return int(re.findall(r"^total +(\d+)$", cost.printed, re.MULTILINE)[-1]), cost


def measure(runs: int, seeds_per_job: int | str, *arguments: str) -> list[tuple]:
    """Two rows: the dry run of so many runs, and the dry run of a bare Snakefile with as many jobs."""
    with tempfile.TemporaryDirectory() as name:
        configure(Path(name), runs, seeds_per_job)
        jobs, cost = dry_run(Path(name), *arguments)
    label = f"{runs} runs, seeds_per_job {seeds_per_job} {' '.join(arguments)}"
    return [row(label, jobs, cost), row("  as many bare jobs", jobs, bare_run(jobs))]


def row(label: str, jobs: int, cost: Cost) -> tuple:
    """A row of the table."""
    return label, jobs, cost.wall, cost.user, cost.system, cost.peak


def bare_run(jobs: int) -> Cost:
    """The dry run of a bare Snakefile with so many jobs."""
    with tempfile.TemporaryDirectory() as name:
        Path(name, "Snakefile").write_text(BARE.format(jobs=jobs - 1), encoding="utf-8")
        return dry_run(Path(name), module="snakemake")[1]


def paper() -> list[tuple]:
    """Rows of the project itself, without results: the first time, then with the files kept by it, and bare jobs."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for part in COPIED:
            (shutil.copytree if Path(part).is_dir() else shutil.copy)(part, Path(name, part))
        for label, hours in (("hours=all, the first time", "all"), ("hours=all", "all"), ("hours=0.5", "0.5")):
            jobs, cost = dry_run(Path(name), "--config", f"hours={hours}")
            rows.append(row(f"scale `paper`, {label}", jobs, cost))
    return [*rows, row("  as many bare jobs as hours=all", rows[1][1], bare_run(rows[1][1]))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=int, nargs="*", default=None, help="multiples of 2,000")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    options = parser.parse_args()
    rows = paper()
    for runs in options.runs or ([10_000] if options.quick else [100_000]):
        rows += measure(runs, "auto", "--config", "device=cuda")
        rows += measure(runs, 1)
    print("Dry runs: `snakemake all -n --quiet rules` once each; `auto` as on a GPU")
    headers = ["", "jobs", "wall s", "user s", "system s", "peak MB"]
    print(tabulate(rows, headers, floatfmt=("", "", ".1f", ".1f", ".1f", ".0f")))


if __name__ == "__main__":
    main()
