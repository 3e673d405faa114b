"""Renders a benchmark table: methods down, data sets or another factor across, mean ± 95 % half-width or SD."""

import pandas as pd

from clpapers.catalogue.names import named, row_and_column
from clpapers.targets.footnotes import NOT_RUN, Notes, all_levels
from clpapers.targets.numbers import chances, clocks, failures, numbers
from clpapers.targets.paired import best
from clpapers.targets.table import NO_MEMORY, Table, plus_minus, titled

RENDERER = {"draws": "table", "needs": ["metrics"]}

ABSENT = "N.A."  # the default text of combinations that the experiment leaves out


def render(target: dict, data: pd.DataFrame, notes: Notes) -> Table:
    """Lay out the metrics measured by `learning`; a column's best is bold (`paired.best`), chance level stands below.

    If the columns are no data sets, a stand-in is marked in the title, and with one metric they have no second heading.

    target: keys `title`, `caption`, `rows` and `columns` (factors; default `learner` and `dataset`), `metrics`, `grid`
        (orders rows and columns), `names` (display names; "chance" of chance level, "absent" of empty cells),
        `decimals` (default 1; or a dictionary, by metric), `spread` (`sd`: standard deviations instead of half-widths),
        `ideal` (a learner that is not ranked, as the others are divided by it).
    data: columns `dataset`, the two factors, `seed`, `metric`, `value`.
    """
    row, column = row_and_column(target)
    measured, guess = numbers(target, data, notes), chances(target, data, notes)
    summary = measured if guess.empty else pd.concat([measured, guess], ignore_index=True)
    cells = summary.set_index(["row", "column", "metric"])
    down = all_levels(target, data, row, notes)
    methods = [named(target, level) for level in down]
    rows = [*methods, *guess["row"].unique()]
    numbered = [notes.partial] * len(methods) + [False] * (len(rows) - len(methods))
    spread = target.get("spread", "half_width")
    decimals, absent = target.get("decimals", 1), target.get("names", {}).get("absent", ABSENT)
    body = {(named(target, row), ""): rows}
    bold = {(named(target, row), ""): [False] * len(rows)}
    for level in all_levels(target, data, column, notes):
        across = named(target, level)
        for metric in target["metrics"]:
            digits = decimals.get(metric, 1) if isinstance(decimals, dict) else decimals
            shown = cells.reindex([(name, across, metric) for name in rows])
            waits = [notes.left_out({row: each, column: level}) for each in down] + [False] * (len(rows) - len(down))
            heading = notes.mark(across, level) if column == "dataset" else across, named(target, metric)
            body[heading] = [
                (NOT_RUN if waiting else absent)
                if pd.isna(mean) and note != NO_MEMORY
                else plus_minus(mean, around, digits, note) + (f" ({n:.0f})" if counted else "")
                for mean, around, note, n, waiting, counted in zip(
                    shown["mean"], shown[spread], shown["note"], shown["n"], waits, numbered
                )
            ]
            ranked = [
                each for each, note in zip(down, shown["note"]) if note != NO_MEMORY and each != target.get("ideal")
            ]
            here = (data[column] == level) & (data["metric"] == metric) & data[row].isin(ranked)
            strongest = best(data[here], row, metric)
            bold[heading] = [*(each == strongest for each in down), *[False] * (len(rows) - len(methods))]
    body, bold, standin = pd.DataFrame(body), pd.DataFrame(bold), None
    if column != "dataset":
        standin = next((dataset for dataset in data["dataset"] if dataset in notes.standins), None)
        if len(target["metrics"]) == 1:
            body.columns = bold.columns = body.columns.get_level_values(0)
    remarks = [*clocks(target, data), *failures(target, data)]
    return titled(target, notes, body, summary, data["dataset"], bold=bold, standin=standin, remarks=remarks)
