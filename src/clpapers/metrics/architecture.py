"""Measures nets: one row a layer, from the nets' descriptions."""

from collections.abc import Iterable

import pandas as pd

MEASURE = {"needs": ["nets"]}


def measure(target: dict, inputs: Iterable[tuple[str, dict]]) -> pd.DataFrame:
    """List the layers of every net.

    inputs: (net's name, description) with description `{"input": [C, H, W], "classes": int, "layers":
        [{"block", "layer", "output": [...], "parameters": int}], "parameters": int}`.

    Returns columns: `net`, `input`, `classes`, `block`, `layer`, `output` (sizes joined by ×), `parameters`, `total`
    (parameters of the whole net).

    Raises `ValueError` where the layers' parameters do not add up to the net's.
    """
    rows = []
    for net, description in inputs:
        total = description["parameters"]
        counted = sum(layer["parameters"] for layer in description["layers"])
        if counted != total:
            raise ValueError(f"{net}: its layers hold {counted} parameters, the net {total}")
        shared = {"input": _shape(description["input"]), "classes": description["classes"]}
        rows += [
            {"net": net, **shared, **layer, "output": _shape(layer["output"]), "total": total}
            for layer in description["layers"]
        ]
    return pd.DataFrame(rows)


def _shape(sizes: Iterable[int]) -> str:
    return "×".join(map(str, sizes))
