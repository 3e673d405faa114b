"""The costs of runs: measured where they are finished, otherwise predicted from rehearsed runs of their kind.

A rehearsal (`clpapers.runs.cost_timing`) measures the seconds of a step, a test and a test item of a kind of cell; the
plan has their numbers. This machine's rehearsals are in results/<scale>/costs.csv, the project's own in
config/costs.csv. All are scaled twice: by the present speed of this machine, and by the ratio of measured to predicted
seconds of finished runs. Seconds are CPU seconds. No torch is imported.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import math
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from clpapers.archive.imported import imported
from clpapers.cache import Cache
from clpapers.catalogue import methods
from clpapers.catalogue.names import duration as duration  # as others write it
from clpapers.config import gans
from clpapers.config.files import CONFIG
from clpapers.config.gans import Gans
from clpapers.config.model import Cell, Target
from clpapers.config.paths import RESULTS, dataset_path, stream_path
from clpapers.config.plan import Plan
from clpapers.config.reported import read_csv
from clpapers.provenance import ProvenanceError, ancestry, code_digest, read_record
from clpapers.runs import machine
from clpapers.streams import orders
from clpapers.streams.chunks import classes_of
from clpapers.streams.stream import batches

FILE = CONFIG / "costs.csv"
# Seconds of a job besides its work where no server forks it, mostly Python's start.
JOBS = {"train": 2.2, "datasets": 0.7, "streams": 0.8, "metrics": 0.8, "targets": 3.0}
FREE = ("init", "epsilon", "weights", "head")  # options of a net that cost no time
SECONDS_A_FEATURE = 0.11  # CPU seconds that a ResNet-50 takes for an image of 224 × 224 pixels
FRAMES = 10  # of a recording, as only their number counts


@dataclasses.dataclass(frozen=True)
class Sizes:
    """A data set's sizes: items of both splits, classes, (H, W, C) of an item, attributes of a class (0: none)."""

    train: int
    test: int
    classes: int
    shape: tuple[int, int, int]
    attributes: int = 0


@dataclasses.dataclass(frozen=True)
class Kind:
    """The settings of a cell that decide the seconds of a step and of a test item, and the number of seeds a job."""

    learner: str
    options: str
    net: str
    shape: str
    optimizer: str
    batch: str
    replay_batch: int
    memory: int
    tasks: int
    seeds: int

    def likeness(self, other: Kind) -> float:
        """How well a measurement of another kind of the same learner, net and shape serves this one."""
        weights = {"batch": 8, "seeds": 2, "optimizer": 1, "replay_batch": 1}
        same = sum(weight for key, weight in weights.items() if getattr(self, key) == getattr(other, key))
        distances = (math.log((1 + getattr(self, key)) / (1 + getattr(other, key))) for key in ("tasks", "memory"))
        return same + 4 / (1 + _differing(self.options, other.options)) - sum(map(abs, distances))


@functools.lru_cache(maxsize=100_000)
def _differing(*options: str) -> int:
    """How many of the options, as `Kind` has them, differ in value or exist on one side only."""
    one, other = map(json.loads, options)
    return sum(key not in one or key not in other or one[key] != other[key] for key in one | other)


@dataclasses.dataclass(frozen=True)
class Counts:
    """The numbers of steps, tests and tested items of a seed's run."""

    steps: int
    tests: int
    items: int


@dataclasses.dataclass(frozen=True)
class Row:
    """The costs of a kind: seconds of a stack of seeds, as in `rehearsal.Costs`, and `calibration` there and then."""

    kind: Kind
    stack: int
    founding: float
    step: float
    test: float
    item: float
    repeated: str  # `epochs 0.1 0.0; gan.epochs 1.5 0.0`: seconds that each repetition adds to a step and to a test
    calibration: float
    machine: str

    def seconds(self, counts: Counts, options: Mapping) -> float:
        """Seconds a seed of a run, with its learner's options, on the machine of the row."""
        step, test = self.step, self.test
        for path, of_step, of_test in (each.split() for each in self.repeated.split("; ") if each):
            repetitions = _option(options, path)
            step, test = step + repetitions * float(of_step), test + repetitions * float(of_test)
        return (self.founding + counts.steps * step + counts.tests * test + counts.items * self.item) / self.stack


