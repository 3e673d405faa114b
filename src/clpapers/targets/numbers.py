"""The numbers behind a table under the names the paper prints: what is written as CSV and compared."""

from __future__ import annotations

import pandas as pd

from clpapers.metrics.intervals import summarise
from clpapers.targets.notes import Notes, named


def row_and_column(target: dict) -> tuple[str, str]:
    """The factors down and across a results table: the target's `rows` and `columns`, or learners and data sets."""
    return target.get("rows", "learner"), target.get("columns", "dataset")


def numbers(target: dict, data: pd.DataFrame, notes: Notes) -> pd.DataFrame:
    """Summarise measured values, one line a cell and metric.

    Parameters
    ----------
    target: keys `names` and, if other than learners and data sets, `rows` and `columns` (factors).
    data: as measured, either values (columns: the two factors, `dataset`, `metric`, `value`) or a summary already
        (`row`, `metric`, `mean`, `half_width`, `n`).

    Returns
    -------
    Columns `row`, `column`, `metric`, `mean`, `half_width` (95 %), `n`, `dataset`, `standin` (what stands in for
    the data set, or "").
    """
    if "value" in data:
        row, column = row_and_column(target)
        summary = summarise(data, list(dict.fromkeys([row, column, "dataset", "metric"])))
        columns = [named(target, level) for level in summary[column]]
    else:
        row, columns = "row", ""
        summary = data.assign(dataset="")
    summary = summary.assign(
        row=[named(target, level) for level in summary[row]],
        column=columns,
        standin=[notes.standins.get(dataset, "") for dataset in summary["dataset"]],
    )
    return summary[["row", "column", "metric", "mean", "half_width", "n", "dataset", "standin"]]
