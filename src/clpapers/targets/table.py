"""A table before it is written: the cells as printed, and the numbers behind them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd


@dataclass(frozen=True)
class Table:
    """One table, with whatever belongs beside it.

    body: the printed cells (strings); its first column heads the rows, its columns may have two levels.
    bold: bool frame of the body's shape.
    data: the numbers, tidy. A table that can be compared with printed numbers has the columns `row`,
        `column`, `metric` (as the paper prints them), `mean`, `half_width`, `n`, and `dataset` and `standin`
        (its text, or "").
    footnotes: texts of the marks used.
    appended: tables to show below this one in Markdown and HTML.
    sidecars: further frames to write as `<stem>.<name>.csv`.
    """

    title: str
    caption: str
    body: pd.DataFrame
    bold: pd.DataFrame
    data: pd.DataFrame
    footnotes: list[str] = field(default_factory=list)
    appended: list[Table] = field(default_factory=list)
    sidecars: dict[str, pd.DataFrame] = field(default_factory=dict)


def plus_minus(mean: float, half_width: float, decimals: int) -> str:
    """`80.1 ± 0.5`; without the second part where there is no interval, `–` where there is no mean."""
    if pd.isna(mean):
        return "–"
    if pd.isna(half_width):
        return f"{mean:.{decimals}f}"
    return f"{mean:.{decimals}f} ± {half_width:.{decimals}f}"
