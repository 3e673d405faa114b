"""Draws a target: its renderer, its measurements and its notes brought together."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pandas as pd

from clpapers.catalogue import metrics
from clpapers.targets.footnotes import Notes
from clpapers.targets.own_method_ranks import attach
from clpapers.targets.unrun_target import waiting

if TYPE_CHECKING:  # no run-time import: an edit of the configuration's messages makes no target stale
    from clpapers.config.model import Target
    from clpapers.targets.table import Table


def rendered(target: Target, frame: pd.DataFrame, notes: Notes, *printed: pd.DataFrame) -> Any:
    """A target as its renderer makes it of its measurements: a `Table` or a figure.

    printed: the paper's own lines, for a renderer that sets them into its table (`transcribed_for`).

    Raises `ValueError` for measurements that it cannot draw.
    """
    render = importlib.import_module(f"clpapers.targets.{target.spec['render']}").render
    if frame.empty and target.spec["kind"] == "table" and target.spec["render"] != "results_table":
        render = waiting  # a table of results has a dash for each of its cells
    return render(target.spec, frame, notes, *printed)


def transcribed_for(target: Target) -> list[pd.DataFrame]:
    """The further argument of a renderer that sets the paper's own lines into its table; `ValueError` without any."""
    from clpapers.evidence.comparison import transcribed

    if not metrics.renderers()[target.spec["render"]].prints:
        return []
    if not target.reported:
        raise ValueError(
            f"config/reported/{target.paper}.csv: no lines of {target.name}, "
            f"which {target.spec['render']} sets beside its own"
        )
    return [transcribed(target.reported, target.paper, target.name)]


def table_of(target: Target, frame: pd.DataFrame, notes: Notes) -> Table:
    """A table with the places of methods from outside below it."""
    return attach(rendered(target, frame, notes, *transcribed_for(target)), target.spec, frame)