def _option(options: Mapping, key: str) -> float:
    """The value of an option by its dotted key."""
    first, _, rest = key.partition(".")
    return _option(options[first], rest) if rest else options[first]


def _narrowed(row: Row, kind: Kind) -> Row:
    """A row without repetitions, as for the net of another kind, if that is narrower."""
    widths = [sum(net.get("hidden", ())) or net.get("width", 0) for net in map(json.loads, (kind.net, row.kind.net))]
    share = min(widths[0] / widths[1], 1.0) if all(widths) else 1.0
    cheaper = {key: share * getattr(row, key) for key in ("step", "test", "item")}
    return dataclasses.replace(row, repeated="", **cheaper)


KEYS = [field.name for field in dataclasses.fields(Kind)]
VALUES = [field.name for field in dataclasses.fields(Row)][1:]
WHOLE, REAL = ("replay_batch", "memory", "tasks", "seeds", "stack"), ("founding", "step", "test", "item", "calibration")


def read(path: Path = FILE) -> list[Row]:
    """The rows of a table of costs; none where there is no file. Raises `ConfigError` naming file, line and column."""
    rows = []
    for line in read_csv(path, "costs", tuple(KEYS)).values() if path.is_file() else ():
        values: dict = line | {k: int(line[k]) for k in WHOLE} | {k: float(line[k]) for k in REAL}
        rows.append(Row(Kind(**{k: values[k] for k in KEYS}), **{k: values[k] for k in VALUES}))
    return rows


def text(rows: Iterable[Row]) -> str:
    """The text of a table of costs with these rows, sorted."""
    lines = [[*dataclasses.astuple(row)[0], *dataclasses.astuple(row)[1:]] for row in rows]
    out = io.StringIO()
    written = ([f"{value:.4g}" if isinstance(value, float) else str(value) for value in line] for line in lines)
    csv.writer(out, lineterminator="\n").writerows([[*KEYS, *VALUES], *sorted(written)])
    return out.getvalue()


# --- facts of the plan ----------------------------------------------------------------------------------------


def sizes(plan: Plan, dataset: str) -> Sizes:
    """A data set's sizes at a plan's scale: of its stand-in where only stand-ins are used, or of the real one."""
    facts = plan.datasets[dataset]
    train, test, classes = facts["train"], facts["test"], len(facts["classes"])
    images = facts["features"]["of"] if "features" in facts else dataset
    stand_in = plan.settings.get("stand_ins", {}).get(images)
    if plan.settings["sources"] == "stand_in" and stand_in:
        images_classes = len(plan.datasets[images]["classes"])
        train, test = (
            min(stand_in[f"{split}_per_class"] * images_classes, facts[split]) for split in ("train", "test")
        )
    return Sizes(train, test, classes, tuple(facts["shape"]), facts.get("attributes") or 0)


def kind(spec: dict, shape: Iterable[int], seeds: int) -> Kind:
    """The kind of a cell that learns items of a shape. seeds: how many a job trains."""
    method, budget = methods.method_of(spec["learner"]), spec["budget"]
    options = _decisive({key: value for key, value in spec["learner"].items() if key in method.options}, method)
    options |= {key: spec["evaluation"][key] for key in method.measures if key in spec["evaluation"]}
    if spec["oracle"]["name"] == "entropy":
        options["oracle"] = "entropy"  # every model passes every item
    if "changes" in method.uses and _mixes(spec["oracle"], spec["order"].get("tasks")):
        options["changes"] = "every batch"
    net = {key: value for key, value in spec["net"].items() if key not in FREE}
    return Kind(
        Path(method.file).stem or method.name,
        json.dumps(options, sort_keys=True),
        json.dumps(net, sort_keys=True),
        "x".join(map(str, shape)),
        budget["optimizer"],
        str(budget["batch"]),
        budget["replay_batch"],
        budget["memory"],
        spec["order"].get("tasks", 0),
        seeds,
    )


def _mixes(oracle: Mapping, chunks: int | None) -> bool:
    """Whether an oracle finds several tasks in each batch of a stream. chunks: its chunks of classes, if it has any."""
    finer = oracle["name"] == "split" and chunks is not None and oracle["tasks"] > chunks
    return finer or not oracle.get("aligned", True) or oracle["name"] in ("mixed", "random_tasks", "dominant_tasks")


