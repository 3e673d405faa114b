"""The point of a grid that a search takes, by hand."""

# ruff: noqa: F401, names that by_hand.yaml uses
import by_hand

from clpapers.metrics.selection import choose, measure

GRID = [{"budget.learning_rate": rate} for rate in (0.3, 0.1, 0.03)]
SEARCH = {"metric": "average_accuracy", "per_class": False, "points": ["a", "b", "c"]}
PAPER = {"budget.learning_rate": 0.03}


def run(*right, diverged=None, totals=(10, 10)):
    """A run of one task of two classes."""
    tasks = {"classes": [[0, 1]], "total": [list(totals)], "correct": [[list(right)]]}
    return {"tasks": tasks, "diverged": diverged}


def chosen(*runs, **search):
    return choose(SEARCH | search, PAPER, GRID, dict(zip("abc", runs)))


test_by_hand = by_hand.tests(globals())
