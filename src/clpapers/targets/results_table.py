"""Renders a benchmark table: methods down, data sets and their metrics across, mean ± 95 % half-width."""

from __future__ import annotations

import pandas as pd

from clpapers.targets.notes import Notes, levels, named
from clpapers.targets.numbers import numbers, row_and_column
from clpapers.targets.table import Table, plus_minus


def render(target: dict, data: pd.DataFrame, notes: Notes) -> Table:
    """Lay out the metrics measured by `learning`; the best mean of each column is bold.

    Parameters
    ----------
    target: keys `title`, `caption` (may hold `{seeds}`), `rows` and `columns` (factors; default
        `learner` and `dataset`), `metrics`,
        `grid` (gives rows and columns their order), `names` (display names), `decimals` (default 1).
    data: columns `dataset`, the two factors, `seed`, `metric`, `value`.
    """
    row, column = row_and_column(target)
    summary = numbers(target, data, notes)
    cells = summary.set_index(["row", "column", "metric"])
    rows = [named(target, level) for level in levels(target, data, row)]
    body = {(named(target, row), ""): rows}
    bold = {(named(target, row), ""): [False] * len(rows)}
    for level in levels(target, data, column):
        across = named(target, level)
        for metric in target["metrics"]:
            these = cells.reindex([(down, across, metric) for down in rows])
            heading = notes.mark(across, level if column == "dataset" else None), named(target, metric)
            body[heading] = [
                plus_minus(mean, half, target.get("decimals", 1))
                for mean, half in zip(these["mean"], these["half_width"])
            ]
            bold[heading] = list(these["mean"] == these["mean"].max())
    return Table(
        title=notes.mark(target["title"]),
        caption=notes.fill(target["caption"]),
        body=pd.DataFrame(body),
        bold=pd.DataFrame(bold),
        data=summary,
        footnotes=notes.footnotes(target, data["dataset"]),
    )
