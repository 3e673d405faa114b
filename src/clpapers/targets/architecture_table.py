"""Renders the nets' layers with output sizes and parameter counts."""

from __future__ import annotations

import pandas as pd

from clpapers.targets.notes import Notes, named
from clpapers.targets.table import Table


def render(target: dict, data: pd.DataFrame, notes: Notes) -> Table:
    """List each net's layers in order, its input above and its parameter total below them.

    Parameters
    ----------
    target: keys `title`, `caption`, `names` (of the nets).
    data: columns `net`, `input`, `classes`, `block`, `layer`, `output`, `parameters`, `total`, as measured by
        `architecture`.
    """
    lines, totals = [], []
    for net, layers in data.groupby("net", sort=False):
        size, classes, total = layers[["input", "classes", "total"]].iloc[0]
        lines.append([named(target, net), "", f"Input, {classes} classes", size, ""])
        repeated = layers["block"].eq(layers["block"].shift())
        blocks = layers["block"].fillna("").mask(repeated, "")
        lines += [
            ["", block, layer, output, f"{parameters:,}" if parameters else "0"]
            for block, layer, output, parameters in zip(
                blocks, layers["layer"], layers["output"].astype(str), layers["parameters"]
            )
        ]
        lines.append(["", "Total", "", "", f"{total:,}"])
        totals.append(len(lines) - 1)
    body = pd.DataFrame(lines, columns=["Net", "Block", "Layer", "Output", "Parameters"])
    bold = body.map(lambda _: False)
    bold.loc[totals, ["Block", "Parameters"]] = True
    return Table(
        title=notes.mark(target["title"]),
        caption=notes.fill(target["caption"]),
        body=body,
        bold=bold,
        data=data,
        footnotes=notes.footnotes(target, []),
    )
