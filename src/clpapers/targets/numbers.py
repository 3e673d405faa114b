"""The numbers behind a table, under the names that the paper prints; they are written as CSV and compared."""

import numpy as np
import pandas as pd

from clpapers.catalogue.names import CURVE, named, named_along, row_and_column
from clpapers.metrics.cost import ELSEWHERE
from clpapers.metrics.intervals import summarise
from clpapers.metrics.learning import CHANCE_PREFIX, DIVERGED, OUT_OF_MEMORY
from clpapers.targets.footnotes import Notes
from clpapers.targets.table import NO_MEMORY


def numbers(target: dict, data: pd.DataFrame, notes: Notes) -> pd.DataFrame:
    """Summarise measured values, one line a cell and metric; for chance levels and failures see the functions below.

    target: keys `names`, `metrics` and, if other than learners and data sets, `rows` and `columns` (factors); of a
        figure `along`, a column whose values then follow the row's name: `GEM, task 2`.
    data: as measured, either values (columns: the two factors, `dataset`, `metric`, `value`) or a summary already
        (`row`, `metric`, `mean`, `sd`, `se`, `half_width`, `n` and, if there is one, `dataset`, the column).

    Returns columns `row`, `column`, `metric`, `mean`, `sd` (standard deviation over seeds), `se` (standard error),
    `half_width` (95 %), `n`, `dataset`, `standin` (the data set's kind of stand-in, or ""), `runs` (the cells whose
    runs these are, by hash, and the place on their curve; empty without any), `note` ("", or "out of memory" where `n`
    seeds ran out of memory, so that there is no mean).
    """
    data = data[~data["metric"].str.startswith(CHANCE_PREFIX) & (data["metric"] != DIVERGED)]
    if "value" in data:
        row, column = row_and_column(target)
        along = target.get("along")
        key = list(dict.fromkeys(filter(None, [row, column, "dataset", along])))
        failed = data[data["metric"] == OUT_OF_MEMORY].groupby(key, sort=False).size().reset_index(name="n")
        if failed.empty:
            summary = summarise(data, [*key, "metric"]).assign(note="")
        else:
            fits = data.merge(failed[key], how="left", indicator="fits").query("fits == 'left_only'")
            failed = failed.merge(pd.DataFrame({"metric": target["metrics"], "note": NO_MEMORY}), how="cross")
            summary = pd.concat([summarise(fits, [*key, "metric"]), failed]).fillna({"note": ""})
        columns = [named(target, level) for level in summary[column]]
    else:
        row, along = "row", None
        summary = (data if "dataset" in data else data.assign(dataset="")).assign(note="")
        columns = [named(target, dataset) if dataset else "" for dataset in summary["dataset"]]
    summary = summary.assign(
        row=_rows(target, summary, row, along),
        column=columns,
        standin=[notes.standins.get(dataset, "") for dataset in summary["dataset"]],
    )
    summary["runs"] = ""
    if "value" in data and "cell" in data:
        cells = data.groupby(key, sort=False)["cell"].agg(lambda hashes: " ".join(dict.fromkeys(hashes)))
        places = [f" {along} {value:g}" if along in CURVE else "" for value in summary[along or row]]
        summary["runs"] = [
            cells[each] + at for each, at in zip(summary[key].itertuples(index=False, name=None), places)
        ]
    fields = ["mean", "sd", "se", "half_width", "n", "dataset", "standin", "runs", "note"]
    return summary[["row", "column", "metric", *fields]].reset_index(drop=True)


def _rows(target: dict, data: pd.DataFrame, row: str, along: str | None) -> list[str]:
    if along:
        return [named_along(target, level, value) for level, value in zip(data[row], data[along])]
    return [named(target, level) for level in data[row]]


def placed(target: dict, data: pd.DataFrame) -> pd.DataFrame:
    """Measured values, one a line, under the names of `row` and `column` that `numbers` gives them."""
    row, column = row_and_column(target)
    rows, columns = _rows(target, data, row, target.get("along")), [named(target, level) for level in data[column]]
    return data.assign(row=rows, column=columns)


def chances(target: dict, data: pd.DataFrame, notes: Notes) -> pd.DataFrame:
    """The chance levels, one line a column and accuracy, in the format of `numbers`.

    If the methods of a column answer under different masks, their chance levels are averaged seed by seed; one that
    is the same for every seed has no spread (NaN). The target's `names` name the row under "chance". `data` as measured
    by `learning`, with chance levels or without.
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


def failures(target: dict, data: pd.DataFrame) -> list[str]:
    """The footnotes, if any, on runs that diverged, with their steps, and on runs out of memory.

    `data` as measured by `learning`.
    """
    row, column = row_and_column(target)
    notes = []
    for metric, text, each in (
        (DIVERGED, "∞: at least one seed diverged.", "seed {} after {:,.0f} steps"),
        (OUT_OF_MEMORY, "OoM: memory did not suffice for at least one seed.", "seed {}"),
    ):
        runs = data[data["metric"] == metric].sort_values("seed")
        cells = [
            f"{named(target, down)}, {named(target, across)}: "
            + ", ".join(map(each.format, cell["seed"], cell["value"]))
            for (down, across), cell in runs.groupby([row, column], sort=False)
        ]
        if cells:
            notes.append(f"{text} {'; '.join(cells)}.")
    return notes


def why_empty(data: pd.DataFrame, notes: Notes, levels: dict) -> str:
    """Why a panel of the cells with these levels has nothing to show. `data` as measured by `learning`."""
    here = data
    for factor, level in levels.items():
        here = here[here[factor] == level]
    if here.empty:
        return "not run yet" if notes.left_out(levels) else "not measured"
    if (here["metric"] == OUT_OF_MEMORY).any():
        return "out of memory"
    return "diverged" if np.isinf(here["value"]).any() else "not measured"


def without(failed: pd.DataFrame, data: pd.DataFrame, across: str = "dataset") -> pd.DataFrame:
    """`data` without the methods that `failed` on a data set, or with a level of `across`."""
    keys = [across, "learner"]
    return data[~pd.MultiIndex.from_frame(data[keys]).isin(pd.MultiIndex.from_frame(failed[keys]))]


def clocks(target: dict, data: pd.DataFrame) -> list[str]:
    """The footnote, if any, on the hardware that times were taken on. `data` as measured by `cost`.

    Where data sets were timed on different hardware it names each. Times that cannot be compared with the others
    (`cost.one_kind`) are counted.
    """
    if "hardware" not in data or data["hardware"].isna().all():
        return []
    elsewhere = data["metric"].str.endswith(ELSEWHERE)
    others = data[elsewhere]
    by_dataset = data[~elsewhere].dropna(subset="hardware").groupby("dataset", sort=False)["hardware"]
    where = {named(target, dataset): ", ".join(hardware.unique()) for dataset, hardware in by_dataset}
    alike = len(set(where.values())) == 1
    devices = [device if alike else f"{dataset}: {device}" for dataset, device in where.items()]
    footnotes = [
        f"Times on: {'; '.join(devices[:1] if alike else devices)}. "
        "Seeds of one job share its clock: a job is one timing, in seconds a seed."
    ]
    if not others.empty:
        timings = "timing" if len(others) == 1 else "timings"
        footnotes.append(f"Not compared: {len(others)} {timings} on {', '.join(others['hardware'].unique())}.")
    return footnotes
