"""When a figure has enough runs to be shown at once."""

import pytest

from clpapers.config.model import Cell, Target
from clpapers.report.paper import Section
from clpapers.targets.footnotes import Notes
from clpapers.targets.unrun import Unrun


def section(there, absent):
    """A figure with so many cells with and without runs, by data set."""
    factors = {True: [], False: []}
    for run, counts in ((True, there), (False, absent)):
        for dataset, count in counts.items():
            factors[run] += [{"dataset": dataset, "learner": f"{run}{i}"} for i in range(count)]
    cells = tuple((each, Cell.make("paper", each)) for each in factors[True] + factors[False])
    target = Target("paper", "p", "figure1", {}, range(5), cells)
    notes = Notes("paper", unrun=Unrun(tuple(factors[False])))
    return Section(target, notes, [], None, None, [], [], [], [], [], waits=False)


@pytest.mark.parametrize(
    ("there", "absent", "filled"),
    [
        ({"mnist": 2}, {"mnist": 10}, False),
        ({"mnist": 6}, {"mnist": 6}, True),
        ({"mnist": 5}, {"mnist": 6}, False),
        ({"mnist": 2}, {"cub200": 9}, True),  # one of its panels is whole
        ({}, {}, True),  # it needs no runs
    ],
)
def test_half_of_a_panel_makes_a_picture(there, absent, filled):
    assert section(there, absent).filled is filled
