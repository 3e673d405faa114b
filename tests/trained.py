"""A small project under git, with the finished runs of one table, and what tests do to its crates."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from workflow.project import Project

from clpapers import cli, provenance
from clpapers.archive.imported import folder_of
from clpapers.config.plan import Plan
from clpapers.graph import jobs

PARTS = ("config", "workflow", "LICENSE", "CITATION.cff", ".gitignore")
RUNS = Path("results/mini/runs")
PUBLISHED = Path("results/mini/published")


def crate():
    """The only crate that is published, in the working folder."""
    (path,) = PUBLISHED.glob("*.zip")
    return path


def git(*arguments):
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    done = subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make(*targets):
    """Make, in the working folder, what runs are made of, and the runs of targets."""
    plan = Plan("mini", ["mini"])
    wanted = [plan.targets[f"mini/{name}"] for name in targets]
    files = [path for target in wanted for _, cell in target.cells for path in plan.results(cell, target.seeds)]
    for path in dict.fromkeys(files):
        train(plan, path)


def train(plan, path):
    """Make a file after those that it is made of."""
    job = jobs.job_of(plan, path)
    for each in job.inputs:
        if not each.exists():
            train(plan, each)
    assert cli.main([job.command, "--out", str(path)]) == 0


def project_in(place):
    """The folder of the project, its runs trained at its first commit."""
    project = Project.create(place / "whole")
    folder = place / "project"
    folder.mkdir()
    for part in PARTS[:-1]:
        shutil.move(project.folder / part, folder / part)
    shutil.rmtree(project.folder)
    (folder / ".gitignore").write_text("/results/\n")
    before = Path.cwd()
    os.chdir(folder)
    try:
        git("init", "--quiet")
        git("add", ".")
        git("commit", "--quiet", "--message", "First")
        jobs._at_paper_scale.cache_clear()
        make("table1")
    finally:
        os.chdir(before)
    return folder


def clone(folder, place, *, results=False):
    """The project once more, by default without results; of these `published` goes along."""
    place.mkdir(parents=True, exist_ok=True)
    for part in (*PARTS, ".git", *(["results"] if results else [])):
        copy = shutil.copytree if (folder / part).is_dir() else shutil.copy2
        copy(folder / part, place / part)
    return place


def touch(path):
    """Set its times to now by the clock of records; the file system's own clock may be some milliseconds behind."""
    now = time.time_ns()
    os.utime(path, ns=(now, now))


def runs(folder=RUNS):
    """The result files of runs, sorted."""
    return sorted(path for path in folder.glob("*/*/*-*/seed*.json") if not path.name.endswith(".record.json"))


def edit(path, change):
    """Change a run's result; its record, sealed anew, holds what it is now."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    place = provenance.record_path(path)
    record = json.loads(place.read_text())
    record["outputs"][0] |= {"sha256": provenance.sha256(path), "bytes": path.stat().st_size}
    del record["seal"]
    place.write_text(json.dumps(record | {"seal": provenance.seal(record)}, indent=1) + "\n")


def fewer_right(content, by=1):
    """Of a result's first seed, fewer items right at the end."""
    counts = content["seeds"][0]["test"]["none"]
    most = max(range(len(counts["correct"])), key=counts["correct"].__getitem__)
    counts["correct"][most] -= by


OWN = Plan.results


def imported_first(plan, cell, seeds=None):
    """`Plan.results` with imported runs in place of those that could be trained, where they are there."""
    files = OWN(plan, cell, seeds)
    places = {path: folder_of(plan.scale) / Path(*path.parts[3:]) for path in files}
    return {place if (place := places[path]).exists() else path: given for path, given in files.items()}


def entry_of(seed=0):
    """What training writes of a seed, by hand: two tasks of two classes each, two testing events, three probes."""
    return {
        "seed": seed,
        "steps": 4,
        "test": {"none": {"correct": [3, 1, 0, 2], "total": [4, 4, 4, 4], "chance": 0.25}},
        "probes": {"position": [0, 3, 6], "time": [4, 8], "correct": ["gA==", "oA=="]},
        "online": {"correct": [1, 0, 2, 1], "loss": [1.5, None, 0.25, 0.125]},
        "memory": {"items": 2, "bytes": 32, "per_class": [1, 1, 0, 0]},
        "oracle": {"task_of_class": None, "changes": 1},
        "learner": {},
        "learner_bytes": {"training": 64, "testing": 32},
        "diverged": None,
        "events": {
            "time": [4, 8],
            "correct": [[4, 2, 0, 0], [3, 1, 0, 2]],
            "total": [4, 4, 4, 4],
            "seen": [[True, True, False, False], [True, True, True, True]],
            "unknown_auroc": [0.75, None],
            "learner_bytes": [{"training": 64, "testing": 32}] * 2,
        },
        "tasks": {
            "classes": [[0, 1], [2, 3]],
            "total": [[4, 4], [4, 4]],
            "correct": [[[4, 2], [1, 2]], [[3, 1], [4, 4]]],
            "open": [[[4, 2], [0, 0]], [[3, 1], [0, 2]]],
            "shots": [[[0, 1], [2, 2]], [[1, 2], [3, 4]]],
            "mutual_information": [[0.5, None], [0.25, 0.0]],
            "memory": {"total": [1, 1], "correct": [[1], [0, 1]]},
        },
        "unanswered": {"online": 1, "tests": 2},
    }


def result_of(*entries):
    """A result file's content with entries for seeds, by default with one."""
    asked = {"points": 2, "probes": 3, "test": None, "shots": 1, "every": 4}
    return {"cell": {"evaluation": asked}, "seeds": list(entries) or [entry_of()]}
