"""Rehearses the kinds of cells of a plan, on real data where they exist, otherwise on random data of their shape."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from clpapers.budget import costs
from clpapers.budget.costs import Kind, Row, Sizes
from clpapers.catalogue import methods
from clpapers.catalogue.names import named
from clpapers.config.model import Cell, Target
from clpapers.config.plan import Plan
from clpapers.datasets import arrays
from clpapers.provenance import escaped, hardware, write_text
from clpapers.runs import cost_timing, loop
from clpapers.runs.process import Apart

BASELINES = ("er", "single")  # methods that others are compared with: the first that a table has
CAP = 60.0  # seconds in which a method from outside takes a step and a test of a kind
BYTES = 200_000_000  # of a data set's training items; a part of larger ones is rehearsed, as its steps cost the same
FEW_BYTES = 10_000_000  # likewise, where first steps are all that is taken


def rehearse(plan: Plan, cells: list[Cell], out: Path, seconds: float) -> None:
    """Rehearse one cell of each kind that the table `out` lacks, and write the measurements into it, kind by kind.

    A kind whose rehearsal fails is reported and left out; the others go on.
    """
    rows = {row.kind: row for row in costs.read(out)}
    waiting = [(kind, cell) for kind, cell in _kinds(plan, cells) if kind not in rows]
    for number, (kind, cell) in enumerate(waiting, 1):
        try:
            rows[kind] = next(capped(plan, [cell], seconds)) if cell.method else measured(plan, cell, kind, seconds)
        except Exception as error:  # of a method from outside, of any kind
            of = f"{kind.learner} {kind.net} {kind.shape}"
            print(f"{number} of {len(waiting)}: {of}: not measured: {_reason(error)}", file=sys.stderr)
            continue
        write_text(out, costs.text(rows.values()))
        result = f"{kind.learner} {kind.net} {kind.shape}: {costs.duration(_seconds(plan, cell, rows[kind]))} a seed"
        print(f"{number} of {len(waiting)}: {result}", file=sys.stderr, flush=True)


def _seconds(plan: Plan, cell: Cell, row: Row) -> float:
    """Seconds a seed of a cell by the row of its kind."""
    seconds = costs.Table([row], calibration=row.calibration).seconds(plan, cell)
    assert seconds is not None  # as the table has its kind
    return seconds


def _kind(plan: Plan, cell: Cell) -> Kind:
    return costs.kind(cell.spec, plan.datasets[cell.spec["dataset"]]["shape"], len(plan.blocks(cell)[0]))


def _kinds(plan: Plan, cells: list[Cell]) -> Iterator[tuple[Kind, Cell]]:
    """Kinds that differ in learner, net, shape, batch or options other than numbers of items, with a cell of each.

    The cell is the one with most tasks and memory.
    """
    kinds: dict[tuple, tuple[Kind, Cell]] = {}
    for cell in cells:
        kind = _kind(plan, cell)
        free = dict.fromkeys(methods.method_of(cell.spec["learner"]).counts_items)
        key = (kind.learner, str(json.loads(kind.options) | free), kind.net, kind.shape, kind.batch)
        if key not in kinds or (kinds[key][0].tasks, kinds[key][0].memory) < (kind.tasks, kind.memory):
            kinds[key] = kind, cell
    yield from kinds.values()


def measured(plan: Plan, cell: Cell, kind: Kind, seconds: float, bytes_: int = BYTES) -> Row:
    """The row of a kind, by the rehearsal of a cell on a part of its data set."""
    spec, size = copy.deepcopy(cell.spec), costs.sizes(plan, cell.spec["dataset"])
    most = max(bytes_ // math.prod(size.shape), 2 * size.classes)
    size = dataclasses.replace(size, train=min(size.train, most), test=min(size.test, most))
    if spec["budget"]["batch"] != "task":
        for key in ("epochs", "items") if spec["order"]["name"] != "offline" else ():
            spec["order"].pop(key, None)
    if (spec["order"]["length"] or 0) > size.train:
        spec["order"]["length"] = None
    data = real(cell, size) or noise(size, features="features" in plan.datasets[spec["dataset"]])
    return row(kind, spec, size, data, plan.blocks(cell)[0], seconds)


def capped(plan: Plan, cells: Iterable[Cell], seconds: float) -> Iterator[Row]:
    """As `measured`, of cells on a small part of their data, all at once, each in a process of its own.

    Raises `TimeoutError` where one takes longer than `CAP`.
    """
    import scipy.optimize  # noqa: F401  # which streams need: once here, not in each process

    with contextlib.ExitStack() as block:
        works = [functools.partial(measured, plan, each, _kind(plan, each), seconds, FEW_BYTES) for each in cells]
        measuring = [block.enter_context(Apart(work)) for work in works]
        for each in measuring:
            each.begin()
        for each in measuring:
            try:
                yield each.result(CAP)
            except TimeoutError:
                raise TimeoutError(f"a step and a test take longer than {CAP:g} s") from None


def _reason(error: Exception) -> str:
    return escaped(str(error).partition("\n")[0] or type(error).__name__)


def row(kind: Kind, spec: dict, size: Sizes, data: loop.Data, seeds: Iterable[int], seconds: float) -> Row:
    """The row of a kind, by the rehearsal of a cell's description over data of a size."""
    if "weights" in spec["net"]:
        spec = spec | {"net": spec["net"] | {"weights": "none"}}  # a pass takes as long with any weights
    streams = {seed: costs.stream_of(spec["order"], size, seed, data.train_y) for seed in seeds}
    costs.calibration.cache_clear()  # the machine may be busier than a moment ago
    before = costs.calibration()
    result = cost_timing.rehearse(spec, data, streams, seconds)
    costs.calibration.cache_clear()
    return Row(
        kind,
        result.seeds,
        *(result.founding, result.step, result.test, result.item),
        "; ".join(f"{path} {step:.4g} {test:.4g}" for path, (step, test) in result.repeated.items()),
        (before + costs.calibration()) / 2,
        hardware()["processor"],
    )


