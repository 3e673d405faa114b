"""What runs cost: measured where they are finished, otherwise as runs of their kind cost that were rehearsed.

A rehearsal (`clpapers.runs.rehearsal`) says what a step, a test and a test item of a kind of cell take. The plan says how
many there are. Rehearsals of this machine stand in results/<scale>/costs.csv, those that come with the project in
config/costs.csv; these are scaled by how fast this machine is. No torch is imported.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
import math
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from clpapers import catalogue
from clpapers.config import CONFIG, RESULTS, TOY, Cell, ConfigError, Plan, Target, stream_path
from clpapers.provenance import ProvenanceError, read_record, record_path
from clpapers.streams import orders
from clpapers.streams.chunks import classes_of
from clpapers.streams.stream import batches

FILE = CONFIG / "costs.csv"
NOT_MEASURED = "not measured"
# CPU seconds of a job beside its work, most of it Python's start (benchmarks/bench_jobs.py).
JOBS = {"train": 2.2, "datasets": 0.7, "streams": 0.8, "metrics": 0.8, "targets": 3.0}
FREE = ("init", "epsilon", "weights", "head")  # of a net, what no pass takes longer for
FRAMES = 10  # of a recording, where only their number counts


@dataclasses.dataclass(frozen=True)
class Sizes:
    """A data set: items of both splits, its classes, (H, W, C) of an item, attributes known of a class (0: none)."""

    train: int
    test: int
    classes: int
    shape: tuple[int, int, int]
    attributes: int = 0


@dataclasses.dataclass(frozen=True)
class Kind:
    """All of a cell that its seconds a step and a test item depend on; `seeds` is how many a job trains."""

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
        """How well a measurement of another kind of the same learner, net and shape will do."""
        same = sum(
            weight * (getattr(self, key) == getattr(other, key))
            for key, weight in (("batch", 8), ("options", 4), ("seeds", 2), ("optimizer", 1), ("replay_batch", 1))
        )
        apart = (math.log((1 + getattr(self, key)) / (1 + getattr(other, key))) for key in ("tasks", "memory"))
        return same - sum(map(abs, apart))


@dataclasses.dataclass(frozen=True)
class Row:
    """A rehearsed kind: CPU seconds of a stack of seeds, as `rehearsal.Costs` has them, and where they were measured.

    stack: seeds of the stack. repeated: JSON, option → seconds by which each repetition lengthens a step and a test.
    calibration: what `calibration` said there and then.
    """

    kind: Kind
    stack: int
    founding: float
    step: float
    test: float
    item: float
    repeated: str
    calibration: float
    machine: str

    def seconds(self, amount: Counts, options: Mapping) -> float:
        """CPU seconds a seed of a run with these counts and learner's options, on the machine of the row."""
        step, test = self.step, self.test
        for path, (of_step, of_test) in json.loads(self.repeated).items():
            times = functools.reduce(lambda inside, part: inside[part], path.split("."), options)
            step, test = step + times * of_step, test + times * of_test
        total = self.founding + amount.steps * step + amount.tests * test + amount.items * self.item
        return total / self.stack


@dataclasses.dataclass(frozen=True)
class Counts:
    """Of a seed's run: its steps, its tests, and the items in these."""

    steps: int
    tests: int
    items: int


COLUMNS = [field.name for field in (*dataclasses.fields(Kind), *dataclasses.fields(Row)) if field.name != "kind"]
_WHOLE = ("replay_batch", "memory", "tasks", "seeds", "stack")
_REAL = ("founding", "step", "test", "item", "calibration")


def read(path: Path = FILE) -> list[Row]:
    """The rows of a table of costs; none where there is no file. Raises `ConfigError` naming file, line and column."""
    if not path.is_file():
        return []
    rows, keys = [], [field.name for field in dataclasses.fields(Kind)]
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if reader.fieldnames != COLUMNS:
                raise ConfigError(f"{path}: line 1 is not {','.join(COLUMNS)}; clpapers rehearse writes it")
            for line in reader:
                if None in line or None in line.values():
                    raise ConfigError(f"{path}: line {reader.line_num} does not have {len(COLUMNS)} columns")
                found: dict = dict(line)
                for key in (*_WHOLE, *_REAL):
                    found[key] = _number(path, reader.line_num, key, line[key])
                _check_repeated(path, reader.line_num, line["repeated"])
                kind = Kind(**{key: found.pop(key) for key in keys})
                rows.append(Row(kind, **found))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}; clpapers rehearse writes it") from None
    return rows


