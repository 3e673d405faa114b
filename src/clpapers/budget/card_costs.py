"""The costs of runs on a graphics card, in time and memory, by published runs that were trained on one.

results/published/cards.csv has a row for each learner, net and shape of items of such runs. No torch is imported.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from clpapers.archive.imported import PUBLISHED
from clpapers.budget import costs
from clpapers.config.model import Cell
from clpapers.config.plan import Plan
from clpapers.config.reported import read_csv
from clpapers.provenance import read_record
from clpapers.runs.cards import CONTEXT

FILE = PUBLISHED / "cards.csv"
WIDE = 64  # maps of a net whose seeds train one after the other on a card (`runs.loop.WIDE`)
JOBS = 2  # that tell a ratio: the first ones of a bundle have fewer beside them than the record says
UNKNOWN = 12_000  # megabytes for a job of a kind without a row
MORE = 1.25  # times the memory that was seen, as PyTorch's allocator needs some beside

Key = tuple[str, str, str]  # learner, net, shape of an item, as in `costs.Kind`


@dataclasses.dataclass(frozen=True)
class Row:
    """The costs of a kind of runs on a card.

    runs: how many were measured. ratio: seconds of a whole card for each second that `costs` predicts of a core. A run
    that shares a card counts its duration over the number of jobs abreast; None where fewer than `JOBS` tell it.
    megabytes: the most that PyTorch allocated, a seed.
    """

    learner: str
    net: str
    shape: str
    card: str
    runs: int
    ratio: float | None
    megabytes: float

    @property
    def key(self) -> Key:
        return self.learner, self.net, self.shape


def key_of(plan: Plan, cell: Cell) -> Key:
    """The key of a cell's kind."""
    kind = costs.kind(cell.spec, costs.sizes(plan, cell.spec["dataset"]).shape, 1)
    return kind.learner, kind.net, kind.shape


def measure(plan: Plan, runs: Mapping[str, Iterable[Path]], table: costs.Table) -> list[Row]:
    """The rows of finished runs that were trained on a card. runs: result files, by a cell's hash."""
    records: dict[tuple[Key, str], list[tuple[Cell, dict]]] = defaultdict(list)
    for key, files in runs.items():
        for record in map(read_record, sorted(files)):
            if record["hardware"]["device"] != "cpu":
                cell = plan.cells[key]
                records[key_of(plan, cell), record["hardware"]["device"]].append((cell, record))
    rows = []
    for (kind, card), of_kind in sorted(records.items()):
        spent, predicted = [], []
        for cell, record in of_kind:
            of_core, abreast = table.seconds(plan, cell), record["hardware"].get("abreast")
            if of_core and abreast:
                spent.append(record["wall_seconds"] / abreast)
                predicted.append(of_core * len(record["seeds"]))
        megabytes = max((record["peak_device_bytes"] or 0) / len(record["seeds"]) for _, record in of_kind) / 2**20
        count = sum(len(record["seeds"]) for _, record in of_kind)
        ratio = sum(spent) / sum(predicted) if len(spent) >= JOBS else None
        rows.append(Row(*kind, card, count, ratio, megabytes))
    return rows


def text(rows: Iterable[Row]) -> str:
    """The text of a table of rows."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([field.name for field in dataclasses.fields(Row)])
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
        writer.writerow([*row.key, row.card, row.runs, ratio, f"{row.megabytes:.0f}"])
    return out.getvalue()


@functools.lru_cache(maxsize=1)
def read(path: Path = FILE) -> dict[Key, Row]:
    """The rows of a table, by kind; none where there is no file. Raises `ConfigError` naming file, line and column."""
    rows = {}
    for line in read_csv(path, "cards", ("learner", "net", "shape", "card")).values() if path.is_file() else ():
        ratio = float(line["ratio"]) if line["ratio"] else None
        numbers = int(line["runs"]), ratio, float(line["megabytes"])
        row = Row(line["learner"], line["net"], line["shape"], line["card"], *numbers)
        rows[row.key] = row
    return rows


def seconds(plan: Plan, cell: Cell, core: float) -> float:
    """Seconds of a whole card for a run that takes so many of a core: by its kind, else by the median of similar ones.

    Similar are kinds of the same net and shape, then all.
    """
    rows, key = read(), key_of(plan, cell)
    if not (known := [row for row in rows.values() if row.ratio is not None]):
        return core
    same = [row for row in known if row.key == key]
    similar = same or [row for row in known if row.key[1:] == key[1:]] or known
    return core * statistics.median(row.ratio or 0.0 for row in similar)


def megabytes(plan: Plan, cell: Cell, seeds: int) -> int:
    """The memory of a card that a job of some seeds needs; `UNKNOWN` for a kind that was never trained on one."""
    row = read().get(key_of(plan, cell))
    if row is None or not row.megabytes:
        return UNKNOWN
    at_once = 1 if cell.spec["net"].get("width", 0) >= WIDE else seeds
    return CONTEXT + round(MORE * row.megabytes * at_once)
