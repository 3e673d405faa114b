"""Renders the layers of nets with output sizes and parameter counts."""

import pandas as pd

from clpapers.catalogue.names import named
from clpapers.targets.footnotes import Notes
from clpapers.targets.table import Table, bold_in, titled

RENDERER = {"draws": "table"}


def _merged(layers: pd.DataFrame) -> pd.DataFrame:
    """A net's layers, equal ones of one outermost block (its path's first part) counted together.

    Returns the columns `block`, `layer`, `count`, `output` and `parameters` (their sum).
    """
    outermost = layers["block"].fillna("").astype(str).str.partition(".")[0]
    groups = layers.assign(block=outermost).groupby(["block", "layer"], sort=False)
    merged = groups.agg(count=("layer", "size"), output=("output", "last"), parameters=("parameters", "sum"))
    return merged.reset_index()


def render(target: dict, data: pd.DataFrame, notes: Notes) -> Table:
    """List each net's layers by block, between its input and its total of parameters.

    target: keys `title`, `caption`, `names` (of the nets).
    data: columns `net`, `input`, `classes`, `block`, `layer`, `output`, `parameters`, `total`, as measured by
        `architecture`.
    """
    lines, totals = [], []
    for net, layers in data.groupby("net", sort=False):
        size, classes, total = layers[["input", "classes", "total"]].iloc[0]
        lines.append([named(target, net), "", f"Input, {classes} classes", size, ""])
        blocks = _merged(layers)
        first = ~blocks["block"].duplicated()
        lines += [
            ["", block if shown else "", f"{count} × {layer}" if count > 1 else layer, str(output), f"{parameters:,}"]
            for shown, (block, layer, count, output, parameters) in zip(first, blocks.itertuples(index=False))
        ]
        lines.append(["", "Total", "", "", f"{total:,}"])
        totals.append(len(lines) - 1)
    body = pd.DataFrame(lines, columns=["Net", "Block", "Layer", "Output", "Parameters"])
    bold = bold_in(body)
    bold.loc[totals, ["Block", "Parameters"]] = True
    return titled(target, notes, body, data, bold=bold)
