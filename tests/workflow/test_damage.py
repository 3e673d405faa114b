"""Files damaged since they were made, a clock set back, memory that runs out, trainings that diverge: each is told."""

import csv
import json
import os
import time

import pytest
from world import DATA, INDEX, METRICS, PAPER, STREAM, TABLE

DAMAGES = {
    "truncated": lambda head, tail: head,
    "a bit flipped": lambda head, tail: head + bytes([tail[0] ^ 1]) + tail[1:],
    "emptied": lambda head, tail: b"",
}
RUN = "a run"  # whose path has a digest
READERS = {  # what can be damaged, by name, each with what reads it: stage and file
    "data set, read for a stream": (DATA, "stream", STREAM),
    "data set, read for a run": (DATA, "train", f"{RUN}.json"),
    "stream": (STREAM, "train", f"{RUN}.json"),
    "result": (f"{RUN}.json", "metrics", METRICS),
    "metrics, read for a table": (METRICS, "table", TABLE),
    "metrics, read for a comparison": (METRICS, "reported", TABLE.replace("csv", "reported.csv")),
    "metrics, read for pairs": (METRICS, "paired", TABLE.replace("csv", "paired.csv")),
    "record of a data set": (DATA.replace("npz", "record.json"), "stream", STREAM),
    "record of a result": (f"{RUN}.record.json", "metrics", METRICS),
}


def damage(path, how):
    """Damage a file without a change of its times, as a disk does."""
    before, content = path.stat(), path.read_bytes()
    half = len(content) // 2
    path.write_bytes(DAMAGES[how](content[:half], content[half:]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("what", READERS)
def test_what_is_damaged_is_not_read(what, built, finished, commands):
    run = next(iter(built.runs("er")))
    broken, stage, out = (each.replace(RUN, run.removesuffix(".json")) for each in READERS[what])
    path, theirs = built.folder / broken, finished.results()
    sound = path.read_bytes()
    for how in DAMAGES:
        damage(path, how)
        before = built.results()
        done = commands.clpapers(built, stage, "--out", out)
        assert done.returncode == 2, (how, done)
        assert done.line.startswith((f"{broken}: not ", f"{broken}: its seal is not ")), how
        assert "; delete it and " in done.line, how
        assert built.results() == before, how  # nor is what there was of it touched
        path.write_bytes(sound)
    assert commands.clpapers(built, stage, "--out", out).returncode == 0
    assert built.results() == theirs


def test_the_remedy_is_one(built, finished):
    """Damaged while all that was made of it is gone: Snakemake shows the line, and once the file is deleted goes on."""
    stream = built.folder / STREAM
    damage(stream, "a bit flipped")
    for path in (next(iter(built.runs("er"))), METRICS, TABLE):
        (built.folder / path).unlink()
    before = built.results()
    done = built.snakemake(TABLE, "--cores", "1")
    assert done.returncode == 1
    assert f"clpapers: {STREAM}: not the bytes that its record holds: damaged or edited since; delete it" in done.stdout
    assert "Traceback" not in done.stdout
    assert built.results() == before
    stream.unlink()
    built.build(TABLE)
    assert built.results() == finished.results()


# --- the machine -------------------------------------------------------------------------------------------------


def test_a_clock_that_was_set_back(built, finished):
    """Files of the fast clock are an hour ahead of now: neither they nor what is made of them is made twice."""
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
        assert 0 <= json.loads(path.read_text())["wall_seconds"] < 3600
    built.audit("mini/table1")


@pytest.fixture
def make(commands):
    """Single commands that must succeed, each a stage and a file."""

    def run(project, *made):
        for stage, out in made:
            done = commands.clpapers(project, stage, "--out", out)
            assert done.returncode == 0, done.said

    return run


@pytest.fixture
def runs_of(make):
    """The files of the runs behind the table, as the configuration now has them: er's seeds, then ace's."""

    def runs(project):
        make(project, ("index", INDEX))
        lines = csv.DictReader(project.read(INDEX).splitlines())
        cells = [row["path"] for row in lines if row["targets"] == "mini/table1"]
        return [f"{path}/seed{seed}.json" for path in sorted(cells, reverse=True) for seed in (0, 1)]

    return runs


def test_memory_runs_out_in_a_training(project, commands, make, runs_of):
    """A net too large for what memory is left: no result of that seed, least of all one that says so for good."""
    project.edit(PAPER, "hidden: [4]", "hidden: [2000, 2000]")
    out = runs_of(project)[0]
    make(project, ("dataset", DATA), ("stream", STREAM))
    before = project.results()
    done = commands.clpapers(project, "train", "--out", out, AS=12 << 20)
    assert done.returncode == 2
    assert done.line.startswith(f"{out}: memory did not suffice; run fewer jobs at once (snakemake --cores 1)")
    assert done.line.endswith("and give the same command again")
    assert project.results() == before
    contents = []
    for _ in range(2):
        make(project, ("train", out))
        contents.append(project.read(out))
        (project.folder / out).unlink()
    assert contents[0] == contents[1]
    assert "out_of_memory" not in contents[0]


@pytest.mark.parametrize(("stage", "out"), [("metrics", METRICS), ("dataset", DATA)])
def test_memory_runs_out_elsewhere(stage, out, built, finished, commands, make):
    """Without torch's own error for it."""
    (built.folder / out).unlink()
    before = built.results()
    done = commands.clpapers(built, stage, "--out", out, AS=0)
    assert done.returncode == 2, done
    assert done.line.startswith(f"{out}: memory did not suffice")
    assert built.results() == before
    make(built, (stage, out))
    assert built.results() == finished.results()


# --- the numbers -------------------------------------------------------------------------------------------------


def test_trainings_that_diverge(built, finished, make, runs_of):
    """Every loss is soon no number: that is a result, and told as one; it spoils nothing else."""
    built.edit(PAPER, "learning_rate: 0.1", "learning_rate: 1.0e+30")
    runs, table = runs_of(built), [("metrics", METRICS), ("table", TABLE)]
    make(built, *(("train", run) for run in runs), *table)
    for run in runs:
        (entry,) = json.loads(built.read(run), parse_constant=pytest.fail)["seeds"]
        assert 0 <= entry["diverged"] <= entry["steps"]
    assert "nan" not in built.read(TABLE.replace("csv", "md")).lower()

    built.edit(PAPER, "learning_rate: 1.0e+30", "learning_rate: 0.1")
    assert runs_of(built) != runs
    make(built, *table)
    for run in runs:
        (built.folder / run).unlink()
    assert built.results() == finished.results()


def test_too_few_test_items_are_told_in_one_line(project, make, commands, runs_of):
    """As only the data tell: one test item for two tasks."""
    project.edit(PAPER, "name: stf, mu_sigma: 0.05, length: 30", "name: split, tasks: 2, length: 30")
    project.edit(PAPER, "test: 20", "test: 1, shots: 1")
    run = runs_of(project)[0]
    make(project, ("dataset", DATA), ("stream", "results/mini/streams/mnist/split-2-n30/seed0.npz"))
    done = commands.clpapers(project, "train", "--out", run)
    assert done.returncode == 2
    assert done.line.startswith(f"{run}: evaluation.test: seed 0 has no item for its task ")
