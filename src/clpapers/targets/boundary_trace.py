"""Draws a learner's uncertainty during training with the starts of tasks, and below it a detector's jumps."""

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from clpapers.catalogue.names import named
from clpapers.metrics.intervals import mean_interval
from clpapers.targets.footnotes import Notes
from clpapers.targets.palette import SERIES
from clpapers.targets.spread import ends, few
from clpapers.targets.style import STYLE, panels

RENDERER = {"draws": "figure"}

METRICS = ("mutual_information", "jump")


def _thresholds(data: pd.DataFrame) -> tuple[str, tuple[float, float] | None]:
    """The footnote on the thresholds that detect exactly the starts of tasks, and their range over all runs, if any."""
    limits = data[data["metric"].isin(["threshold_from", "threshold_below"])]
    limits = limits.pivot(index="seed", columns="metric", values="value")
    low, high = limits["threshold_from"].max(), limits["threshold_below"].min()
    runs = "1 run" if len(limits) == 1 else f"{len(limits)} runs"
    if low < high:
        text = f"Every threshold from {low:.3g} to {high:.3g} finds each beginning and nothing else, in {runs}."
        return text, (low, high)
    some = (limits["threshold_from"] < limits["threshold_below"]).sum()
    return f"No threshold finds each beginning and nothing else in all of {runs}; in {some} of them one does.", None


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw the mean over seeds; dotted lines mark the starts of tasks (`desiderata`, Figure 8).

    Below five runs each is a thin line; from five on a band is their 95 % interval, which ends at zero.
    Jumps have a logarithmic axis; thresholds that detect every start and nothing else in all runs are shaded and named
    in the footnote.

    target: key `names` (of the data set, the two metrics with their units, and `time`).
    data: columns `dataset`, `seed`, `metric`, `time`, `value` of one configuration, as `boundary_detection` measures.
    """
    (dataset,) = data["dataset"].unique()
    remark, limits = _thresholds(data)
    figure, grid = panels(
        target, notes, [dataset], 2, 1, 2.9, wide=True, remarks=[remark], sharex=True, height_ratios=[3, 2]
    )
    for panel, metric, colour in zip(grid[:, 0], METRICS, SERIES):
        lines = data[data["metric"] == metric].pivot(index="time", columns="seed", values="value")
        marker = {"marker": "o", "markersize": 2} if len(lines) <= 40 else {}
        mean = lines.mean(axis=1, skipna=False)
        if not few(lines.count(axis=1).to_frame("n")):
            band = ends(metric, mean, mean_interval(lines, axis=1)[1])
            panel.fill_between(lines.index, *band, color=colour, alpha=0.15, linewidth=0)
        elif lines.shape[1] > 1:
            panel.plot(lines.index, lines, color=colour, alpha=0.25, linewidth=0.5)
        panel.plot(lines.index, mean, color=colour, **marker)
        for start in data.loc[data["metric"] == "task_start", "time"].unique():
            panel.axvline(start, color="black", linestyle=":", linewidth=0.8)
        panel.set_ylabel(named(target, metric))
        panel.grid(axis="y", linewidth=0.3, color="0.85")
    above, below = grid[:, 0]
    above.set_ylim(bottom=0)
    above.set_title(notes.mark(named(target, dataset), dataset))
    below.set(yscale="log", xlabel=named(target, "time"))
    below.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    below.yaxis.set_major_formatter("{x:g}")
    below.yaxis.set_minor_formatter(NullFormatter())
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    if limits:
        below.axhspan(*limits, color=SERIES[2], alpha=0.15, linewidth=0)
    figure.align_ylabels()
    return figure
