"""A table before it is written: the printed cells and the numbers behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from clpapers.targets.footnotes import Notes


@dataclass(frozen=True)
class Table:
    """One table.

    body: the printed cells (strings); its first column heads the rows, its columns may have two levels.
    bold: bool frame of the body's shape.
    data: the numbers, tidy, as written to CSV.
    footnotes: texts of the marks used. sources: lines that a paper need not print.
    appended: tables to show below this one in Markdown and HTML; the footnotes explain their marks too.
    prose: columns of sentences, with their widths in LaTeX as shares of the line; the table may then break over pages.
    """

    title: str
    caption: str
    body: pd.DataFrame
    bold: pd.DataFrame
    data: pd.DataFrame
    footnotes: list[str] = field(default_factory=list)
    appended: list[Table] = field(default_factory=list)
    prose: dict[str, float] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)


def bold_in(body: pd.DataFrame, **columns: pd.Series) -> pd.DataFrame:
    """The cells of a table to print bold: bool, by column; nothing in others."""
    return body.map(lambda _: False).assign(**columns)


def titled(
    target: dict,
    notes: Notes,
    body: pd.DataFrame,
    data: pd.DataFrame,
    datasets: Iterable[str] = (),
    *,
    bold: pd.DataFrame | None = None,
    standin: str | None = None,
    remarks: Iterable[str] = (),
) -> Table:
    """A table under the target's title and caption; below it the footnotes on its data sets, and remarks.

    bold: nothing by default. standin: the stand-in data set, if the title is to carry its mark.
    """
    return Table(
        title=notes.mark(target["title"], standin),
        caption=notes.caption(target),
        body=body,
        bold=bold_in(body) if bold is None else bold,
        data=data,
        footnotes=[*notes.footnotes(target, datasets), *remarks],
        sources=notes.commits,
    )


NO_MEMORY = "out of memory"  # the note of a number without a mean
EXACT = 7  # decimals to which a number is rounded first: one computed as −5.6499999999999915 stands as −5.65 in a CSV


def plus_minus(mean: float, half_width: float, decimals: int, note: str = "") -> str:
    """`80.1 ± 0.5`, `80.1` without an interval, `–` without a mean, `∞`, or `OoM` if `note` is `NO_MEMORY`."""
    if note == NO_MEMORY:
        return "OoM"
    if pd.isna(mean):
        return "–"
    if np.isinf(mean):
        return "∞"
    mean, half_width = round(mean, EXACT), round(half_width, EXACT)
    text = f"{mean:z.{decimals}f}".replace("-", "−")
    return text if pd.isna(half_width) else f"{text} ± {half_width:.{decimals}f}"


def signed(difference: float, low: float, high: float, decimals: int) -> str:
    """`+2.4 [−4.4, 9.3]`, `+2.4` without an interval, `–` without a difference.

    An interval that leaves zero out gets up to three decimals more, where an end would be rounded to it.
    """
    if pd.isna(difference):
        return "–"
    difference, low, high = (round(x, EXACT) for x in (difference, low, high))
    if pd.isna(low):
        return f"{difference:+z.{decimals}f}".replace("-", "−")
    if low * high > 0:
        nearest = min(abs(low), abs(high))
        decimals = next((d for d in range(decimals, decimals + 4) if float(f"{nearest:.{d}f}")), decimals)
    return f"{difference:+z.{decimals}f} [{low:z.{decimals}f}, {high:z.{decimals}f}]".replace("-", "−")


def rounded(value: float, decimals: int, *, up: bool) -> str:
    """A distance to `decimals`, rounded up, or down with up to three decimals more where it would be zero."""
    for digits in range(decimals, decimals + 4):
        unit = 10.0**-digits
        steps = value / unit
        whole = math.ceil(steps - 1e-6) if up else math.floor(steps + 1e-6)
        if whole or not value:
            break
    return f"{whole * unit:.{digits}f}"
