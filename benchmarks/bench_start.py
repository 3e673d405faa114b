"""The time of jobs as processes of their own, and from a build's server: `python benchmarks/bench_start.py`.

All jobs behind three small targets of the scale smoke are done by a server in a temporary folder. Then one of each kind
is done again by turns, by a process of its own and by the server. With the server, a
job's processor time is the sum over the process that asks, the server and its child. Its own time is the child's, from
the record.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from bench_jobs import Cost, one_thread, run
from tabulate import tabulate

from clpapers.cli import SERVER, server
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.provenance import record_path

TARGETS = ("rules/table6", "desiderata/figure4", "streaming/figure1")
KINDS = ("dataset", "stream", "train", "metrics", "figure", "table", "reported")
HEADER = ["", "wall s", "CPU s", "by the server: wall s", "CPU s", "its own CPU s", "beside them"]
CLPAPERS = str(Path(sys.executable).with_name("clpapers"))


def in_order(plan: Plan) -> list[jobs.Job]:
    """The jobs behind the targets, each after those whose files it reads."""
    found = jobs.ancestors(plan, [plan.targets[name] for name in TARGETS])
    ordered: dict[Path, jobs.Job] = {}

    def add(file: Path) -> None:
        if file in found and file not in ordered:
            for read in found[file].inputs:
                add(record_path(read))
            ordered[file] = found[file]

    for file in found:
        add(file)
    return list(ordered.values())


def cpu_seconds(process: int) -> float:
    """CPU seconds that a process has taken, and the seconds of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def done(job: jobs.Job, address: str) -> Cost:
    """Do a job, by the server at an address, or `0`."""
    os.environ[SERVER] = address
    return run(CLPAPERS, job.command, "--out", str(job.outputs[0]), folder=Path.cwd())


def rows(repetitions: int) -> list[tuple]:
    """A row a kind of job: medians of seconds, but means where the server's clock counts by hundredths."""
    plan = Plan("smoke", all_papers())
    serving = server.start()
    if serving is None:
        sys.exit("bench_start.py: no server here: it needs Linux and a folder for temporary files")
    address, made, found = os.environ[SERVER], in_order(plan), []
    for job in made:
        done(job, address)
    for kind in KINDS:
        job = next(job for job in made if job.command == kind)
        alone, served, own, since, beside = [], [], [], cpu_seconds(serving.pid), 0.0
        for _ in range(repetitions):
            alone.append(done(job, "0"))
            since = cpu_seconds(serving.pid)
            served.append(done(job, address))
            own.append(json.loads(record_path(job.outputs[0]).read_text())["cpu_seconds"])
            beside += cpu_seconds(serving.pid) - since + served[-1].cpu
        middle = [statistics.median(values) for values in ([c.wall for c in alone], [c.cpu for c in alone])]
        middle += [statistics.median(c.wall for c in served), beside / repetitions, statistics.median(own)]
        found.append((f"clpapers {kind}", *middle, middle[3] - middle[4]))
    serving.kill()
    serving.wait()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    os.environ.update(one_thread() | server.ONE_THREAD)
    with tempfile.TemporaryDirectory() as folder:
        for part in ("config", "workflow"):
            shutil.copytree(part, Path(folder, part))
        os.chdir(folder)
        print("Jobs, as processes of their own and by the server of a build: medians")
        print(tabulate(rows(3 if options.quick else 9), HEADER, floatfmt=".2f"))
        os.chdir("/")


if __name__ == "__main__":
    main()
