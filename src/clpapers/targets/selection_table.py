"""Renders selections: a line a learner, the chosen values beside the paper's; the grid is the table's data."""

import numpy as np
import pandas as pd

from clpapers.catalogue.names import named
from clpapers.targets.footnotes import Notes, levels
from clpapers.targets.table import NO_MEMORY, Table, bold_in, plus_minus, titled

RENDERER = {"draws": "table"}

FIXED = ("dataset", "learner", "cell", "metric", "score", "failure", "selected", "published")


def render(target: dict, data: pd.DataFrame, notes: Notes) -> Table:
    """Set each selection's values and score beside the values and score of the paper's choice.

    target: keys `title`, `caption`, `grid` (orders data sets and learners), `names`, and `decimals` of the scores.
    data: one row a point of a grid, as measured by `selection`.
    """
    values = [column for column in data if column not in FIXED]
    lines, same = [], []
    for dataset in levels(target, data, "dataset"):
        for learner in levels(target, data, "learner"):
            grid = data[(data["dataset"] == dataset) & (data["learner"] == learner)]
            if grid.empty:
                continue
            line = [notes.mark(named(target, dataset), dataset), named(target, learner), str(len(grid))]
            here = grid[grid["selected"]].iloc[:1]
            paper = grid[grid["published"]].iloc[:1]  # empty if a reduced grid leaves the paper's choice out
            for value in values:
                line += [_value(here[value]), _value(paper[value])]
            for point in (here, paper):
                line.append("–" if point.empty else _score(point.iloc[0], target.get("decimals", 1)))
            lines.append(line)
            same.append(not paper.empty and here.index[0] == paper.index[0])
    pairs = [(named(target, value), kind) for value in (*values, "score") for kind in ("here", "paper")]
    heads = [(named(target, "dataset"), ""), (named(target, "learner"), ""), ("Points", ""), *pairs]
    body = pd.DataFrame(lines, columns=pd.MultiIndex.from_tuples(heads))
    bold = bold_in(body)
    bold.iloc[np.flatnonzero(same), 3:] = True
    return titled(target, notes, body, data, data["dataset"], bold=bold)


def _value(values: pd.Series) -> str:
    return "–" if values.isna().all() else f"{values.iloc[0]:g}"


def _score(point: pd.Series, decimals: int) -> str:
    note = NO_MEMORY if point["failure"] == "out_of_memory" else ""
    score = np.inf if point["failure"] == "diverged" else point["score"]
    return plus_minus(score, np.nan, decimals, note)
