"""SIGKILL in the middle of a training: the same command goes on where it stood, and makes the same bytes."""

import json
import os
import random
import signal

import pytest
from nursery import nursery
from project import processes, until


@pytest.fixture
def slow(project):
    """The project with trainings of many steps, each of which is saved; and the file of one of its runs."""
    project.edit("config/papers/mini.yaml", "length: 30", "length: 250")
    project.edit("config/papers/mini.yaml", "batch: 10", "batch: 1")
    project.edit("config/scales/mini.yaml", "train_per_class: 5", "train_per_class: 25")
    project.edit("src/clpapers/runs/checkpoint.py", "INTERVAL = 300", "INTERVAL = 0")
    project.edit("src/clpapers/runs/checkpoint.py", "SHARE = 20", "SHARE = 1")
    (run,) = (path for path in project.plan() if "/er-" in path and path.endswith("/seed0.json"))
    return project, project.folder / run


def test_killed_twice_and_resumed_by_snakemake(slow):
    project, run = slow
    kept = run.with_name(".seed0.checkpoint")

    def saved(step):
        return kept.is_file() and json.loads(kept.read_bytes().partition(b"\n")[0])["step"] >= step

    for step in (20, 120):
        leader = project.start(str(run.relative_to(project.folder)))
        try:
            until(lambda step=step, leader=leader: saved(step) and processes(leader, "train"), leader)
            for training in processes(leader, "train"):
                training.kill()
            assert leader.wait(300) == 1
        finally:
            if leader.poll() is None:
                os.killpg(leader.pid, signal.SIGKILL)
                leader.wait()
        assert [path.name for path in run.parent.iterdir() if path.name == kept.name] == [kept.name]
        assert not run.exists()

    done = project.snakemake(str(run.relative_to(project.folder)), "--cores", "1")
    assert done.returncode == 0, done.stdout
    resumed = json.loads(run.with_name("seed0.record.json").read_text())["resumed"]
    assert [each["seeds"] for each in resumed] == [[0], [0]]
    first, second = (each["step"] for each in resumed)
    assert 20 <= first < 120 <= second < 250
    assert {path.name for path in run.parent.iterdir()} == {"seed0.json", "seed0.record.json"}
    assert project.plan(str(run.relative_to(project.folder))) == []

    resumed = run.read_bytes()
    run.unlink()
    assert project.clpapers("train", "--out", str(run.relative_to(project.folder))).returncode == 0
    assert json.loads(run.with_name("seed0.record.json").read_text())["resumed"] == []
    assert run.read_bytes() == resumed


def test_that_of_other_code_is_refused(slow):
    project, run = slow
    out = str(run.relative_to(project.folder))
    kept = run.with_name(".seed0.checkpoint")
    leader = project.start(out)
    until(lambda: kept.is_file() and processes(leader, "train"), leader)
    processes(leader, "train")[0].kill()
    assert leader.wait(300) == 1
    project.edit("src/clpapers/runs/learners/er.py", "self.memory.write(t)", "self.memory.write(t), t")
    done = project.clpapers("train", "--out", out)
    assert done.returncode == 0, done.stdout
    assert (
        f"{kept.relative_to(project.folder)}: not resumed, it is of another code; training starts over" in done.stdout
    )
    assert json.loads(run.with_name("seed0.record.json").read_text())["resumed"] == []
    assert not kept.exists()


def test_killed_at_twenty_random_moments(slow):
    """Anywhere from its start to its record, at least once after a saving; when it comes to its end, it begins anew."""
    project, _ = slow
    project.edit("config/papers/mini.yaml", "length: 250", "length: 100")
    (run,) = (project.folder / path for path in project.plan() if "/er-" in path and path.endswith("/seed0.json"))
    draw = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")
    command, record = ("train", "--out", str(run.relative_to(project.folder))), run.with_name("seed0.record.json")
    kept = run.with_name(".seed0.checkpoint")
    with nursery(project) as commands:
        for stage, out in (("dataset", "datasets/mnist.npz"), ("stream", "streams/mnist/stf-0.05-n100/seed0.npz")):
            assert commands.clpapers(project, stage, "--out", f"results/mini/{out}").returncode == 0
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
