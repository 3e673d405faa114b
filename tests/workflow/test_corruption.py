"""Files that were damaged since they were made: whoever reads one refuses it, and says which, and what to do."""

import os

import pytest

DATA = "results/mini/datasets/mnist.npz"
STREAM = "results/mini/streams/mnist/stf-0.05-n30/seed0.npz"
METRICS = "results/mini/metrics/mini/table1.csv"
TABLE = "results/mini/targets/mini/table1.csv"

DAMAGES = {
    "truncated": lambda content: content[: len(content) // 2],
    "a bit flipped": lambda content: (
        content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 1]) + content[len(content) // 2 + 1 :]
    ),
    "emptied": lambda content: b"",
}


def damage(path, how):
    """Damage a file without a change of its times, as a disk does."""
    before = path.stat()
    path.write_bytes(DAMAGES[how](path.read_bytes()))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def run_of(project):
    (run,) = (project.folder / "results/mini/runs/mnist").glob("*/er-*/seed0.json")
    return str(run.relative_to(project.folder))


RUN = "a run"  # whose path has a digest
READERS = {  # what can be damaged, by name, each with what reads it: stage and file
    "data set, read for a stream": (DATA, "stream", STREAM),
    "data set, read for a run": (DATA, "train", RUN),
    "stream": (STREAM, "train", RUN),
    "result": (RUN, "metrics", METRICS),
    "metrics, read for a table": (METRICS, "table", TABLE),
    "metrics, read for a comparison": (METRICS, "reported", TABLE.replace("csv", "reported.csv")),
    "metrics, read for pairs": (METRICS, "paired", TABLE.replace("csv", "paired.csv")),
    "record of a data set": (DATA.replace("npz", "record.json"), "stream", STREAM),
    "record of a result": (f"{RUN}'s record", "metrics", METRICS),
}


@pytest.mark.parametrize("what", READERS)
def test_what_is_damaged_is_not_read(what, built, finished, commands):
    run = run_of(built)
    paths = {RUN: run, f"{RUN}'s record": run.replace("json", "record.json")}
    broken, stage, out = (paths.get(each, each) for each in READERS[what])
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
    stream, run = built.folder / STREAM, built.folder / run_of(built)
    damage(stream, "a bit flipped")
    for path in (run, built.folder / METRICS, built.folder / TABLE):
        path.unlink()
    before = built.results()
    done = built.snakemake(TABLE, "--cores", "1")
    assert done.returncode == 1
    assert f"clpapers: {STREAM}: not the bytes that its record holds: damaged or edited since; delete it" in done.stdout
    assert "Traceback" not in done.stdout
    assert built.results() == before
    stream.unlink()
    done = built.snakemake(TABLE, "--cores", "2")
    assert done.returncode == 0, done.stdout
    assert built.results() == finished.results()


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_result_that_nobody_reads_any_more_is_found_by_the_audit(how, built):
    damage(built.folder / run_of(built), how)
    done = built.clpapers("audit", "--scale", "mini", "mini/table1")
    assert done.returncode == 1
    assert f"failure: {run_of(built)}: edited: not the bytes that its record holds; snakemake " in done.stdout