def _number(path: Path, line: int, key: str, text: str) -> float:
    least = 1 if key in ("seeds", "stack") else 0
    try:
        value = int(text) if key in _WHOLE else float(text)
    except ValueError:
        value = math.nan
    if not least <= value < math.inf or key == "calibration" and not value:
        raise ConfigError(f"{path}: line {line}: {key}: {text[:40]!r} is no number from {least} up")
    return value


def _check_repeated(path: Path, line: int, text: str) -> None:
    try:
        found = json.loads(text)
        right = all(len(pair) == 2 and all(0 <= float(each) < math.inf for each in pair) for pair in found.values())
    except (ValueError, TypeError, AttributeError):
        right = False
    if not right:
        raise ConfigError(f'{path}: line {line}: repeated: {text[:40]!r} is not like {{"epochs": [0.1, 0.0]}}')


def text(rows: Iterable[Row]) -> str:
    """Rows as the file has them, sorted."""
    lines = [[*dataclasses.astuple(row.kind), *dataclasses.astuple(row)[1:]] for row in rows]
    written = [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in line] for line in lines]
    return "".join(_line(line) for line in (COLUMNS, *sorted(written)))


def _line(values: Iterable[str]) -> str:
    return ",".join('"' + v.replace('"', '""') + '"' if "," in v or '"' in v else v for v in values) + "\n"


# --- what the plan knows --------------------------------------------------------------------------------------


def sizes(plan: Plan, dataset: str) -> Sizes:
    """A data set's sizes at a plan's scale, of the real one or, where only stand-ins are used, of that."""
    facts = plan.datasets[dataset]
    train, test, classes = facts["train"], facts["test"], len(facts["classes"])
    images = facts["features"]["of"] if "features" in facts else dataset
    stand_in = plan.settings.get("stand_ins", {}).get(images)
    if plan.settings["sources"] == "stand_in" and stand_in:
        of = len(plan.datasets[images]["classes"])
        train, test = (min(stand_in[f"{split}_per_class"] * of, facts[split]) for split in ("train", "test"))
    return Sizes(train, test, classes, tuple(facts["shape"]), facts.get("attributes") or 0)


def kind(spec: dict, shape: Iterable[int], seeds: int) -> Kind:
    """The kind of a cell, learnt from items of a shape, so many seeds in a job."""
    method, budget = catalogue.of(spec["learner"]), spec["budget"]
    options = _chosen({k: v for k, v in spec["learner"].items() if k != "name"}, method)
    options |= {key: spec["evaluation"][key] for key in method.measures if key in spec["evaluation"]}
    net = {key: value for key, value in spec["net"].items() if key not in FREE}
    size = "x".join(map(str, shape))
    sums = (json.dumps(each, sort_keys=True) for each in (options, net))
    least = (budget[key] for key in ("replay_batch", "memory"))
    return Kind(
        method.name, *sums, size, budget["optimizer"], str(budget["batch"]), *least, spec["order"].get("tasks", 0), seeds
    )


def _chosen(options: dict, method: catalogue.Method, above: str = "") -> dict:
    """Options without those that repeat work, which are counted, and without weights and rates, which cost nothing."""
    found = {}
    for key, value in options.items():
        rates = isinstance(value, float) or not above and method.options[key].get("type") == "number"
        if f"{above}{key}" not in method.repeats and not rates:
            found[key] = _chosen(value, method, f"{above}{key}.") if isinstance(value, dict) else value
    return found


def counts(spec: dict, size: Sizes) -> Counts:
    """What a seed's run of a cell goes through, over a data set of balanced classes."""
    part = {key: spec[part][key] for part, key in (("budget", "batch"),)}
    told = {key: spec["evaluation"].get(key) for key in ("points", "probes", "test", "shots", "every")}
    return _counts(json.dumps([spec["order"], part["batch"], told], sort_keys=True), size)


