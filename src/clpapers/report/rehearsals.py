"""Rehearses the kinds of cells of a plan, on the real data where they are there, and on random ones of their shape."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from clpapers import catalogue
from clpapers.config.model import Cell
from clpapers.config.plan import Plan
from clpapers.datasets import arrays
from clpapers.provenance import escaped, hardware, write_text
from clpapers.report import costs
from clpapers.report.costs import Kind, Row, Sizes
from clpapers.runs import loop, rehearsal

BYTES = 200_000_000  # of a data set's training items; of larger ones a part is rehearsed, whose steps cost the same


def rehearse(plan: Plan, cells: list[Cell], out: Path, seconds: float) -> None:
    """Rehearse one cell of each kind that the table `out` lacks, and write what is measured into it, kind by kind.

    A kind whose rehearsal fails is told of and left out: the others are none the worse for it.
    """
    rows = {row.kind: row for row in costs.read(out)}
    waiting = [(kind, cell) for kind, cell in _kinds(plan, cells) if kind not in rows]
    for number, (kind, cell) in enumerate(waiting, 1):
        try:
            rows[kind] = measured(plan, cell, kind, seconds)
        except Exception as error:  # of a method from outside, of any kind
            said = escaped(str(error).partition("\n")[0] or type(error).__name__)
            print(f"{number} of {len(waiting)}: {kind.learner} {kind.net}: not measured: {said}", file=sys.stderr)
            continue
        write_text(out, costs.text(rows.values()))
        each = costs.Table([rows[kind]], here=rows[kind].calibration).seconds(plan, cell)
        said = f"{kind.learner} {kind.net} {kind.shape}: {costs.duration(each)} a seed"
        print(f"{number} of {len(waiting)}: {said}", file=sys.stderr, flush=True)


def _kinds(plan: Plan, cells: list[Cell]) -> Iterator[tuple[Kind, Cell]]:
    """Kinds that differ in learner, net, shape, batch or options other than numbers of items, one a cell of each.

    It is the one with most tasks and memory.
    """
    found: dict[tuple, tuple[Kind, Cell]] = {}
    for cell in cells:
        kind = costs.kind(cell.spec, plan.datasets[cell.spec["dataset"]]["shape"], len(plan.blocks(cell)[0]))
        free = dict.fromkeys(catalogue.of(cell.spec["learner"]).counts_items)
        key = (kind.learner, str(json.loads(kind.options) | free), kind.net, kind.shape, kind.batch)
        if key not in found or (found[key][0].tasks, found[key][0].memory) < (kind.tasks, kind.memory):
            found[key] = kind, cell
    yield from found.values()


def measured(plan: Plan, cell: Cell, kind: Kind, seconds: float) -> Row:
    """The row of a kind, by the rehearsal of a cell."""
    spec, size = copy.deepcopy(cell.spec), costs.sizes(plan, cell.spec["dataset"])
    most = max(BYTES // math.prod(size.shape), 2 * size.classes)
    size = dataclasses.replace(size, train=min(size.train, most), test=min(size.test, most))
    if spec["budget"]["batch"] != "task":
        spec["order"].pop("epochs", None)
    if (spec["order"]["length"] or 0) > size.train:
        spec["order"]["length"] = None
    data = real(cell, size) or noise(size, features="features" in plan.datasets[spec["dataset"]])
    return row(kind, spec, size, data, plan.blocks(cell)[0], seconds)


def row(kind: Kind, spec: dict, size: Sizes, data: loop.Data, seeds: Iterable[int], seconds: float) -> Row:
    """The row of a kind, by the rehearsal of a cell's description over data of a size."""
    if "weights" in spec["net"]:
        spec = spec | {"net": spec["net"] | {"weights": "none"}}  # whichever they are, a pass takes as long
    streams = {seed: costs.stream_of(spec["order"], size, seed, data.train_y) for seed in seeds}
    costs.calibration.cache_clear()  # the machine may be busier than a moment ago
    before = costs.calibration()
    found = rehearsal.rehearse(spec, data, streams, seconds)
    costs.calibration.cache_clear()
    return Row(
        kind,
        found.seeds,
        *(found.founding, found.step, found.test, found.item),
        "; ".join(f"{path} {step:.4g} {test:.4g}" for path, (step, test) in found.repeated.items()),
        (before + costs.calibration()) / 2,
        hardware()["processor"],
    )


def real(cell: Cell, size: Sizes) -> loop.Data | None:
    """The data set as it was built, cut to a size; None where it is not there."""
    if not cell.dataset.is_file():
        return None
    parts = []
    for split, count in (("train", size.train), ("test", size.test)):
        x, y, *_ = arrays.load(cell.dataset, split)
        kept = np.arange(count) * len(y) // count
        parts += [x[kept], y[kept]]
    return loop.Data(*parts, size.classes, arrays.attributes(cell.dataset))


def noise(size: Sizes, *, features: bool = False) -> loop.Data:
    """Random items of a data set's shape and number that are alike within a class; features have the length 1."""
    rng = np.random.default_rng(0)
    of_class = rng.random((size.classes, *size.shape), dtype=np.float32)

    def drawn(y: np.ndarray) -> np.ndarray:
        x = np.empty((len(y), *size.shape), np.float32 if features else np.uint8)
        for i, c in enumerate(y):
            each = of_class[c] + rng.random(size.shape, dtype=np.float32)
            x[i] = each / np.linalg.norm(each) if features else each * 127
        return x

    train, test = costs.labels(size.train, size.classes), costs.labels(size.test, size.classes)
    known = rng.random((size.classes, size.attributes), dtype=np.float32) if size.attributes else None
    return loop.Data(drawn(train), train, drawn(test), test, size.classes, known)
