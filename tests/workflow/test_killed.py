"""SIGKILL at any moment: nothing half-written under a final name, and the same command again finishes the work."""

import contextlib
import hashlib
import json
import os
import random
import signal

import psutil
from nursery import nursery
from world import DATA, PAPER, SCALE, TABLE, TIMEOUT, kill_group, processes, refusal, until

from clpapers.provenance import record_path


def check_nothing_half_written(project, finished):
    """A file under a final name has all its bytes, and a record stands only where all that it speaks of does."""
    theirs = finished.results()
    for name, content in project.results().items():
        assert content == theirs[name], f"{name} is not what an undisturbed run makes"
    for record in (project.folder / "results").rglob("[!.]*.record.json"):
        for entry in json.loads(record.read_text())["outputs"]:
            assert hashlib.sha256((project.folder / entry["path"]).read_bytes()).hexdigest() == entry["sha256"], record


def test_a_build_killed_at_several_moments_and_once_without_its_orphans(project, finished, running):
    results = project.folder / "results/mini"
    moments = {
        "a data set is being made": lambda leader: processes(leader, "dataset"),
        "training": lambda leader: processes(leader, "train"),
        "a run is there": lambda leader: project.runs(),
        "a target is there": lambda leader: next(results.glob("targets/mini/*.md"), None),
    }
    for name, moment in moments.items():
        leader = running(project)
        until(lambda moment=moment, leader=leader: moment(leader), leader)
        if name == "training":  # Snakemake alone: the next build begins beside what it leaves
            leader.kill()
            leader.wait()
        else:
            kill_group(leader)
            check_nothing_half_written(project, finished)
    assert len(project.results()) < len(finished.results())
    project.build()
    assert project.results() == finished.results()
    assert project.plan() == []


def test_a_training_killed_fails_alone_and_then_the_server_of_the_jobs_with_its_children(
    project, finished, running, tmp_path
):
    """As the kernel kills where memory runs out: Snakemake says for the job what this can say no more."""
    leader = running(project, said=tmp_path / "said")
    until(lambda: processes(leader, "train"), leader)[0].kill()
    assert leader.wait(TIMEOUT) == 1
    line = refusal((tmp_path / "said").read_text())
    assert line.startswith("a job was killed (SIGKILL), as the kernel does when memory runs out")
    assert "give the same command again" in line
    check_nothing_half_written(project, finished)
    assert (project.folder / "results/mini/targets/mini/figure1.pdf").is_file()  # nothing to do with the victim
    assert len(project.runs()) == 3

    leader = running(project)
    until(lambda: jobs_stopped(leader), leader)
    (server, *children) = processes(leader, "clpapers.cli.server")
    server.kill()
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.resume()  # one that had only been forked kills itself
    assert leader.wait(TIMEOUT) == 1
    alive = psutil.wait_procs(children, 60)[1]
    assert [child for child in alive if child.status() != psutil.STATUS_ZOMBIE] == []
    check_nothing_half_written(project, finished)
    project.build()
    assert project.results() == finished.results()


def jobs_stopped(leader):
    """Whether jobs are at work in the server's children: these are stopped, so that none ends before it is killed.

    A job has files of its own; the server has told its front that it is taken once it sleeps again.
    """
    with contextlib.suppress(psutil.Error, OSError):
        server, *children = processes(leader, "clpapers.cli.server") or [None]
        at_work = [child for child in children if has_files(child)]
        for child in at_work:
            child.suspend()
        stopped = [child.status() == psutil.STATUS_STOPPED for child in at_work]
        return stopped and all(stopped) and server.status() == psutil.STATUS_SLEEPING


