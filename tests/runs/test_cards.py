"""Jobs share cards as far as memory goes; the cards are fakes, the processes and their locks are real."""

import json
import os
import select
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from clpapers.runs import cards

JOB = """\
import json, os, sys
from clpapers.runs import cards
cards.POLL = 0.01
share = cards.take(int(sys.argv[1]))
said = share and [share.card.uuid, share.memory, share.is_whole]
print(json.dumps([said, os.environ.get("CUDA_VISIBLE_DEVICES")]), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """Locks of this test alone, and no card."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(cards.tempfile, "tempdir", None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def machine(tmp_path):
    """Gives the machine cards of so much memory, of which so much is free."""

    def arrange(*memories, free=None):
        (tmp_path / "bin").mkdir(exist_ok=True)
        rows = [f"GPU-{'abcd'[i]}-feed, {m}, {m if free is None else free[i]}, [N/A]" for i, m in enumerate(memories)]
        command = tmp_path / "bin/nvidia-smi"
        command.write_text("#!/bin/sh\n" + "".join(f"echo '{row}'\n" for row in rows))
        command.chmod(0o755)

    return arrange


@pytest.fixture
def start():
    """Starts a job that takes memory and holds it until its input ends."""
    with ExitStack() as jobs:

        def started(megabytes):
            job = subprocess.Popen(
                [sys.executable, "-c", JOB, str(megabytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            jobs.callback(job.communicate)
            jobs.callback(job.kill)
            return job

        yield started


def said(job):
    return json.loads(job.stdout.readline())


def waits(job):
    """Whether the job says that it waits."""
    return job.stderr.readline().startswith("waiting for")


def queues(job):
    """Whether the job stands in line for a lock, and has not taken its memory instead."""
    while not select.select([job.stdout], [], [], 0.01)[0]:
        if any(
            "->" in fields and str(job.pid) in fields
            for fields in map(str.split, Path("/proc/locks").read_text().splitlines())
        ):
            return True
    return False


# --- which cards there are -----------------------------------------------------------------------------------


def test_without_the_drivers_command_nothing_is_chosen(start):
    assert cards.visible() == []
    assert said(start(100)) == [None, None]


@pytest.mark.parametrize(
    "answer",
    ["exit 9", "echo 'No devices were found'", "echo 'GPU-a, [N/A], [N/A], [N/A]'", "echo 'GPU-a, 9, 9, Enabled'"],
)
def test_where_nothing_can_be_known_nothing_is_chosen(answer, machine, tmp_path):
    machine()
    (tmp_path / "bin/nvidia-smi").write_text(f"#!/bin/sh\n{answer}\n")
    assert cards.visible() == []


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (None, "abc"),
        ("2,0", "ca"),
        ("GPU-b", "b"),
        (" 1 , GPU-c-feed", "bc"),
        ("1,7,0", "b"),
        ("-1", ""),
        ("", ""),
        ("NoDevFiles", ""),
        ("MIG-b", ""),
    ],
)
def test_a_users_own_choice_is_kept(named, expected, machine, monkeypatch):
    machine(100, 100, 100)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert [card.uuid for card in cards.visible()] == [f"GPU-{letter}-feed" for letter in expected]


# --- who gets which ------------------------------------------------------------------------------------------


def test_jobs_spread_over_the_cards_and_share_them_as_memory_allows(machine, start):
    """Twelve jobs on two cards that hold three and two of them; each that ends lets one in."""
    machine(3500, 2500)
    waiting = [start(1000) for _ in range(12)]
    holding, served = {}, 0
    deadline = time.monotonic() + 120
    for job in waiting:
        os.set_blocking(job.stdout.fileno(), False)
    while served < 12:
        assert time.monotonic() < deadline
        for job in [each for each in waiting if each not in holding]:
            if line := job.stdout.readline():
                (uuid, memory, whole), seen = json.loads(line)
                assert (memory, whole, seen) == (1000, False, uuid)
                holding[job] = uuid
                served += 1
        uuids = list(holding.values())
        assert uuids.count("GPU-a-feed") <= 3
        assert uuids.count("GPU-b-feed") <= 2
        if len(holding) == 5 or served == 12:
            ending = next(iter(holding))
            ending.communicate()
            waiting.remove(ending)
            del holding[ending]
        time.sleep(0.01)


def test_the_card_with_most_room_comes_first(machine, start):
    machine(1000, 1000, 1000, free=[1000, 200, 900])  # another program is at work on the second
    assert [said(start(500))[1][:5] for _ in range(4)] == ["GPU-a", "GPU-c", "GPU-a", "GPU-c"]


def test_a_killed_job_frees_its_share(machine, start):
    machine(1000)
    first = start(0)
    assert said(first) == [["GPU-a-feed", 1000, True], None]
    second = start(0)
    assert waits(second)
    first.kill()
    assert said(second) == [["GPU-a-feed", 1000, True], None]


def test_a_job_that_is_killed_while_it_waits_stops_nobody(machine, start):
    machine(1000)
    first, second = start(600), None
    said(first)
    second = start(600)
    assert waits(second)
    third = start(300)
    second.kill()
    assert said(third)[0][:2] == ["GPU-a-feed", 300]


def test_who_needs_much_is_not_passed_by_who_needs_little(machine, start):
    machine(1000)
    first = start(600)
    said(first)
    much = start(0)
    assert waits(much)
    little = start(300)
    assert queues(little)
    first.communicate()
    assert said(much)[0] == ["GPU-a-feed", 1000, True]
    much.communicate()
    assert said(little)[0][1] == 300


def test_more_than_a_card_has_is_all_of_it(machine, start):
    machine(1000)
    assert said(start(5000))[0] == ["GPU-a-feed", 1000, True]


def test_a_card_that_others_use_is_not_had_whole(machine, start):
    machine(1000, free=[500])
    assert said(start(0))[0] == ["GPU-a-feed", 1000, False]


def test_one_card_leaves_the_variable_as_it_is(machine, start, monkeypatch):
    """As in a job of Slurm or Kubernetes, to which they gave a card."""
    machine(1000, 1000)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert said(start(0)) == [["GPU-b-feed", 1000, True], "1"]


def test_another_card_is_nobody_elses_business(machine, start, monkeypatch):
    machine(1000, 1000)
    for number in "01":
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", number)
        assert said(start(0))[1] == number


def test_what_pytorch_may_allocate_leaves_room_for_cuda():
    card = cards.Card("GPU-a", 10_000, 10_000)
    assert cards.Share(card, 5600).fraction == 0.5
    assert cards.Share(card, 10_000).fraction == 1.0
    assert cards.Share(card, 100).fraction == 0.0


MPS = """\
import os, sys
from clpapers.runs import cards
print(cards.start_mps(), os.environ.get("CUDA_MPS_PIPE_DIRECTORY"), cards.start_mps())
"""


@pytest.mark.parametrize("status", [0, 1, None])
def test_mps_is_started_once_where_it_is_there_and_ends_with_the_process(status, tmp_path):
    (tmp_path / "bin").mkdir()
    if status is not None:
        control = tmp_path / "bin/nvidia-cuda-mps-control"
        told = tmp_path / "told"
        answer = f'if [ "$1" = -d ]; then echo began >> {told}; exit {status}; fi'
        control.write_text(f"#!/bin/sh\n{answer}\nread word; echo $word >> {told}\n")
        control.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", MPS], capture_output=True, text=True, check=True)
    began, folder, again = done.stdout.split()
    if status == 0:
        assert (began, again) == ("True", "True")
        assert Path(folder).parent == tmp_path
        assert not Path(folder).exists()
        assert told.read_text() == "began\nquit\n"
    else:
        assert (began, folder, again) == ("False", "None", "False")
