"""The runs of the working folder's project and its crates, and what tests do to them."""

import copy
import json
import os
import time
from pathlib import Path

from clpapers import cli, provenance
from clpapers.graph import jobs
from world import HERE, git

RUNS = Path("results/mini/runs")
PUBLISHED = Path("results/mini/published")
__all__ = ["PUBLISHED", "RUNS", "git"]


def crate():
    """The only crate that is published."""
    (path,) = PUBLISHED.glob("*.zip")
    return path


def make(plan, path):
    """Make a file, where it is not there, after those that it is made of."""
    if not path.exists():
        job = jobs.job_of(plan, path)
        for each in job.inputs:
            make(plan, each)
        assert cli.main([job.command, "--out", str(job.outputs[0])]) == 0


def touch(path):
    """Set its times to now by the clock of records; the file system's own clock may be some milliseconds behind."""
    now = time.time_ns()
    os.utime(path, ns=(now, now))


def runs(folder=RUNS):
    """The result files of runs, sorted."""
    return sorted(path for path in folder.glob("*/*/*-*/seed*.json") if not path.name.endswith(".record.json"))


def forge(record, change):
    """Change a record and seal it anew."""
    content = json.loads(record.read_text())
    change(content)
    record.write_text(json.dumps(content | {"seal": provenance.seal(content)}, indent=1) + "\n")


def edit(path, change):
    """Change a run's result; its record, sealed anew, holds what it is now."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    now = {"sha256": provenance.sha256(path), "bytes": path.stat().st_size}
    forge(provenance.record_path(path), lambda record: record["outputs"][0].update(now))


def fewer_right(content, by=1):
    """Make fewer items of a result's first seed right at the end."""
    counts = content["seeds"][0]["test"]["none"]
    most = max(range(len(counts["correct"])), key=counts["correct"].__getitem__)
    counts["correct"][most] -= by


ENTRY = json.loads((HERE / "entry.json").read_text())


def entry_of(seed=0):
    """A seed's entry of a result, by hand: two tasks of two classes each, two testing events, three probes."""
    return copy.deepcopy(ENTRY) | {"seed": seed}


def result_of(*entries):
    """A result file's content with entries for seeds, by default with one."""
    asked = {"points": 2, "probes": 3, "test": None, "shots": 1, "every": 4}
    return {"cell": {"evaluation": asked}, "seeds": list(entries) or [entry_of()]}
