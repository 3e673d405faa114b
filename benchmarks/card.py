"""A lent card's first quarter of an hour: tests, step times, then a bundle's runs, which go on between the calls.

    python benchmarks/card.py begin BUNDLE.tgz --minutes 12 --out OUT # tests, step times, then the bundle, left at work
    python benchmarks/card.py wait --seconds 200 --out OUT            # crates and logs so far
    python benchmarks/card.py begin BUNDLE.tgz --rehearse --out OUT       # the same on a CPU, each part cut short

Each part has a limit of its own, and a part that fails does not stop the next. `clpapers pack agem desiderata rules stf
--card --hours 0.2 --out BUNDLE.tgz` packs the missing runs that decide most.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = Path(os.environ.get("TMPDIR", "/tmp"), "clpapers-card")  # where the bundle is at work, and what it has brought
LARGEST = 15 << 20  # bytes of a log that is taken along


def part(name: str, command: list, out: Path, seconds: float) -> None:
    """Run a part with a limit; its output goes to a file and its last lines to the terminal."""
    began, log = time.monotonic(), out / f"{name}.log"
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    told = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    with log.open("w") as file:
        try:
            code: object = subprocess.run(
                [sys.executable, *map(str, command)], stdout=file, stderr=subprocess.STDOUT, timeout=seconds,
                env=os.environ | told, cwd=ROOT,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = f"cut off after {seconds} s"
    lines = log.read_text(errors="replace").splitlines()
    print(f"== {name}: {code}, {time.monotonic() - began:.0f} s", *lines[-12:], sep="\n", flush=True)


def begin(options: argparse.Namespace) -> None:
    """Run the parts as they are named: tests, step times; a bundle goes on in a session of its own, beside the rest."""
    ends = time.time() + 60 * options.minutes
    for name in options.parts:
        if name == "tests":
            shown = ["--collect-only", "-q"] if options.rehearse else ["-n", str(options.workers)]
            part(name, ["-m", "pytest", "-p", "no:cacheprovider", "tests/runs/test_gpu.py", *shown], options.out, 75)
        elif name == "steps":
            steps = [
                "benchmarks/card_steps.py",
                *options.sections,
                "--out",
                options.out,
                "--minutes",
                options.steps / 60,
            ]
            part(name, [*steps, *(["--rehearse"] if options.rehearse else [])], options.out, options.steps + 20)
        else:
            start(options, (ends - time.time()) / 60)
    wait(options)


def start(options: argparse.Namespace, minutes: float) -> None:
    """Start the bundle, in a session of its own."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with tarfile.open(options.bundle) as tar:
        tar.extractall(PLACE, filter="data")
    (jobs,) = PLACE.glob("*/jobs.json")
    command = [sys.executable, "-m", "clpapers.cli", "train", "--jobs", jobs.name, "--until", f"{minutes:.2f}"]
    command += ["--out", PLACE / "out"]
    command += ["--abreast", options.abreast] if options.abreast else []
    command += ["--without", *options.without] if options.without else []
    with (PLACE / "run.log").open("a") as log:
        process = subprocess.Popen(
            [*map(str, command)], stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            cwd=jobs.parent, env=os.environ | {"PYTHONPATH": str(jobs.parent / "src")},
        )  # fmt: skip
    print(f"== the bundle is at work for {minutes:.1f} minutes, process {process.pid}", flush=True)


def wait(options: argparse.Namespace) -> None:
    """Wait, then take along the crates and logs so far."""
    ends = time.monotonic() + options.seconds
    log = PLACE / "run.log"
    while time.monotonic() < ends and not (log.is_file() and "jobs done" in log.read_text()):
        time.sleep(1)
    for file in [log, *sorted((PLACE / "out").glob("[!.]*"))]:
        if file.is_file() and file.suffix in (".zip", ".json", ".log") and file.stat().st_size < LARGEST:
            if file.name.startswith("process-"):
                with (options.out / "processes.log").open("a") as every:
                    every.write(file.read_text(errors="replace")[-3000:])
            else:
                shutil.copy(file, options.out / file.name)
    if log.is_file():
        print(*log.read_text(errors="replace").splitlines()[-25:], sep="\n", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    first, later = commands.add_parser("begin"), commands.add_parser("wait")
    first.add_argument("bundle", type=Path, help="a bundle of `clpapers pack`")
    first.add_argument("--minutes", type=float, default=12.0, help="from now until the bundle's runs end")
    first.add_argument("--steps", type=float, default=130.0, help="seconds for step times")
    first.add_argument("--parts", nargs="+", default=["tests", "steps", "bundle"], help="in this order")
    first.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="processes of the tests")
    first.add_argument(
        "--sections", nargs="+", default=["bits", "steps", "launches", "stacks"], help="of card_steps.py"
    )
    first.add_argument("--without", nargs="+", default=[], help="as `train --jobs` has it")
    first.add_argument("--abreast", type=int)
    first.add_argument("--rehearse", action="store_true")
    for each in (first, later):
        each.add_argument("--seconds", type=float, default=0.0, help="to wait before crates are taken along")
        each.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    begin(options) if options.command == "begin" else wait(options)


if __name__ == "__main__":
    main()
