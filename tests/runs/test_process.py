"""Work in a process apart: forked before, begun when told, with its error, its end and its time known here."""

import os
import time

import pytest

from clpapers.provenance import Refusal
from clpapers.runs.process import Apart

SEEN = []


def test_it_knows_nothing_of_what_happens_here_after_the_fork():
    SEEN[:] = ["before"]
    with Apart(lambda: list(SEEN)) as apart:
        SEEN.append("after")
        apart.begin()
        assert apart.result() == ["before"]


def test_what_it_does_is_not_seen_here():
    SEEN[:] = []
    with Apart(lambda: SEEN.append(1) or os.getpid()) as apart:
        apart.begin()
        assert apart.result() != os.getpid()
    assert SEEN == []


def test_its_error_is_raised_here():
    def fails():
        raise Refusal("mine.py:3: no")

    with Apart(fails) as apart:
        apart.begin()
        with pytest.raises(Refusal, match=r"mine\.py:3: no"):
            apart.result()


def test_so_is_one_that_no_other_process_can_read():
    class OfHere(Exception):
        pass

    def fails():
        raise OfHere("told")

    with Apart(fails) as apart:
        apart.begin()
        with pytest.raises(RuntimeError, match="OfHere: told"):
            apart.result()


def test_its_death_is_told():
    with Apart(lambda: os._exit(3)) as apart:
        apart.begin()
        with pytest.raises(RuntimeError):
            apart.result()


@pytest.mark.parametrize("begun", [True, False])
def test_it_ends_with_its_block_whatever_it_does(begun):
    with Apart(lambda: time.sleep(600)) as apart:
        if begun:
            apart.begin()
            with pytest.raises(TimeoutError):
                apart.result(0.01)
    assert not apart.process.is_alive()
