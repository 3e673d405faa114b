"""How long a person waits for a command, here and in other checkouts: `python benchmarks/bench_start.py [FOLDER …]`.

Each command runs in this folder and in each other one, built by `make env`, by turns, on one thread. The table has the
medians of wall seconds and of CPU seconds, children included, and the ratio of the CPU seconds here to those there.
"""

import argparse
import os
import shlex
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tabulate import tabulate

COMMANDS = (
    "clpapers --help",
    "clpapers next --hours 8",
    "clpapers targets --scale paper",
    "clpapers try examples/der_pp.py",
    "snakemake all -n --cores 1",
    "snakemake stf/table1 -n --cores 1 --config hours=all",
    "snakemake results/smoke/metrics/streaming/figure1.csv --cores 1 --force",
)


def seconds(command: str, project: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a command in a project's folder; raises `CalledProcessError` where it fails."""
    with tempfile.TemporaryFile() as output:
        path = os.pathsep.join([str(project / ".venv/bin"), os.environ["PATH"]])
        began = time.perf_counter()
        process = subprocess.Popen(
            shlex.split(command),
            cwd=project,
            env=os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"},
            executable=project / ".venv/bin" / command.split()[0],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        if process.returncode:
            output.seek(0)
            raise subprocess.CalledProcessError(process.returncode, command, output.read().decode())
    return wall, used.ru_utime + used.ru_stime


def row(command: str, projects: list[Path], repetitions: int) -> list:
    """A command's medians: of this project, then those and the ratio of each other one."""
    taken: list[list[tuple[float, float]]] = [[] for _ in projects]
    for _ in range(repetitions):
        for project, each in zip(projects, taken):
            each.append(seconds(command, project))
    (wall, cpu), *others = ([statistics.median(column) for column in zip(*each)] for each in taken)
    return [command, wall, cpu, *(value for there in others for value in (*there, cpu / there[1]))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="another checkout with its environment")
    parser.add_argument("--quick", action="store_true", help="each command once")
    options = parser.parse_args()
    projects = [Path.cwd(), *(folder.absolute() for folder in options.folders)]
    header = ["", "wall s", "CPU s", *(name for each in projects[1:] for name in (each.name, "CPU s", "ratio"))]
    rows = [row(command, projects, 1 if options.quick else 5) for command in COMMANDS]
    print(tabulate(rows, header, floatfmt=".2f"))


if __name__ == "__main__":
    main()