def _decisive(options: dict, method: methods.Method, above: str = "") -> dict:
    """Options without repetitions of work, which are counted, and without weights and rates, which cost nothing."""
    decisive = {}
    for key, value in options.items():
        rate = isinstance(value, float) or (not above and method.options[key].get("type") == "number")
        if f"{above}{key}" not in method.repeats and not rate:
            decisive[key] = _decisive(value, method, f"{above}{key}.") if isinstance(value, dict) else value
    return decisive


def counts(spec: dict, size: Sizes) -> Counts:
    """The counts of a seed's run of a cell, over a data set of balanced classes."""
    evaluation = {key: spec["evaluation"].get(key) for key in ("points", "probes", "test", "shots", "every")}
    if evaluation["shots"] is not None:
        method = methods.method_of(spec["learner"])
        evaluation |= {"by_task": method.answers_by_task, "stay": method.past_tasks_frozen}
    key = json.dumps(spec["order"], sort_keys=True)
    return _cached_counts(key, spec["budget"]["batch"], json.dumps(evaluation), size)


@functools.lru_cache(maxsize=100_000)
def _cached_counts(*arguments: object) -> Counts:
    """Counts, from a cache on disk while the code that lays out streams and counts is the same: it takes a second."""
    text = f"{code_digest('clpapers.streams.orders', 'clpapers.budget.costs:_counts')} {arguments}"
    return Counts(*_COUNTS.get(text, lambda: list(dataclasses.astuple(_counts(*arguments)))))  # a list, as JSON has


_COUNTS = Cache("counts")


