"""Renders statistics of tasks: statistics down, data sets across."""

import pandas as pd

from clpapers.catalogue.names import named
from clpapers.targets.footnotes import Notes, levels
from clpapers.targets.numbers import numbers
from clpapers.targets.table import Table, titled

RENDERER = {"draws": "table"}


def _cell(mean: float, detail: str) -> str:
    """`299.7 (293–300)`, `2,500`, or the detail alone if there is no number."""
    if pd.isna(mean):
        return detail
    number = f"{mean:,.0f}" if float(mean).is_integer() else f"{mean:,.1f}"
    return f"{number} ({detail})" if detail else number


def render(target: dict, data: pd.DataFrame, notes: Notes) -> Table:
    """Lay out numbers, each with its detail in brackets.

    target: keys `title`, `caption`, `names` (of data sets, rows, and of `row`).
    data: columns `dataset`, `row`, `mean`, `detail` and others, as measured by `stream_statistics`.
    """
    cells = data.fillna({"detail": ""}).set_index(["row", "dataset"])
    rows, datasets = (levels(target, data, factor) for factor in ("row", "dataset"))
    body = pd.DataFrame({named(target, "row"): [named(target, row) for row in rows]})
    for dataset in datasets:
        heading = notes.mark(named(target, dataset), dataset)
        body[heading] = [_cell(*cells.loc[(row, dataset), ["mean", "detail"]]) for row in rows]
    return titled(target, notes, body, numbers(target, data, notes).assign(detail=data["detail"]), datasets)
