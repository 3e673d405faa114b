"""Renders a target without any run yet: the runs and data that it waits for stand below it."""

import pandas as pd
from matplotlib.figure import Figure

from clpapers.catalogue.names import named
from clpapers.targets.notes import NOT_RUN, Notes
from clpapers.targets.style import panels
from clpapers.targets.table import Table, titled

WAITS = "not run yet"


def waiting(target: dict, data: pd.DataFrame, notes: Notes, *printed: object) -> Table | Figure:
    """A table of one dash a metric, or an empty panel that says so; the footnotes name the missing runs and data.

    target: keys `kind`, `title`, `caption`, `metrics`, `names`. data: without a line.
    """
    if target["kind"] == "table":
        metrics = [named(target, metric) for metric in target.get("metrics", [])]
        body = pd.DataFrame({"": [WAITS], **{metric: [NOT_RUN] for metric in dict.fromkeys(metrics)}})
        return titled(target, notes, body, data)
    figure, grid = panels(target, notes, [], 1, 1, 1.2)
    grid[0, 0].text(0.5, 0.5, WAITS, ha="center", va="center", transform=grid[0, 0].transAxes)
    grid[0, 0].set(xticks=[], yticks=[])
    return figure
