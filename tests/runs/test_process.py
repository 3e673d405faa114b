"""Work in a process apart: forked before, begun when told, with its error, its end and its time known here."""

import os
import time

import pytest

from clpapers.provenance import Refusal
from clpapers.runs.process import Apart

SEEN = []


class OfHere(Exception):
    """One that no other process can read, as it is not sent by its name."""

    def __reduce__(self):
        raise TypeError


def test_neither_process_sees_what_happens_in_the_other_after_the_fork():
    SEEN[:] = ["before"]
    with Apart(lambda: (SEEN.append("there"), list(SEEN), os.getpid())[1:]) as apart:
        SEEN.append("here")
        apart.begin()
        seen, process = apart.result()
    assert seen == ["before", "there"]
    assert process != os.getpid()
    assert SEEN == ["before", "here"]


def failing(error):
    raise error


@pytest.mark.parametrize(
    ("work", "error", "told"),
    [
        (lambda: failing(Refusal("mine.py:3: no")), Refusal, r"mine\.py:3: no"),
        (lambda: failing(OfHere("told")), RuntimeError, "OfHere: told"),
        (lambda: os._exit(3), RuntimeError, "without a word"),
    ],
)
def test_its_error_and_its_death_are_told_here(work, error, told):
    with Apart(work) as apart:
        apart.begin()
        with pytest.raises(error, match=told):
            apart.result()


@pytest.mark.parametrize("begun", [True, False])
def test_it_ends_with_its_block_whatever_it_does(begun):
    with Apart(lambda: time.sleep(600)) as apart:
        if begun:
            apart.begin()
            with pytest.raises(TimeoutError):
                apart.result(0.01)
    assert not apart.process.is_alive()
