"""SIGKILL at any moment: nothing half-written under a final name, and the same command again finishes the work."""

import contextlib
import hashlib
import json
import os
import signal

import psutil
import pytest
from project import kill_group, processes, servers, until

from clpapers.provenance import record_path


def check_nothing_half_written(project, finished):
    """A file under a final name has all its bytes, and a record stands only where all that it speaks of does."""
    theirs = finished.results()
    for name, content in project.results().items():
        assert content == theirs[name], f"{name} is not what an undisturbed run makes"
    for record in (project.folder / "results").rglob("[!.]*.record.json"):
        for entry in json.loads(record.read_text())["outputs"]:
            assert hashlib.sha256((project.folder / entry["path"]).read_bytes()).hexdigest() == entry["sha256"], record


def test_killed_at_several_moments_and_resumed(project, finished, running):
    results = project.folder / "results/mini"
    moments = {
        "a data set is being made": lambda leader: processes(leader, "dataset"),
        "a stream is there": lambda leader: next(results.glob("streams/*/*/*.npz"), None),
        "training": lambda leader: processes(leader, "train"),
        "a run is there": lambda leader: next(results.glob("runs/mnist/*/*/seed?.json"), None),
        "a target is there": lambda leader: next(results.glob("targets/mini/*.md"), None),
    }
    for moment in moments.values():
        leader = running(project)
        until(lambda moment=moment, leader=leader: moment(leader), leader)
        kill_group(leader)
        check_nothing_half_written(project, finished)
    assert len(project.results()) < len(finished.results())
    project.build()
    assert project.results() == finished.results()
    assert project.plan() == []


def test_snakemake_alone_killed_and_started_again_beside_its_orphans(project, finished, running):
    leader = running(project)
    until(lambda: processes(leader, "train"), leader)
    os.kill(leader.pid, signal.SIGKILL)
    leader.wait()
    project.build()
    assert project.results() == finished.results()


def test_a_training_job_killed_fails_alone_and_is_trained_again(project, finished, running, tmp_path):
    """As the kernel kills it where memory runs out: Snakemake says for the job what this can say no more."""
    leader = running(project, said=tmp_path / "said")
    victim = until(lambda: processes(leader, "train"), leader)[0]
    victim.kill()
    assert leader.wait(300) == 1
    (line,) = (line for line in (tmp_path / "said").read_text().splitlines() if line.startswith("clpapers: "))
    assert line.startswith("clpapers: a job was killed (SIGKILL), as the kernel does when memory runs out")
    assert "give the same command again" in line
    check_nothing_half_written(project, finished)
    assert (project.folder / "results/mini/targets/mini/figure1.pdf").is_file()  # nothing to do with the victim
    assert len(list((project.folder / "results/mini/runs/mnist").rglob("seed?.json"))) == 3
    project.build()
    assert project.results() == finished.results()


def test_the_server_of_the_jobs_killed(project, finished, running):
    """The jobs at work are killed with it and fail; what Snakemake starts later needs none."""
    leader = running(project)
    until(lambda: jobs_stopped(leader), leader)
    (server, *children) = servers(leader)
    server.kill()
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.resume()  # one that had only been forked kills itself
    assert leader.wait(300) == 1
    assert not [child for child in children if child.is_running()]
    check_nothing_half_written(project, finished)
    project.build()
    assert project.results() == finished.results()


def jobs_stopped(leader):
    """Whether jobs are at work in the server's children: these are stopped, so that none ends before it is killed.

    A job has files of its own; the server has told its front that it is taken once it sleeps again.
    """
    with contextlib.suppress(psutil.Error, OSError):
        server, *children = servers(leader) or [None]
        at_work = [child for child in children if _files(child)]
        for child in at_work:
            child.suspend()
        stopped = [child.status() == psutil.STATUS_STOPPED for child in at_work]
        return stopped and all(stopped) and server.status() == psutil.STATUS_SLEEPING


def _files(child):
    """Whether a child has files of its own; one that has ended, and that nobody asked for yet, has none."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{child.pid}/fd/1") != os.devnull
    return False


@pytest.mark.parametrize("stage", ["streams", "runs", "targets"])
def test_the_machine_dies_between_a_file_and_its_record(stage, built, finished, running, monkeypatch):
    """All of the build is killed by the job that has renamed its last file and not begun its record."""
    target = built.folder / "results/mini/targets/mini/table1.csv"
    lost = ["runs/mnist/*/er-*/seed0.*", "metrics/mini/table1.*", "targets/mini/table1.*"]
    for pattern in [*(["streams/mnist/*/seed0.*"] if stage == "streams" else []), *lost]:
        for path in (built.folder / "results/mini").glob(pattern):
            path.unlink()
    written = "    write_text(record, json.dumps"
    died = f'    if stage == os.environ.get("DIES"):\n        os.killpg(0, 9)\n{written}'
    built.edit("src/clpapers/provenance.py", written, died)
    monkeypatch.setenv("DIES", stage)
    leader = running(built, str(target.relative_to(built.folder)))
    assert leader.wait(300) == -signal.SIGKILL
    monkeypatch.delenv("DIES")
    alone = [path for path in (built.folder / f"results/mini/{stage}").rglob("*") if path.is_file()]
    alone = [path for path in alone if not record_path(path).is_file()]
    assert alone  # whole, and not believed
    check_nothing_half_written(built, finished)
    built.build()
    assert built.results() == finished.results()
    assert all(record_path(path).is_file() for path in alone)
    assert built.plan() == []


def test_killed_while_replacing_older_results(built, running):
    (old,) = (built.folder / "results").rglob("er-*/seed0.record.json")
    old_code = json.loads(old.read_text())["code"]
    built.edit("src/clpapers/runs/learners/er.py", "self.memory.write(t)", "self.memory.write(t), t")
    leader = running(built)
    until(lambda: processes(leader, "train"), leader)
    kill_group(leader)
    built.build()
    codes = {json.loads(p.read_text())["code"] for p in (built.folder / "results").rglob("er-*/*.record.json")}
    assert len(codes) == 1
    assert codes != {old_code}
    assert built.plan() == []
