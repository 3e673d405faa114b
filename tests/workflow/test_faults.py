"""A clock that goes backwards, memory that runs out and trainings that diverge: each is told, and nothing is lost."""

import csv
import json
import os
import time

import pytest

DATA = "results/mini/datasets/mnist.npz"
METRICS = "results/mini/metrics/mini/table1.csv"
TABLE = "results/mini/targets/mini/table1.csv"


@pytest.fixture
def built_by(commands):
    """Single commands that must succeed."""

    def run(project, stage, out):
        done = commands.clpapers(project, stage, "--out", out)
        assert done.returncode == 0, done.said

    return run


@pytest.fixture
def runs_of(built_by):
    """The files of the runs behind the table, as the configuration now has them: er's seeds, then ace's."""

    def runs(project):
        built_by(project, "index", "results/mini/runs/index.csv")
        with (project.folder / "results/mini/runs/index.csv").open() as file:
            cells = [row["path"] for row in csv.DictReader(file) if row["targets"] == "mini/table1"]
        return [f"{path}/seed{seed}.json" for path in sorted(cells, reverse=True) for seed in (0, 1)]

    return runs


def test_a_clock_that_was_set_back(built, finished):
    """What was made by the fast clock is an hour ahead of now: neither that nor what is made of it is made twice."""
    ahead = time.time() + 3600
    for folder in ("datasets", "streams"):
        for path in (built.folder / "results/mini" / folder).rglob("*"):
            os.utime(path, (ahead, ahead))
    assert built.plan() == []
    for path in (built.folder / "results/mini").glob("*/mini/table1.*"):
        path.unlink()
    for path in (built.folder / "results/mini/runs/mnist").rglob("er-*/seed0.*"):
        path.unlink()
    assert built.stages() == {"runs": 1, "metrics": 1, "targets": 3}
    built.build()
    assert built.results() == finished.results()
    assert built.plan() == []
    for path in (built.folder / "results").rglob("*.record.json"):
        record = json.loads(path.read_text())
        assert 0 <= record["wall_seconds"] < 3600
    done = built.clpapers("audit", "--scale", "mini", "mini/table1")
    assert done.returncode == 0, done.stdout


def test_memory_runs_out_in_one_job(project, commands, built_by, runs_of):
    """A net too large for what memory is left: no result of that seed, least of all one that says so for good."""
    project.edit("config/papers/mini.yaml", "hidden: [4]", "hidden: [2000, 2000]")
    first, second, *_ = runs_of(project)
    built_by(project, "dataset", DATA)
    for seed in (0, 1):
        built_by(project, "stream", f"results/mini/streams/mnist/stf-0.05-n30/seed{seed}.npz")
    before = project.results()
    done = commands.clpapers(project, "train", "--out", first, AS=12 << 20)
    assert done.returncode == 2
    assert done.line.startswith(f"{first}: memory did not suffice; run fewer jobs at once (snakemake --cores 1)")
    assert done.line.endswith("and give the same command again")
    assert project.results() == before
    for out in (first, second):
        built_by(project, "train", out)
    disturbed = (project.folder / first).read_bytes()
    assert b"out_of_memory" not in disturbed
    (project.folder / first).unlink()
    built_by(project, "train", first)
    assert (project.folder / first).read_bytes() == disturbed


@pytest.mark.parametrize("stage", ["metrics", "dataset"])
def test_memory_runs_out_elsewhere(stage, built, finished, commands):
    """Without torch's own error for it."""
    out = METRICS if stage == "metrics" else DATA
    (built.folder / out).unlink()
    before = built.results()
    done = commands.clpapers(built, stage, "--out", out, AS=0)
    assert done.returncode == 2, done
    assert done.line.startswith(f"{out}: memory did not suffice")
    assert built.results() == before
    assert commands.clpapers(built, stage, "--out", out).returncode == 0
    assert built.results() == finished.results()


def test_trainings_that_diverge(built, finished, built_by, runs_of):
    """Every loss is soon no number: that is a result, and told as one; it spoils nothing else."""
    built.edit("config/papers/mini.yaml", "learning_rate: 0.1", "learning_rate: 1.0e+30")
    runs = runs_of(built)
    for run in runs:
        built_by(built, "train", run)
        (entry,) = json.loads((built.folder / run).read_text(), parse_constant=pytest.fail)["seeds"]
        assert 0 <= entry["diverged"] <= entry["steps"]
    for stage, out in (("metrics", METRICS), ("table", TABLE)):
        built_by(built, stage, out)
    assert "nan" not in (built.folder / TABLE).with_suffix(".md").read_text().lower()

    built.edit("config/papers/mini.yaml", "learning_rate: 1.0e+30", "learning_rate: 0.1")
    assert runs_of(built) != runs
    for stage, out in (("metrics", METRICS), ("table", TABLE)):
        built_by(built, stage, out)
    for run in runs:
        (built.folder / run).unlink()
    assert built.results() == finished.results()
