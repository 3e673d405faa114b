"""A disk that is full, that limits files, or that cannot be written to: one line says so, and nothing is lost."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from world import STREAM, TABLE

from clpapers.provenance import record_path


@pytest.fixture
def on_small_disk(finished, tmp_path):
    """A copy of the finished project whose results lie on a disk of their own, so many bytes larger than they are."""
    project = finished.copy(tmp_path / "project")
    results = project.folder / "results"
    taken = sum((path.stat().st_size // 4096 + 1) * 4096 for path in results.rglob("*"))
    results.rename(tmp_path / "results")
    results.mkdir()

    def mounted(spare):
        mount = ["mount", "-t", "tmpfs", "-o", f"size={taken + spare}", "tmpfs", results]
        done = subprocess.run(mount, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
        shutil.copytree(tmp_path / "results", results, dirs_exist_ok=True)
        return project

    yield mounted
    if results.is_mount():
        subprocess.run(["umount", results], check=True)


def fill(project):
    """Leave no room on the disk of the results; returns what must go for there to be some again."""
    ballast = project.folder / "results/ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    assert shutil.disk_usage(ballast).free == 0
    return ballast


@pytest.fixture
def interrupted(finished, commands):
    """Has a command make a file anew that it cannot write, and then once more; what it says the first time."""

    def made(project, stage, limited, relieved=lambda _: None):
        out = {"stream": STREAM, "train": next(iter(project.runs("er"))), "table": TABLE}[stage]
        made = [out] if stage != "table" else [TABLE.replace("csv", end) for end in ("csv", "md", "tex", "html")]
        least = min((project.folder / path).stat().st_size for path in made)
        for path in (*made, record_path(out)):
            (project.folder / path).unlink()
        given = limited(least)
        done = commands.clpapers(project, stage, "--out", out, **(given if isinstance(given, dict) else {}))
        assert done.returncode == 2
        assert not any((project.folder / path).exists() for path in made)
        relieved(given)
        theirs = finished.results()
        assert project.results() == {name: content for name, content in theirs.items() if name not in made}
        assert commands.clpapers(project, stage, "--out", out).returncode == 0
        assert project.results() == theirs
        left, whole = ({path.name for path in (each.folder / "results").rglob("*")} for each in (project, finished))
        assert left == whole
        return done.line.removeprefix(f"{out}: ")

    return made


@pytest.mark.parametrize("stage", ["stream", "train", "table"])
def test_a_full_disk(stage, on_small_disk, interrupted):
    project = on_small_disk(1 << 16)
    said = interrupted(project, stage, lambda _: fill(project), Path.unlink)
    assert said.startswith("No space left on device; free some space and give the same command")


@pytest.mark.parametrize("stage", ["stream", "train", "table"])
def test_a_limit_in_the_middle_of_a_file(stage, built, interrupted):
    """The first bytes go through and the others do not, for which no disk of one's own is needed."""
    said = interrupted(built, stage, lambda least: {"FSIZE": least - 1})
    assert said.startswith("File too large; raise the limit on the size of a file (ulimit -f) and ")


def test_where_not_even_the_log_can_be_written_snakemake_says_it(on_small_disk, finished):
    project = on_small_disk(1 << 19)
    for path in (project.folder / "results/mini").glob("*/mini/table1.[chmt]*"):
        path.unlink()
    before = project.results()
    ballast = fill(project)
    done = project.snakemake(TABLE, "--cores", "1")
    assert done.returncode == 1
    assert "clpapers: results/mini: the disk is full; free some space and give the same command again" in done.stdout
    ballast.unlink()
    assert project.results() == before
    project.build(TABLE)
    assert project.results() == finished.results()


def test_folders_that_are_write_protected(built, finished):
    """As a disk that is read-only; root is made to respect permissions. To ask what would run, nothing is written."""
    as_anyone = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-all"] if os.geteuid() == 0 else []
    if as_anyone and not shutil.which("setpriv"):
        pytest.skip("root ignores permissions, and there is no setpriv here")

    def run(*command):
        where = {"cwd": built.folder, "env": built.environment(), "text": True}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.run([*as_anyone, sys.executable, "-m", *command], **streams, **where)

    table, all_results = built.folder / TABLE, built.folder / "results/mini"
    table.unlink()
    table.parent.chmod(0o555)
    before = built.results()
    done = run("clpapers.cli", "table", "--out", TABLE)
    record, remedy = Path(TABLE).with_suffix(".record.json"), "make it readable and writable and give the same command"
    assert (done.returncode, done.stdout) == (2, f"clpapers: {record}: Permission denied; {remedy} again\n")
    all_results.chmod(0o555)
    done = run("snakemake", TABLE, "--cores", "1")
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    told = "clpapers: results/mini: cannot be written to; make it writable and give the same command again"
    assert told in done.stdout
    assert f"output: {TABLE}" in run("snakemake", "-n", TABLE).stdout
    assert built.results() == before
    for folder in (table.parent, all_results):
        folder.chmod(0o755)
    done = run("snakemake", TABLE, "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert built.results() == finished.results()
