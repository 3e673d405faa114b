"""Renders a table without any run yet: the runs and data that it waits for stand below it."""

import pandas as pd

from clpapers.catalogue.names import named
from clpapers.targets.footnotes import NOT_RUN, Notes
from clpapers.targets.table import Table, titled

WAITS = "not run yet"


def waiting(target: dict, data: pd.DataFrame, notes: Notes, *printed: object) -> Table:
    """One dash a metric; the footnotes name the missing runs and data.

    target: keys `title`, `caption`, `metrics`, `names`. data: without a line.
    """
    metrics = [named(target, metric) for metric in target.get("metrics", [])]
    body = pd.DataFrame({"": [WAITS], **{metric: [NOT_RUN] for metric in dict.fromkeys(metrics)}})
    return titled(target, notes, body, data)
