"""Renders a single simulated number as a one-row table."""

import pandas as pd

from clpapers.catalogue.names import named
from clpapers.targets.footnotes import Notes
from clpapers.targets.numbers import numbers
from clpapers.targets.table import Table, titled

RENDERER = {"draws": "table"}


def render(target: dict, data: pd.DataFrame, notes: Notes) -> Table:
    """Print mean, interval and number of simulations.

    target: keys `title`, `caption`, `names` (of the row and the metric), `decimals` (of the mean, default 2).
    data: one row with the columns `row`, `metric`, `mean`, `half_width`, `n`, as measured by `entropy`.
    """
    (result,) = data.to_dict("records")
    body = pd.DataFrame(
        {
            named(target, "row"): [named(target, result["row"])],
            named(target, result["metric"]): [f"{result['mean']:.{target.get('decimals', 2)}f}"],
            "95 % half-width": [f"{result['half_width']:.2g}"],
            "Simulations": [f"{result['n']:,}"],
        }
    )
    return titled(target, notes, body, numbers(target, data, notes))
