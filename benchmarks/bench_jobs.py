"""The cost of jobs, their scheduler and a paper-scale dry run beside training: `python benchmarks/bench_jobs.py`.

A job is timed on the smallest cell of the smoke scale, in a temporary folder. A person waits for
wall seconds; on an idle machine only the CPU seconds are left of them.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from clpapers.config.plan import Plan

TIMED_TRAINING = """
import sys, time
from clpapers import cli
from clpapers.runs import loop
train = loop.train
def timed(*arguments, **options):
    started = time.perf_counter(), time.process_time()
    results = train(*arguments, **options)
    print(time.perf_counter() - started[0], time.process_time() - started[1])
    return results
loop.train = timed
sys.exit(cli.main(sys.argv[1:]))
"""


@dataclass
class Cost:
    """Wall seconds, the processor's for the program and for the system, peak memory in MB, and the output."""

    wall: float
    user: float
    system: float
    peak: float
    printed: str = ""

    @property
    def cpu(self) -> float:
        """All seconds of the processor's."""
        return self.user + self.system


def run(*command: str, folder: Path) -> Cost:
    """Run a Python command in a folder; raises `CalledProcessError` with its output where it fails."""
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *command], cwd=folder, stdout=output, stderr=subprocess.STDOUT, env=one_thread()
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read()
    if process.returncode:
        sys.stderr.write(printed)
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(wall, used.ru_utime, used.ru_stime, used.ru_maxrss / 1024, printed)


def one_thread() -> dict[str, str]:
    """The environment, with the programs that stand beside this Python on the path."""
    path, beside = os.environ["PATH"], f"{Path(sys.executable).parent}{os.pathsep}"
    return os.environ | {"PATH": path if path.startswith(beside) else beside + path, "OMP_NUM_THREADS": "1"}


def job_costs(repetitions: int) -> list[tuple]:
    """Rows (label, wall seconds, CPU seconds, peak MB): medians of alternating runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("config", "workflow"):
            shutil.copytree(part, folder / part)
        plan = Plan("smoke", ["stf"])
        cell = next(cell for cell in plan.cells.values() if cell.spec["dataset"] == "emnist")
        result = next(iter(plan.results(cell)))
        needed = [cell.dataset, *(cell.stream(seed) for seed in (0, 1))]
        for stage, path in zip(("dataset", "stream", "stream"), needed):
            run("-m", "clpapers.cli", stage, "--out", str(path), folder=folder)
        imports, jobs, training = [], [], []
        for _ in range(repetitions):
            imports.append(run("-c", "import torch", folder=folder))
            job = run("-c", TIMED_TRAINING, "train", "--out", str(result), folder=folder)
            wall, cpu = map(float, job.printed.split()[-2:])
            jobs.append(job)
            training.append(Cost(wall, cpu, 0, job.peak))
    overheads = [Cost(j.wall - t.wall, j.cpu - t.cpu, 0, j.peak) for j, t in zip(jobs, training)]
    return [
        row("python -c 'import torch'", imports),
        row("clpapers train, smallest cell", jobs),
        row("  of which training", training),
        row("  of which overhead", overheads),
    ]


WAITING = """
rule all:
    input: expand("{{i}}", i=range({jobs}))
rule one:
    output: "{{i}}"
    shell: "sleep 0.2; touch {{output}}"
"""
STARTED = "import sys; from {} import {} as run; run(sys.argv[1:])"


def scheduler(jobs: int) -> list[tuple]:
    """Rows for a build of jobs that sleep, two at a time, by unchanged Snakemake and as the project starts it."""
    rows = []
    both = ("by Snakemake's own main", "snakemake.cli", "main"), ("as here", "clpapers.cli.snakemake", "run")
    for label, module, main in both:
        with tempfile.TemporaryDirectory() as name:
            Path(name, "Snakefile").write_text(WAITING.format(jobs=jobs), encoding="utf-8")
            arguments = ("--cores", "2", "--scheduler", "greedy", "--quiet")
            cost = run("-c", STARTED.format(module, main), *arguments, folder=Path(name))
            rows.append(row(f"{jobs} jobs of 0.2 s, {label}", [cost]))
    return rows


def row(label: str, costs: list[Cost]) -> tuple:
    """Medians of some runs."""
    return (label, *(statistics.median(getattr(c, key) for c in costs) for key in ("wall", "cpu", "peak")))


def dry_run() -> tuple:
    """A row for the dry run of everything at paper scale."""
    cost = run("-m", "snakemake", "-n", "--quiet", "all", "--config", "scale=paper", folder=Path.cwd())
    return row("snakemake -n all, scale=paper", [cost])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    rows = [*job_costs(3 if options.quick else 9), dry_run(), *scheduler(200 if options.quick else 500)]
    print("Processes: medians; dry run and builds once")
    print(tabulate(rows, ["", "wall s", "CPU s", "peak MB"], floatfmt=("", ".2f", ".2f", ".0f")))


if __name__ == "__main__":
    main()