def has_files(child):
    """Whether a child has files of its own; one that has ended, and that nobody asked for yet, has none."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{child.pid}/fd/1") != os.devnull
    return False


def test_the_machine_dies_between_a_file_and_its_record(built, finished, running, monkeypatch):
    """Three times: all of the build is killed by the job that has renamed its last file and not begun its record."""
    for pattern in ("streams/mnist/*/seed0.*", "runs/mnist/*/er-*/seed0.*", "metrics/mini/table1.*", "targets/mini/*"):
        for path in (built.folder / "results/mini").glob(pattern):
            path.unlink()
    written = "    write_text(record, json.dumps"
    died = f'    if stage == os.environ.get("DIES"):\n        os.killpg(0, 9)\n{written}'
    built.edit("src/clpapers/provenance.py", written, died)
    lost = set()
    for stage in ("streams", "runs", "targets"):
        monkeypatch.setenv("DIES", stage)
        leader = running(built, TABLE)
        assert leader.wait(TIMEOUT) == -signal.SIGKILL
        files = {path for path in (built.folder / f"results/mini/{stage}").rglob("[!.]*") if path.is_file()}
        alone = {path for path in files if not record_path(path).is_file()}
        assert alone  # whole, and not believed
        lost |= alone
        check_nothing_half_written(built, finished)
    monkeypatch.delenv("DIES")
    built.build()
    assert built.results() == finished.results()
    assert all(record_path(path).is_file() for path in lost)
    assert built.plan() == []


# --- in the middle of a training ---------------------------------------------------------------------------------


def slowed(project, length):
    """Have trainings take many steps, each of which is saved; the file of one of the runs, and of what it saves."""
    project.edit(PAPER, "length: 30", f"length: {length}", "batch: 10", "batch: 1")
    project.edit(SCALE, "train_per_class: 5", "train_per_class: 25")
    project.edit("src/clpapers/runs/checkpoint.py", "INTERVAL = 300", "INTERVAL = 0", "SHARE = 20", "SHARE = 1")
    (run,) = (path for path in project.plan() if "/er-" in path and path.endswith("/seed0.json"))
    return run, (project.folder / run).with_name(".seed0.checkpoint")


def test_killed_twice_it_goes_on_where_it_stood(project, running):
    out, kept = slowed(project, 250)
    run = project.folder / out
    for step in (20, 120):

        def saved(step=step):
            return kept.is_file() and json.loads(kept.read_bytes().partition(b"\n")[0])["step"] >= step

        leader = running(project, out)
        for training in until(lambda saved=saved, leader=leader: saved() and processes(leader, "train"), leader):
            training.kill()
        assert leader.wait(TIMEOUT) == 1
        assert kept.exists()
        assert not run.exists()
    project.build(out)
    resumed = json.loads(record_path(run).read_text())["resumed"]
    assert [each["seeds"] for each in resumed] == [[0], [0]]
    first, second = (each["step"] for each in resumed)
    assert 20 <= first < 120 <= second < 250
    assert {path.name for path in run.parent.iterdir()} == {"seed0.json", "seed0.record.json"}
    assert project.plan(out) == []


def test_killed_at_twenty_random_moments(project):
    """Anywhere from its start to its record, at least once after a saving; when it comes to its end, it begins anew."""
    out, kept = slowed(project, 100)
    run = project.folder / out
    draw = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")
    command, record = ("train", "--out", out), run.with_name("seed0.record.json")
    with nursery(project) as commands:
        for stage, made in (("dataset", DATA), ("stream", "results/mini/streams/mnist/stf-0.05-n100/seed0.npz")):
            assert commands.clpapers(project, stage, "--out", made).returncode == 0
        undisturbed = commands.clpapers(project, *command)
        assert undisturbed.returncode == 0, undisturbed.said
        expected, killed, resumed = run.read_bytes(), 0, 0
        run.unlink()
        record.unlink()
        while killed < 20 or not (resumed or kept.exists()):
            assert killed < 200, "it never saved, or never resumed what it had saved"
            longest = 1.5 * undisturbed.seconds  # others may be slower
            done = commands.clpapers(project, *command, kill_after=draw.uniform(0, longest))
            killed += done.returncode == -signal.SIGKILL
            assert not run.exists() or run.read_bytes() == expected
            if record.exists():
                resumed += len(json.loads(record.read_text())["resumed"])
                assert run.exists()
                run.unlink()
                record.unlink()
            else:
                assert done.returncode == -signal.SIGKILL, done.said
        done = commands.clpapers(project, *command)
    assert done.returncode == 0, done.said
    assert resumed + len(json.loads(record.read_text())["resumed"]) > 0
    assert run.read_bytes() == expected
    assert {path.name for path in run.parent.iterdir()} == {"seed0.json", "seed0.record.json"}