@functools.cache
def _counts(key: str, batch: int | str, evaluation: str, size: Sizes) -> Counts:
    order, asked = json.loads(key), json.loads(evaluation)
    epochs = order.pop("epochs", 1)
    if epochs > 2 and batch != "task":  # each further epoch has as many steps, and need not be laid out
        one, two = (_counts(json.dumps(order | {"epochs": n}, sort_keys=True), batch, evaluation, size) for n in (1, 2))
        return Counts(one.steps + (epochs - 1) * (two.steps - one.steps), two.tests, two.items)
    stream = stream_of(order | ({"epochs": epochs} if epochs > 1 else {}), size)
    ends, n = batches(stream.boundaries, len(stream.indices), batch, epochs), len(stream.indices)
    steps, seen_through = len(ends), max(len(stream.transforms), 1)
    classes = len(classes_of(order, size.classes))
    test = min(asked["test"] or size.test, size.test) * classes // size.classes
    points = {math.ceil(i * steps / asked["points"]) - 1 for i in range(1, asked["points"] + 1)}
    probes = min(asked["probes"] or n, n)
    tests, items = len(points), test * seen_through + sum(round(probes * int(ends[t]) / n) for t in points)
    if asked["shots"] is not None:
        tasks, chunks = order.get("tasks", 1), len(stream.boundaries) + 1
        before = int(np.minimum(np.bincount(stream.chunk[ends - 1]), asked["shots"] + 1).sum())
        share = 1 if len(stream.transforms) else order.get("per_task", classes / tasks) / classes
        tested = (tasks + 1) / 2 if asked["stay"] else tasks  # after a task, on average
        after = tested * share if asked["by_task"] else min(tested * share, seen_through)  # an item of several once
        tests, items = tests + before + chunks, items + round((before * share + chunks * after) * test)
    if asked["every"]:
        events = len({*np.flatnonzero(np.diff(ends // asked["every"], prepend=0)).tolist(), steps - 1})
        tests, items = tests + events, items + events * test * seen_through
    return Counts(steps, tests, items)


def labels(items: int, classes: int) -> np.ndarray:
    """The classes of items, ascending, equally many of each."""
    return np.sort(np.arange(items) % classes)


def stream_of(order: dict, size: Sizes, seed: int = 0, classes: np.ndarray | None = None) -> orders.Stream:
    """A seed's stream over a data set of a size whose items have these classes, by default equally many of each."""
    recorded = np.arange(size.train) // FRAMES, np.arange(size.train) % FRAMES
    of_items = labels(size.train, size.classes) if classes is None else classes
    return orders.make(order, of_items, seed, math.prod(size.shape), recorded, size.classes)


def features(plan: Plan, dataset: str) -> float:
    """CPU seconds that making a data set of features takes."""
    facts, size = plan.datasets[dataset], sizes(plan, dataset)
    return (size.train + size.test) * SECONDS_A_FEATURE * (facts["features"]["size"] / 224) ** 2


# --- predictions ----------------------------------------------------------------------------------------------


@functools.cache
def calibration() -> float:
    """Seconds that this machine takes for small products of matrices and small steps, as learners do both."""
    x = np.random.default_rng(0).random((64, 64), dtype=np.float32)  # so small that no library takes a second thread
    spent = []
    for _ in range(9):
        began = time.process_time()
        for _ in range(2500):
            np.maximum(x @ x, 0.5)
        spent.append(time.process_time() - began)
    return float(np.median(spent))


class Table:
    """Rehearsed kinds; among equals, kinds of earlier files come first.

    calibration: of the machine to predict for. factors: the ratio of measured to predicted seconds of a row's runs.
    """

    def __init__(
        self, *files: Iterable[Row], calibration: float | None = None, factors: Mapping[Row, float] | None = None
    ):
        self.calibration, self.factors = calibration, factors or {}
        self.rows: dict[tuple[str, str, str], list[Row]] = {}
        self.best: dict[Kind, Row | None] = {}
        for row in (row for rows in files for row in rows):
            self.rows.setdefault((row.kind.learner, row.kind.net, row.kind.shape), []).append(row)

    def row(self, kind: Kind) -> Row | None:
        """The row of the most similar kind of the same learner, net and shape; None where there is none."""
        if kind not in self.best:
            rows = self.rows.get((kind.learner, kind.net, kind.shape), [])
            self.best[kind] = max(rows, key=lambda row: kind.likeness(row.kind), default=None)
        return self.best[kind]

    def seconds(self, plan: Plan, cell: Cell) -> float | None:
        """Seconds a seed on this machine; None where nobody measured."""
        row, size = self._serving(plan, cell), sizes(plan, cell.spec["dataset"])
        return None if row is None else self._of_row(row, cell, size) * self.factors.get(row, 1.0)

    def corrected(self, plan: Plan, took: Mapping[str, float]) -> Table:
        """The table with each row multiplied by the ratio of measured to predicted seconds of its runs.

        took: measured seconds a seed, by a cell's hash.
        """
        pairs_of: dict[Row, list[tuple[float, float]]] = {}
        for key, seconds in took.items():
            cell = plan.cells[key]
            if (row := self._serving(plan, cell)) is not None:
                predicted = self._of_row(row, cell, sizes(plan, cell.spec["dataset"]))
                pairs_of.setdefault(row, []).append((seconds, predicted))
        sums = {row: [sum(each) for each in zip(*pairs)] for row, pairs in pairs_of.items()}
        factors = {row: measured / predicted for row, (measured, predicted) in sums.items() if predicted and measured}
        return Table(*self.rows.values(), calibration=self.calibration, factors=factors)

    def _serving(self, plan: Plan, cell: Cell) -> Row | None:
        return self.row(kind(cell.spec, sizes(plan, cell.spec["dataset"]).shape, len(plan.blocks(cell)[0])))

    def guess(self, plan: Plan, cell: Cell) -> float:
        """Seconds a seed of a cell whose learner, net and shape nobody measured: of the slowest among similar rows.

        Similar are rows of the same learner and shape, otherwise of the same learner, of the same net and shape, of the
        same shape, or all. Rows of methods from outside do not count for other learners. A narrower net than a row's
        counts as cheaper by as much: scales such as `smoke` have nets that nobody measured.
        """
        size = sizes(plan, cell.spec["dataset"])
        own, rows = kind(cell.spec, size.shape, 1), [row for rows in self.rows.values() for row in rows]
        of_learner = [row for row in rows if row.kind.learner == own.learner]
        of_project = [row for row in rows if row.kind.learner in methods.methods()] or rows
        of_shape = [row for row in of_project if row.kind.shape == own.shape]
        similar = (
            [row for row in of_learner if row.kind.shape == own.shape]
            or of_learner
            or [row for row in of_shape if row.kind.net == own.net]
            or of_shape
            or of_project
        )
        return max(self._of_row(_narrowed(row, own), cell, size) for row in similar)

    def _of_row(self, row: Row, cell: Cell, size: Sizes) -> float:
        options = cell.spec["learner"]
        if "gan" in options:  # which runs share (`gans`)
            options = options | {"gan": options["gan"] | {"epochs": 0}}
        return row.seconds(counts(cell.spec, size), options) * self._speed(row)

    def gans(self, plan: Plan, shared: Gans) -> float | None:
        """Seconds to train the GANs of a seed, by the seconds that their epoch adds to a step; None if not measured.

        A step of the rehearsal that draws from GANs of earlier tasks trains none, and counts in the mean.
        """
        row = self._serving(plan, shared.cell)
        if row is None:
            return None
        added = {path: float(step) for path, step, _ in map(str.split, row.repeated.split("; "))}
        return shared.tasks * shared.spec["gan"]["epochs"] * added["gan.epochs"] / row.stack * self._speed(row)

    def _speed(self, row: Row) -> float:
        """How many times as long this machine takes as the row's machine."""
        self.calibration = self.calibration or calibration()
        return self.calibration / row.calibration


def predict(plan: Plan, table: Table | None = None, cells: Collection[str] | None = None) -> dict[str, float | None]:
    """Seconds a seed of each cell of a plan, by hash; None where nothing of its learner, net and shape was rehearsed.

    cells: the hashes of the requested cells; all if None.

    GANs that runs share have their own seconds, by folder; the cells' seconds do not include them. A cell with finished
    seeds, trained here or imported, takes their mean, without the start of their jobs. All finished runs of the plan
    correct the table, so that a cell's seconds do not depend on which others are requested.
    """
    table = table or rehearsed(plan.scale)
    requested = {key: cell for key, cell in plan.cells.items() if cells is None or key in cells}
    took = finished(plan, plan.cells.values())
    table = table.corrected(plan, took)
    seconds = {key: took.get(key) or table.seconds(plan, cell) for key, cell in requested.items()}
    for each in gans.shared(plan).values() if any("gan" in cell.spec["learner"] for cell in requested.values()) else ():
        seconds[str(each.folder)] = _mean(map(each.file, sorted(each.seeds))) or table.gans(plan, each)
    return seconds


def finished(plan: Plan, cells: Iterable[Cell]) -> dict[str, float]:
    """Measured seconds a seed of the cells with seeds that were trained here or imported, by hash."""
    imported_files = imported(plan.scale)
    files = {cell.hash: {*plan.results(cell), *imported_files.get(cell.hash, ())} for cell in cells}
    return {key: seconds for key, paths in files.items() if (seconds := _mean(sorted(paths)))}


def rehearsed(scale: str) -> Table:
    """The rehearsed costs, scaled to this machine by its `calibration`.

    The calibration is measured once and saved in results/<scale>/machine.json, so that predictions stay the same.
    """
    here = machine.measured(RESULTS / scale, "calibration", calibration)
    return Table(read(RESULTS / scale / "costs.csv"), read(), calibration=here)


def _mean(files: Iterable[Path]) -> float | None:
    records = [_record(path) for path in files if path.exists()]
    trained = [record for record in records if record and record["hardware"]["device"] == "cpu"]
    seconds = sum(max(record["cpu_seconds"] - JOBS["train"], 0.0) for record in trained)
    return seconds / sum(len(record["seeds"]) for record in trained) if trained else None


def _record(path: Path) -> dict | None:
    try:
        return read_record(path)
    except ProvenanceError:
        return None


# --- targets --------------------------------------------------------------------------------------------------


def jobs(plan: Plan, target: Target, seconds: Mapping[str, float | None]) -> dict[Path, float | None]:
    """Seconds of every job that a target descends from, by the job's file. seconds: of a seed, by cell."""
    costs: dict[Path, float | None] = {target.metrics: JOBS["metrics"], target.outputs[0]: JOBS["targets"]}
    users = [(cell, target.seeds) for _, cell in target.cells]
    users += [(cell, search.seeds) for _, search in target.selections for _, cell in search.points]
    streams = {stream_path(plan.scale, dataset, order, seed) for dataset, order, seed in target.streams}
    datasets = {dataset for dataset, *_ in target.streams if plan.drawn_from(dataset)}
    for cell, seeds in users:
        each = seconds[cell.hash]
        shared = gans.of_cell(plan, cell)
        for path, block in zip(plan.results(cell), plan.blocks(cell)):
            if set(block) & set(seeds):
                if shared:
                    seconds_of_gans = seconds[str(shared.folder)]
                    cost = None if seconds_of_gans is None else JOBS["train"] + seconds_of_gans
                    costs |= dict.fromkeys(map(shared.file, block), cost)
                streams |= {cell.stream(seed) for seed in block}
                datasets.add(cell.spec["dataset"])
                costs[path] = None if each is None else JOBS["train"] + len(block) * each
    costs |= dict.fromkeys(streams, JOBS["streams"])
    for dataset in datasets:
        costs[Path(dataset)] = JOBS["datasets"]
        if "features" in plan.datasets[dataset]:
            costs[Path(dataset)] = JOBS["datasets"] + features(plan, dataset)
    return costs


def pending(plan: Plan, targets: Collection[Target], table: Table | None = None) -> str:
    """A line: the predicted time of the targets' jobs whose files are missing; no present file is made again."""
    users = [cell for target in targets for _, cell in target.cells]
    users += [cell for target in targets for _, search in target.selections for _, cell in search.points]
    seconds = predict(plan, table, {cell.hash for cell in users})
    missing: dict[Path, float | None] = {}
    for target in targets:
        missing |= {path: cost for path, cost in jobs(plan, target, seconds).items() if not _exists(plan, path)}
    predicted = [cost for cost in missing.values() if cost is not None]
    if not missing:
        return "Every file of these targets is there."
    unknown = len(missing) - len(predicted)
    return f"Predicted for what is not there yet, {len(missing):,} jobs: {duration(sum(predicted))} on one core" + (
        f", and {unknown:,} jobs of unknown cost (clpapers rehearse)" if unknown else ""
    )


def _exists(plan: Plan, path: Path) -> bool:
    """Whether a job's file, as `jobs` names it, exists; a data set goes by its name alone."""
    return (path if len(path.parts) > 1 else dataset_path(plan.scale, str(path))).exists()


def table(
    plan: Plan,
    rehearsals: Table | None = None,
    left: Mapping[str, float] = MappingProxyType({}),
    *,
    spent: bool = True,
) -> str:
    """A Markdown table of a plan's targets: the command that makes each, its runs, its cost measured and predicted.

    The measured cost is the sum of the records of its jobs, where it is built. The whole predicted cost counts all its
    jobs, those that are done among them, on one core. In the last line shared jobs count once.

    left: core-hours of the runs that are still to be trained, by target (`priority.left`), and at `all`. spent: with
    the measured cost.
    """
    seconds = predict(plan, rehearsals)
    measured = [f"cost at `{plan.scale}`"] if spent else []
    heads = ["target", "command", "runs", *measured, "whole, one core", "still to train"]
    rows = []

    def to_train(name: str) -> str:
        return duration(3600 * left[name]) if left.get(name) else ""

    all_runs: set[tuple[Path, int]] = set()  # file and seed, as files of results hold several seeds
    all_costs: dict[Path, float | None] = {}
    for name, target in plan.targets.items():
        extra = target.spec.get("extra", False)  # not of `all`
        files = [plan.results(cell, target.seeds) for _, cell in target.cells]
        files += [plan.results(cell) for _, search in target.selections for _, cell in search.points]
        runs = {(path, seed) for each in files for path, seeds in each.items() for seed in seeds}
        if spent:
            seconds_of_records = sum(record["wall_seconds"] for record in ancestry(target.outputs[0]).values())
            measured = [duration(seconds_of_records) if seconds_of_records else "not built"]
        costs = jobs(plan, target, seconds)
        if not extra:
            all_runs |= runs
            all_costs |= costs
        command = f"`snakemake {target.outputs[0]} --cores`"
        rows.append([name, command, f"{len(runs):,}", *measured, _total(costs), to_train(name)])
    of_all = ["all, shared runs once", "`snakemake all --cores`", f"{len(all_runs):,}", *([""] if spent else [])]
    rows.append([*of_all, _total(all_costs), to_train("all")])
    rule = ["---", "---", *["---:"] * (len(heads) - 2)]
    return "\n".join([f"| {' | '.join(heads)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in rows)])


def _total(costs: Mapping[Path, float | None]) -> str:
    seconds = [cost for cost in costs.values() if cost is not None]
    unknown = len(costs) - len(seconds)
    return duration(sum(seconds)) + (f", and {unknown} jobs that were not measured" if unknown else "")
