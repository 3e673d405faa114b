"""A disk that is full, that limits files, or that cannot be written to: one line says so, and nothing is lost."""

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from world import STREAM, TABLE

from clpapers.provenance import record_path

UNWRITABLE = "cannot be written to; make it writable and give the same command again"


@pytest.fixture
def on_small_disk(finished, tmp_path, mounted):
    """A copy of the finished project whose results lie on a disk of their own, so many bytes larger than they are."""

    def copy(spare):
        project = finished.copy(tmp_path / "project")
        results = project.folder / "results"
        taken = sum((path.stat().st_size // 4096 + 1) * 4096 for path in results.rglob("*"))
        results.rename(tmp_path / "results")
        results.mkdir()
        held = sum(1 for _ in (tmp_path / "results").rglob("*"))
        mounted(results, "-t", "tmpfs", "-o", f"size={taken + spare},nr_inodes={held + 64}", "tmpfs")
        shutil.copytree(tmp_path / "results", results, dirs_exist_ok=True)
        return project

    return copy


def fill(project):
    """Leave no room on the disk of the results; returns what must go for there to be some again."""
    ballast = project.folder / "results/ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    assert shutil.disk_usage(ballast).free == 0
    return ballast


def fill_with_files(project):
    """Leave no inode on the disk of the results; returns the folder that must go for there to be some again."""
    ballast = project.folder / "results/ballast"
    ballast.mkdir()
    with contextlib.suppress(OSError):
        for number in itertools.count():
            (ballast / str(number)).touch()
    assert os.statvfs(ballast).f_ffree == 0
    return ballast


def command_of(project, what):
    """The command that makes a stream, a run or a table, and what it makes."""
    out = {"stream": STREAM, "train": next(iter(project.runs("er"))), "table": TABLE}[what]
    made = [out] if what != "table" else [TABLE.replace("csv", end) for end in ("csv", "md", "tex", "html")]
    return (what, "--out", out), made


def files(project):
    return {path for path in (project.folder / "results").rglob("*") if path.is_file()}


@pytest.mark.parametrize("fills", [fill, fill_with_files])
@pytest.mark.parametrize("what", ["stream", "train", "table"])
def test_a_full_disk(what, fills, on_small_disk, finished, commands):
    project = on_small_disk(1 << 16)
    command, made = command_of(project, what)
    for path in (*made, record_path(made[0])):
        (project.folder / path).unlink()
    ballast = fills(project)
    done = commands.clpapers(project, *command)
    assert done.returncode == 2
    assert done.line.startswith(f"{command[-1]}: No space left on device; free some space and give the same command")
    assert not any((project.folder / path).exists() for path in made)
    shutil.rmtree(ballast) if ballast.is_dir() else ballast.unlink()
    theirs = finished.results()
    assert project.results() == {name: content for name, content in theirs.items() if name not in made}
    assert commands.clpapers(project, *command).returncode == 0
    assert project.results() == theirs
    assert {path.name for path in files(project)} == {path.name for path in files(finished)}


@pytest.mark.parametrize("what", ["stream", "train", "table"])
def test_a_limit_in_the_middle_of_a_file(what, built, finished, commands):
    """The first bytes go through and the others do not, for which no disk of one's own is needed."""
    command, made = command_of(built, what)
    sizes = {path: (built.folder / path).stat().st_size for path in made}
    for path in made:
        (built.folder / path).unlink()
    done = commands.clpapers(built, *command, FSIZE=min(sizes.values()) - 1)
    assert done.returncode == 2
    assert done.line.startswith(
        f"{command[-1]}: File too large; raise the limit on the size of a file (ulimit -f) and "
    )
    assert not any((built.folder / path).exists() for path in made)
    assert commands.clpapers(built, *command).returncode == 0
    assert built.results() == finished.results()
    assert {path.name for path in files(built)} == {path.name for path in files(finished)}


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


def test_results_on_a_disk_that_is_read_only(built, mounted):
    """Of outputs that are there Snakemake says itself that they are write-protected; these are not."""
    for path in (built.folder / TABLE).parent.glob("table1.[chmrt]*"):
        path.unlink()
    mounted(built.folder / "results", "--bind", built.folder / "results")
    mounted(built.folder / "results", "-o", "remount,bind,ro", built.folder / "results")
    done = built.snakemake(TABLE, "--cores", "1")
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    assert f"clpapers: results/mini: {UNWRITABLE}" in done.stdout
    assert built.plan(TABLE) == [TABLE]  # to ask what would run, nothing need be written


def test_folders_that_are_write_protected(built, finished):
    """Where mounting is not permitted; root is made to respect permissions."""
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
    said = (
        f"{Path(TABLE).with_suffix('.record.json')}: Permission denied; make it readable and writable and give the same"
    )
    assert (done.returncode, done.stdout) == (2, f"clpapers: {said} command again\n")
    all_results.chmod(0o555)
    done = run("snakemake", TABLE, "--cores", "1")
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    assert f"clpapers: results/mini: {UNWRITABLE}" in done.stdout
    assert built.results() == before
    for folder in (table.parent, all_results):
        folder.chmod(0o755)
    done = run("snakemake", TABLE, "--cores", "1")
    assert done.returncode == 0, done.stdout
    assert built.results() == finished.results()
