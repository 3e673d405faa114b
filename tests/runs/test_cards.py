"""Jobs share cards as far as memory goes; the cards are fakes, the processes and their locks are real."""

import json
import os
import select
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from clpapers.runs import cards

JOB = """\
import json, os, sys
from clpapers.runs import cards
cards.POLL = 0.01
share = cards.take(int(sys.argv[1]))
said = share and [share.card.uuid[:5], share.memory, share.is_whole]
print(json.dumps([said, os.environ.get("CUDA_VISIBLE_DEVICES")]), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """Locks of this test alone, and no card."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def command(name, text):
    """Let there be a command."""
    file = Path(os.environ["PATH"], name)
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def machine(*memories, free=None):
    """Let there be cards of so much memory, of which so much is free."""
    rows = [f"GPU-{'abcd'[i]}-feed, {m}, {m if free is None else free[i]}, [N/A]" for i, m in enumerate(memories)]
    command("nvidia-smi", "\n".join(f"echo '{row}'" for row in rows))


@pytest.fixture
def start():
    """Starts a job that takes memory and holds it until its input ends."""
    with ExitStack() as jobs:

        def started(megabytes):
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            job = subprocess.Popen([sys.executable, "-c", JOB, str(megabytes)], text=True, **pipes)
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
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        if any("->" in fields and str(job.pid) in fields for fields in locks):
            return True
    return False


def test_without_the_drivers_command_nothing_is_chosen(start):
    assert cards.visible() == []
    assert said(start(100)) == [None, None]


@pytest.mark.parametrize(
    "answer", ["No devices were found", "GPU-a, [N/A], [N/A], [N/A]", "GPU-a, 9, 9, Enabled", None]
)
def test_where_nothing_can_be_known_nothing_is_chosen(answer):
    command("nvidia-smi", f"echo '{answer}'" if answer else "exit 9")
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
def test_a_users_own_choice_is_kept(named, expected, monkeypatch):
    machine(100, 100, 100)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert [card.uuid for card in cards.visible()] == [f"GPU-{letter}-feed" for letter in expected]


@pytest.mark.parametrize(
    ("memories", "free", "named", "asked", "answers"),
    [
        # the one with most room first; another program is at work on the second
        ([1000] * 3, [1000, 200, 900], None, [500] * 4, [(card, 500, False) for card in "acac"]),
        ([1000], None, None, [0], [("a", 1000, True)]),
        ([1000], None, None, [5000], [("a", 1000, True)]),  # more than a card has is all of it
        ([1000], [500], None, [0], [("a", 1000, False)]),  # others use it
        ([1000, 1000], None, "1", [0], [("b", 1000, True)]),  # as a cluster gave it to a job
    ],
)
def test_who_gets_which(memories, free, named, asked, answers, start, monkeypatch):
    """The variable becomes the card where there are several."""
    machine(*memories, free=free)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    for megabytes, (card, memory, whole) in zip(asked, answers, strict=True):
        variable = named if named or len(memories) == 1 else f"GPU-{card}-feed"
        assert said(start(megabytes)) == [[f"GPU-{card}", memory, whole], variable]


def test_a_killed_job_frees_its_share_and_one_that_waits_stops_nobody(start):
    machine(1000)
    first = start(600)
    said(first)
    second = start(600)
    assert waits(second)
    second.kill()
    assert said(start(300))[0] == ["GPU-a", 300, False]
    third = start(600)
    assert waits(third)
    first.kill()
    assert said(third)[0] == ["GPU-a", 600, False]


def test_who_needs_much_is_not_passed_by_who_needs_little(start):
    machine(1000)
    first = start(600)
    said(first)
    much = start(0)
    assert waits(much)
    little = start(300)
    assert queues(little)
    first.communicate()
    assert said(much)[0] == ["GPU-a", 1000, True]
    much.communicate()
    assert said(little)[0][1] == 300


@pytest.mark.parametrize(("memory", "fraction"), [(5600, 0.5), (10_000, 1.0), (100, 0.0)])
def test_what_pytorch_may_allocate_leaves_room_for_cuda(memory, fraction):
    assert cards.Share(cards.Card("GPU-a", 10_000, 10_000), memory).fraction == fraction


MPS = """\
import os
from clpapers.runs import cards
print(cards.start_mps(), os.environ.get("CUDA_MPS_PIPE_DIRECTORY"), cards.start_mps())
"""


@pytest.mark.parametrize("status", [0, 1, None])
def test_mps_is_started_once_where_it_is_there_and_ends_with_the_process(status, tmp_path):
    told = tmp_path / "told"
    if status is not None:
        answer = f'if [ "$1" = -d ]; then echo began >> {told}; exit {status}; fi'
        command("nvidia-cuda-mps-control", f"{answer}\nread word; echo $word >> {told}")
    done = subprocess.run([sys.executable, "-c", MPS], capture_output=True, text=True, check=True)
    began, folder, again = done.stdout.split()
    if status == 0:
        assert (began, again) == ("True", "True")
        assert Path(folder).parent == tmp_path
        assert not Path(folder).exists()
        assert told.read_text() == "began\nquit\n"
    else:
        assert (began, folder, again) == ("False", "None", "False")
