"""Draws one curve a stream over time: a column for each kind of stream, a row for each seed."""

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clpapers.catalogue.names import named
from clpapers.metrics.learning import OUT_OF_MEMORY
from clpapers.targets.footnotes import Notes, levels
from clpapers.targets.palette import SERIES
from clpapers.targets.style import STYLE, panels, say, stream_title
from clpapers.targets.table import plus_minus

RENDERER = {"draws": "figure"}


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw the one metric that is a curve; all panels share their axes. The means of others stand in the footnote.

    target: key `names` (of data sets, orders and the metrics, with their units).
    data: columns `dataset`, `order`, `seed`, `metric`, `time` (fraction of the stream), `value`, as measured
        by `stream_classes` for the statistic `prevalence` or by `stream_losses`.
    """
    orders = levels(target, data, "order")
    seeds = {order: list(dict.fromkeys(data.loc[data["order"] == order, "seed"])) for order in orders}
    rows = max(map(len, seeds.values()))
    lost, data = data[data["metric"] == OUT_OF_MEMORY], data[data["metric"] != OUT_OF_MEMORY]
    scalars, data = data[data["time"].isna()], data[data["time"].notna()]
    metric = next(iter(data["metric"]), "")
    means = scalars.groupby(["metric", "order"])["value"].mean()
    remarks = []
    for scalar in scalars["metric"].unique():
        each = [f"{named(target, o)} {plus_minus(means[scalar, o], np.nan, 2)}" for o in orders if (scalar, o) in means]
        remarks.append(f"{named(target, scalar)}: {'; '.join(each)}.")
    figure, axes = panels(
        target,
        notes,
        data["dataset"],
        rows,
        len(orders),
        0.5 + 0.75 * rows,
        y_label=named(target, metric),
        remarks=remarks,
        sharex=True,
        sharey=True,
    )
    for column, order in enumerate(orders):
        for row, panel in enumerate(axes[:, column]):
            seed = seeds[order][row] if row < len(seeds[order]) else None
            curve = data[(data["order"] == order) & (data["seed"] == seed)]
            if not np.isfinite(curve["value"]).any():
                short = ((lost["order"] == order) & (lost["seed"] == seed)).any()
                say(panel, "not run yet" if seed is None else "out of memory" if short else "diverged")
                continue
            panel.plot(curve["time"], curve["value"], color=SERIES[column], linewidth=0.8)
            panel.grid(axis="y", linewidth=0.3, color="0.85")
        axes[-1, column].set_xlabel("Time (fraction of the stream)")
        axes[0, column].set_title(stream_title(target, notes, data, order))
    axes[0, 0].locator_params(axis="y", nbins=4)
    highest = data["value"].replace(np.inf, np.nan).max()  # a run that diverged has no curve
    axes[0, 0].set(xlim=(0, 1), ylim=(0, 1.05 * highest if highest > 0 else 1))
    return figure
