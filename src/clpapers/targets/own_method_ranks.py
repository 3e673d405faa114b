"""The place of methods from outside in a results table: their rank, and their differences from each other method."""

import dataclasses

import pandas as pd

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import OUTSIDE_SIGN, named, row_and_column
from clpapers.metrics.intervals import summarise
from clpapers.targets.footnotes import levels
from clpapers.targets.paired import FEWEST, LEVEL, pairs
from clpapers.targets.table import Table, bold_in, signed

CAPTION = (
    "Place: the rank of its mean among the means of all methods that were run there. Difference: its values less the "
    "other's, on the same streams, with the interval of the paired t-test; interval and p by Holm’s correction over "
    "the comparisons with methods from outside in the same column and metric. In bold where the interval leaves zero "
    f"out, of at least {FEWEST} runs."
)


def attach(table: Table, target: dict, data: pd.DataFrame) -> Table:
    """`table` with the places of the target's methods from outside below it, if any of them was run.

    Parameters as `results_table.render`.
    """
    own = [label for label in target.get("own", ()) if label in set(data[row_and_column(target)[0]])]
    if not own or target["render"] != "results_table":
        return table
    row, column = row_and_column(target)
    compared = pairs(target, data[data["metric"].isin(target["metrics"])])
    lines = []
    for across in levels(target, data, column):
        for metric in target["metrics"]:
            decimals = target.get("decimals", 1)
            digits = 1 + (decimals.get(metric, 1) if isinstance(decimals, dict) else decimals)  # finer than the means
            ranks = _ranks(data[(data[column] == across) & (data["metric"] == metric)], row, metric)
            found = compared[(compared["column"] == named(target, across)) & (compared["metric"] == metric)]
            for label in (each for each in own if each in ranks.index):
                own_name = named(target, label)
                for pair in found[(found["first"] == own_name) | (found["second"] == own_name)].itertuples():
                    sign = 1 if pair.first == own_name else -1
                    low, high = sorted((sign * pair.low_holm, sign * pair.high_holm))
                    lines.append(
                        {
                            named(target, row): own_name,
                            named(target, column): named(target, across),
                            "Metric": named(target, metric),
                            "Place": f"{ranks[label]:.0f} of {ranks.notna().sum()}",
                            "Less": pair.second if sign == 1 else pair.first,
                            "Difference": signed(sign * pair.difference, low, high, digits),
                            "p": "–" if pd.isna(pair.p_holm) else f"{pair.p_holm:.2g}",
                            "Runs": str(pair.n),
                            "apart": pair.n >= FEWEST and pair.p_holm <= LEVEL,
                        }
                    )
    if not lines:
        return table
    body = pd.DataFrame(lines)
    apart = body.pop("apart")
    title = f"{table.title}, methods from outside ({OUTSIDE_SIGN})"
    return dataclasses.replace(
        table, appended=[*table.appended, Table(title, CAPTION, body, bold_in(body, Difference=apart), compared)]
    )


def _ranks(cells: pd.DataFrame, row: str, metric: str) -> pd.Series:
    """The rank of each method's mean, 1 the best; the better rank for equals."""
    means = summarise(cells, [row]).set_index(row)["mean"]
    return means.rank(ascending=catalogue.metrics()[metric].better == "smaller", method="min")
