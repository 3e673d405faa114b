"""The numbers behind a table under the names the paper prints: what is written as CSV and compared."""

from __future__ import annotations

import numpy as np
import pandas as pd

from clpapers.metrics.intervals import summarise
from clpapers.metrics.learning import CHANCE_PREFIX, DIVERGED
from clpapers.targets.notes import Notes, named


def row_and_column(target: dict) -> tuple[str, str]:
    """The factors down and across a results table: the target's `rows` and `columns`, or learners and data sets."""
    return target.get("rows", "learner"), target.get("columns", "dataset")


def numbers(target: dict, data: pd.DataFrame, notes: Notes) -> pd.DataFrame:
    """Summarise measured values, one line a cell and metric; chances and divergences are left to those below.

    Parameters
    ----------
    target: keys `names` and, if other than learners and data sets, `rows` and `columns` (factors).
    data: as measured, either values (columns: the two factors, `dataset`, `metric`, `value`) or a summary already
        (`row`, `metric`, `mean`, `sd`, `se`, `half_width`, `n` and, if there is one, `dataset`, the column).

    Returns
    -------
    Columns `row`, `column`, `metric`, `mean`, `sd` (standard deviation over seeds), `se` (standard error),
    `half_width` (95 %), `n`, `dataset`, `standin` (what stands in for the data set, or "").
    """
    data = data[~data["metric"].str.startswith(CHANCE_PREFIX) & (data["metric"] != DIVERGED)]
    if "value" in data:
        row, column = row_and_column(target)
        summary = summarise(data, list(dict.fromkeys([row, column, "dataset", "metric"])))
        columns = [named(target, level) for level in summary[column]]
    else:
        row, summary = "row", data if "dataset" in data else data.assign(dataset="")
        columns = [named(target, dataset) if dataset else "" for dataset in summary["dataset"]]
    summary = summary.assign(
        row=[named(target, level) for level in summary[row]],
        column=columns,
        standin=[notes.standins.get(dataset, "") for dataset in summary["dataset"]],
    )
    return summary[["row", "column", "metric", "mean", "sd", "se", "half_width", "n", "dataset", "standin"]]


def chances(target: dict, data: pd.DataFrame, notes: Notes) -> pd.DataFrame:
    """What a uniform guess is expected to reach, one line a column and accuracy, in the format of `numbers`.

    Where the methods of a column answer under different masks, their chances are averaged seed by seed; chances that
    are the same for every seed have no spread (NaN). The row is called what the target's `names` have for "chance".
    `data` as measured by `learning`; it may hold no chances.
    """
    guesses = data[data["metric"].str.startswith(CHANCE_PREFIX)]
    row, column = row_and_column(target)
    guesses = guesses.assign(metric=guesses["metric"].str.removeprefix(CHANCE_PREFIX), **{row: "chance"})
    key = list(dict.fromkeys([row, column, "dataset", "metric", "seed"]))
    guesses = guesses.groupby(key, sort=False, as_index=False)["value"].mean()
    target = target | {"names": {"chance": "Random guess (expected)"} | target.get("names", {})}
    expected = numbers(target, guesses, notes)
    expected.loc[expected["sd"] < 1e-9, ["sd", "se", "half_width"]] = np.nan
    return expected


def divergences(target: dict, data: pd.DataFrame) -> list[str]:
    """The footnote that says which runs diverged, and when; none where none did. `data` as measured by `learning`."""
    row, column = row_and_column(target)
    runs = data[data["metric"] == DIVERGED].sort_values("seed")
    cells = [
        f"{named(target, down)}, {named(target, across)}: "
        + ", ".join(f"seed {seed} after {steps:,.0f} steps" for seed, steps in zip(cell["seed"], cell["value"]))
        for (down, across), cell in runs.groupby([row, column], sort=False)
    ]
    return [f"∞: at least one seed diverged. {'; '.join(cells)}."] if cells else []