@functools.lru_cache(maxsize=100_000)
def _counts(key: str, size: Sizes) -> Counts:
    order, batch, told = json.loads(key)
    epochs = order.get("epochs", 1)
    if epochs > 2 and batch != "task":  # each epoch more has as many steps, and need not be laid out
        one, two = (_counts(json.dumps([order | {"epochs": n}, batch, told], sort_keys=True), size) for n in (1, 2))
        return Counts(one.steps + (epochs - 1) * (two.steps - one.steps), two.tests, two.items)
    stream = stream_of({key: value for key, value in order.items() if key != "epochs" or value > 1}, size)
    ends = batches(stream.boundaries, len(stream.indices), batch, epochs)
    steps, n = len(ends), len(stream.indices)
    classes = len(classes_of(order, size.classes))
    items = min(told["test"] or size.test, size.test) * classes // size.classes
    chunks, tasks = len(stream.boundaries) + 1, order.get("tasks", 1)
    whole = items * max(len(stream.transforms), 1)
    points = {math.ceil(i * steps / told["points"]) - 1 for i in range(1, told["points"] + 1)}
    probes = min(told["probes"] or n, n)
    tests, asked = len(points), whole + sum(round(probes * int(ends[t]) / n) for t in points)
    if told["shots"] is not None:
        of_task = items if len(stream.transforms) else items * order.get("per_task", classes / tasks) / classes
        length = np.bincount(stream.chunk[ends - 1], minlength=chunks)
        before = int(np.minimum(length, told["shots"] + 1).sum())
        tests, asked = tests + before + chunks, asked + (before + chunks * tasks) * of_task
    if told["every"]:
        events = {*np.flatnonzero(np.diff(ends // told["every"], prepend=0)).tolist(), steps - 1}
        tests, asked = tests + len(events), asked + len(events) * whole
    return Counts(steps, tests, round(asked))


def labels(items: int, classes: int) -> np.ndarray:
    """So many items' classes, ascending, of each as many."""
    return np.sort(np.arange(items) % classes)


def stream_of(order: dict, size: Sizes, seed: int = 0) -> orders.Stream:
    """A seed's stream over a data set of balanced classes."""
    recorded = np.arange(size.train) // FRAMES, np.arange(size.train) % FRAMES
    return orders.make(order, labels(size.train, size.classes), seed, math.prod(size.shape), recorded)


# --- predictions ----------------------------------------------------------------------------------------------


@functools.cache
def calibration() -> float:
    """CPU seconds that this machine takes for small products of matrices and small steps, as learners do both."""
    rng = np.random.default_rng(0)
    x = rng.random((64, 64), dtype=np.float32)  # so small that no library takes a second thread
    spent = []
    for _ in range(9):
        began = time.process_time()
        for _ in range(2500):
            np.maximum(x @ x, 0.5)
        spent.append(time.process_time() - began)
    return float(np.median(spent))


class Table:
    """Rehearsed kinds, the rows of earlier files first choice among equals, scaled to a machine.

    here: `calibration` of that machine.
    """

    def __init__(self, *files: list[Row], here: float | None = None):
        self.here, self.rows, self.known = here, {}, {}
        for row in (row for file in files for row in file):
            self.rows.setdefault((row.kind.learner, row.kind.net, row.kind.shape), []).append(row)

    def row(self, wanted: Kind) -> Row | None:
        """The row of the most similar kind of the same learner, net and shape; None where there is none."""
        if wanted not in self.known:
            rows = self.rows.get((wanted.learner, wanted.net, wanted.shape), [])
            self.known[wanted] = max(rows, key=lambda row: wanted.likeness(row.kind), default=None)
        return self.known[wanted]

    def seconds(self, plan: Plan, cell: Cell) -> float | None:
        """CPU seconds a seed; None of what nobody measured."""
        size = sizes(plan, cell.spec["dataset"])
        row = self.row(kind(cell.spec, size.shape, len(plan.blocks(cell)[0])))
        if row is None:
            return None
        if self.here is None:
            self.here = calibration()
        return row.seconds(counts(cell.spec, size), cell.spec["learner"]) * self.here / row.calibration


def known(scale: str) -> Table:
    """The rehearsals of this machine at a scale and those of the project."""
    return Table(read(RESULTS / scale / "costs.csv"), read())


def predict(plan: Plan, table: Table | None = None) -> dict[str, float | None]:
    """CPU seconds a seed of each cell of a plan, by hash; None where no rehearsal of its learner, net and shape is known.

    A cell of which seeds are finished costs what they did (on a CPU), its start-up left out.
    """
    table = table or known(plan.scale)
    return {key: _finished(plan, cell) or table.seconds(plan, cell) for key, cell in plan.cells.items()}


def _finished(plan: Plan, cell: Cell) -> float | None:
    spent, seeds = 0.0, 0
    for path in plan.results(cell):
        if path.exists() and (record := _record(path)) and record["hardware"]["device"] == "cpu":
            spent += max(record["cpu_seconds"] - JOBS["train"], 0.0)
            seeds += len(record["seeds"])
    return spent / seeds if seeds else None


def _record(path: Path) -> dict | None:
    try:
        return read_record(path)
    except ProvenanceError:
        return None


# --- targets --------------------------------------------------------------------------------------------------


def ancestry(*paths: Path) -> dict[Path, dict]:
    """The records behind files, their own included: record path → record."""
    found: dict[Path, dict] = {}
    queue = list(paths)
    while queue:
        file = queue.pop()
        place = record_path(file)
        if place not in found and (record := _record(file)):
            found[place] = record
            queue += [Path(item["path"]) for item in record["inputs"]]
    return found


def jobs(plan: Plan, target: Target, seconds: Mapping[str, float | None]) -> dict[Path, float | None]:
    """The CPU seconds of every job behind a target by what it makes, where `seconds` are those of a seed by cell."""
    found: dict[Path, float | None] = {target.metrics: JOBS["metrics"], target.outputs[0]: JOBS["targets"]}
    users = [(cell, target.seeds) for _, cell in target.cells]
    users += [(cell, search.seeds) for _, search in target.selections for _, cell in search.points]
    streams = {(dataset, stream_path(plan.scale, dataset, order, seed)) for dataset, order, seed in target.streams}
    for cell, seeds in users:
        each = seconds[cell.hash]
        for path, block in zip(plan.results(cell), plan.blocks(cell)):
            if set(block) & set(seeds):
                streams |= {(cell.spec["dataset"], cell.stream(seed)) for seed in block}
                found[path] = None if each is None else JOBS["train"] + len(block) * each
    for dataset, path in streams:
        found[path] = JOBS["streams"]
        found |= {} if TOY.match(dataset) else {Path(f"datasets/{dataset}"): JOBS["datasets"]}
    return found


def table(plan: Plan, rehearsed: Table | None = None) -> str:
    """A Markdown table of a plan's targets: the command that makes each, its runs, its cost measured and predicted.

    Measured is what the records of the jobs behind it say, where it is built; predicted are all of them, on one core.
    In the last line shared jobs count once.
    """
    seconds, whole = predict(plan, rehearsed), {}
    heads = ["target", "command", "runs", f"cost at `{plan.scale}`", "predicted, one core"]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---:|---:|---:|"]
    every: set[Path] = set()
    for name, target in plan.targets.items():
        extra = target.spec.get("extra", False)  # not of `all`
        runs = [path for _, cell in target.cells for path in plan.results(cell, target.seeds)]
        runs += [path for _, search in target.selections for _, cell in search.points for path in plan.results(cell)]
        every |= set() if extra else set(runs)
        spent = sum(record["wall_seconds"] for record in ancestry(target.outputs[0]).values())
        mine = jobs(plan, target, seconds)
        whole |= {} if extra else mine
        lines.append(
            f"| {name} | `snakemake {target.outputs[0]} --cores` | {len(runs)} | "
            f"{duration(spent) if spent else 'not built'} | {_shown(mine)} |"
        )
    lines.append(f"| all, shared runs once | `snakemake all --cores` | {len(every)} |  | {_shown(whole)} |")
    return "\n".join(lines)


def _shown(seconds: Mapping[Path, float | None]) -> str:
    return NOT_MEASURED if None in seconds.values() else duration(sum(seconds.values()))


def duration(seconds: float) -> str:
    """`4.5 s`, `45 s`, `12 min`, `3.4 h`, `120 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    hours = seconds / 3600
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{hours:.1f} h" if hours < 100 else f"{hours:.0f} h"