def real(cell: Cell, size: Sizes) -> loop.Data | None:
    """The built data set, cut to a size; None where it is not built."""
    if not cell.dataset.is_file():
        return None
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for split, count in (("train", size.train), ("test", size.test)):
        x, y, *_ = arrays.load(cell.dataset, split)
        items = np.arange(count) * len(y) // count
        parts.append((x[items], y[items]))
    train, test = parts
    return loop.Data(*train, *test, size.classes, arrays.attributes(cell.dataset))


def noise(size: Sizes, *, features: bool = False) -> loop.Data:
    """Random items of a data set's shape and number, similar within a class; features have the length 1."""
    rng = np.random.default_rng(0)
    of_class = rng.random((size.classes, *size.shape), dtype=np.float32)

    def draw(y: np.ndarray) -> np.ndarray:
        x = np.empty((len(y), *size.shape), np.float32 if features else np.uint8)
        for i, c in enumerate(y):
            item = of_class[c] + rng.random(size.shape, dtype=np.float32)
            x[i] = item / np.linalg.norm(item) if features else item * 127
        return x

    train, test = costs.labels(size.train, size.classes), costs.labels(size.test, size.classes)
    attributes = rng.random((size.classes, size.attributes), dtype=np.float32) if size.attributes else None
    return loop.Data(draw(train), train, draw(test), test, size.classes, attributes)


def beside_baseline(plan: Plan, label: str) -> tuple[str, Target, list[tuple[Cell, Cell]]] | None:
    """The first table that compares a plan's method with ER, or plain training: the baseline, the table, the pairs.

    A pair is a cell of the method and the baseline's with the same other factors. None where no table has both.
    """
    for baseline, target in itertools.product(BASELINES, plan.targets.values()):
        cells: dict[str, dict[str, Cell]] = {label: {}, baseline: {}}
        for factors, cell in target.cells:
            if (learner := factors.get("learner")) in cells:
                others = {key: value for key, value in factors.items() if key != "learner"}
                cells[learner][json.dumps(others)] = cell
        if pairs := [(own, cells[baseline][key]) for key, own in cells[label].items() if key in cells[baseline]]:
            return baseline, target, pairs
    return None


def price(plan: Plan, label: str, seconds: float = 0.3) -> list[str]:
    """The cost of a plan's method compared with ER, or plain training: a step of both, and its row in a first table.

    The method is rehearsed on each shape of images and net of the row; the other one on the first, where the ratio of
    its usual prediction to its rehearsal corrects all. Empty where no table has both methods.
    """
    if (found := beside_baseline(plan, label)) is None:
        return []
    baseline, target, pairs = found
    first, other = pairs[0]
    shapes: dict[tuple[str, str], Cell] = {}
    for cell, _ in pairs:
        shapes.setdefault((_kind(plan, cell).net, _kind(plan, cell).shape), cell)
    rows: list[Row] = []
    try:
        rows.extend(capped(plan, [other, *shapes.values()], seconds))
    except Exception as error:  # of a method from outside, of any kind
        cell = [other, *shapes.values()][len(rows)]
        where = f"{cell.spec['dataset']}, {cell.spec['net']['name']}"
        return [f"its price is not known: a step and a test ({where}) are not measured: {_reason(error)}"]
    usual, *rows = rows
    table = costs.Table(costs.read(), calibration=usual.calibration)
    predicted = costs.predict(plan, table, [other.hash])[other.hash]
    ratio = predicted / _seconds(plan, other, usual) if predicted else 1.0
    own = costs.Table(rows, calibration=usual.calibration)
    total = ratio * len(target.seeds) * sum(own.seconds(plan, cell) or 0.0 for cell, _ in pairs)
    steps = [f"{1000 * row.step / row.stack:.3g} ms" for row in (rows[0], usual)]
    where = f"{first.spec['dataset']}, {first.spec['net']['name']}"
    return [
        f"a step takes {steps[0]} a seed, {named(target.spec, baseline)}'s {steps[1]} ({where})",
        f"its row in {target.paper}/{target.name}, {len(target.seeds) * len(pairs):,} runs, takes some "
        f"{costs.duration(total)} of one core",
    ]
