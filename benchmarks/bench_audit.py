"""The time of an audit: `python benchmarks/bench_audit.py`.

The script makes up files of streams and runs in a temporary project of one paper, each with a sound record. Their
number and size are options. Then `clpapers audit` runs in a process of its own, three times, and the fastest time is
printed. The files were just written, so they are read from the memory of the system, not from a disk.
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

import yaml
from bench_dry_run import LEARNERS, PAPER, SETTINGS, TARGET
from bench_jobs import run
from tabulate import tabulate

from clpapers import provenance
from clpapers.config.plan import Plan
from clpapers.graph import jobs

DATA = {"standin": True, "partial": False, "sha256": {"train": "0" * 64, "test": "0" * 64}}
DATA |= dict.fromkeys(("source", "owner", "licence", "proof"), "made up")


def configure(folder: Path, files: int) -> None:
    """Copy the configuration into `folder`; it asks for so many files: of a stream and two runs a seed, two each."""
    for part in ("config", "workflow"):
        shutil.copytree(part, folder / part)
    for paper in (folder / "config" / "papers").glob("*.yaml"):
        paper.unlink()
    scale = {"description": "many", "seeds": f"0-{files // 6 - 1}", "seeds_per_job": 1, "sources": "stand_in"}
    scale["stand_ins"] = {"mnist": {"train_per_class": 5, "test_per_class": 2}}
    target = TARGET | {
        "grid": {"dataset": ["mnist"], "learner": list(LEARNERS), "budget.memory": [10], "order.mu_sigma": [0.1]}
    }
    alone = {"description": "none", "seeds": "0-0", "sources": "real"}
    for file, content in (
        ("scales/many", scale),
        ("scales/paper", alone),
        ("papers/many", PAPER | {"targets": {"table1": target}}),
    ):
        (folder / f"config/{file}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    (folder / "config/config.yaml").write_text(SETTINGS, encoding="utf-8")


def fill(size: int) -> tuple[int, int]:
    """Make up data set, streams and runs, `size` bytes in all; returns how many files there are, and their bytes."""
    plan = Plan("many", ["many"])
    wanted = jobs.ancestors(plan, list(plan.targets.values()))
    made = [job for job in wanted.values() if job.stage in ("datasets", "streams", "runs")]
    each = os.urandom(size // sum(len(job.outputs) for job in made))
    with mock.patch.object(provenance, "git_state", return_value={"commit": None, "dirty": False}):
        for job in sorted(made, key=lambda job: ("datasets", "streams", "runs").index(job.stage)):
            given = {"settings": job.settings}
            with provenance.recording(job.stage, job.outputs, job.inputs, job.code, **given) as record:
                record["data"] = {"mnist": DATA}
                for path in job.outputs:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(str(path).encode() + each)
    found = [path for path in Path("results").rglob("*") if path.is_file()]
    return len(found), sum(path.stat().st_size for path in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200 files, 100 MB")
    parser.add_argument("--files", type=int)
    parser.add_argument("--megabytes", type=int)
    options = parser.parse_args()
    files = options.files or (200 if options.quick else 2000)
    megabytes = options.megabytes or (100 if options.quick else 1000)
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        configure(Path(place), files)
        os.chdir(place)
        count, size = fill(megabytes * 10**6)
        asked = ("-m", "clpapers.cli", "audit", "--scale", "many")
        cost = min((run(*asked, folder=Path(place)) for _ in range(3)), key=lambda cost: cost.wall)
        os.chdir(here)
    print(cost.printed.strip())
    row = [count, f"{size / 1e6:.0f}", f"{cost.wall:.2f}", f"{cost.user:.2f}", f"{cost.system:.2f}", os.cpu_count()]
    print(tabulate([row], ["files", "MB", "wall s", "user s", "system s", "cores"], tablefmt="github"))


if __name__ == "__main__":
    main()
