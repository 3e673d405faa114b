"""Renders a benchmark table: methods down, data sets and their metrics across, mean ± 95 % half-width."""

from __future__ import annotations

import pandas as pd

from clpapers.metrics.intervals import summarise
from clpapers.targets.notes import Notes, levels, named
from clpapers.targets.paired import pairs
from clpapers.targets.table import Table, plus_minus


def render(target: dict, data: pd.DataFrame, notes: Notes) -> Table:
    """Lay out the metrics measured by `learning`; the best mean of each column is bold.

    Parameters
    ----------
    target: keys `title`, `caption` (may hold `{seeds}`), `rows` and `columns` (names of factors), `metrics`,
        `grid` (gives rows and columns their order), `names` (display names), `decimals` (default 1).
    data: columns `dataset`, the two factors, `seed`, `metric`, `value`.
    """
    row, column, decimals = target["rows"], target["columns"], target.get("decimals", 1)
    keys = list(dict.fromkeys([row, column, "dataset", "metric"]))
    summary = summarise(data, keys).set_index([row, column, "metric"])
    rows, columns = levels(target, data, row), levels(target, data, column)

    body = {(named(target, row), ""): [named(target, r) for r in rows]}
    bold = {(named(target, row), ""): [False] * len(rows)}
    for c in columns:
        dataset = c if column == "dataset" else None
        for metric in target["metrics"]:
            cells = summary.reindex([(r, c, metric) for r in rows])
            heading = notes.mark(named(target, c), dataset), named(target, metric)
            body[heading] = [plus_minus(m, h, decimals) for m, h in zip(cells["mean"], cells["half_width"])]
            bold[heading] = list(cells["mean"] == cells["mean"].max())

    numbers = summary.reset_index()
    numbers["row"] = [named(target, r) for r in numbers[row]]
    numbers["column"] = [named(target, c) for c in numbers[column]]
    numbers["dataset"] = numbers.get("dataset", "")
    numbers["standin"] = [notes.standins.get(d, "") for d in numbers["dataset"]]
    return Table(
        title=notes.mark(target["title"]),
        caption=notes.fill(target["caption"]),
        body=pd.DataFrame(body),
        bold=pd.DataFrame(bold),
        data=numbers[["row", "column", "metric", "mean", "half_width", "n", "dataset", "standin"]],
        footnotes=notes.footnotes(target, data["dataset"]),
        sidecars={"paired": pairs(target, data)},
    )
