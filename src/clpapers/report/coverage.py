"""Counts the printed numbers that were compared and the claims that were decided, from the rendered files."""

from __future__ import annotations

import csv
import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from clpapers.config.model import Target
from clpapers.config.plan import Plan
from clpapers.pages import claims_file, shown
from clpapers.provenance import ProvenanceError, escaped, read_record
from clpapers.targets.words import AGREES, CONTRADICTED, DIFFERS, SUPPORTED


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Of a paper, or of several: verdicts on printed numbers and on claims, and what its runs took.

    hours: core-hours of training, of the runs that its targets are made of. imported: how many of the `runs` were.
    latest: the day on which the last of them began; empty without any.
    """

    paper: str
    numbers: Counter[str]
    claims: Counter[str]
    runs: int
    imported: int
    hours: float
    latest: str

    @property
    def compared(self) -> int:
        """Printed numbers with a verdict."""
        return self.numbers[AGREES] + self.numbers[DIFFERS]

    @property
    def decided(self) -> int:
        """Claims with a verdict."""
        return self.claims[SUPPORTED] + self.claims[CONTRADICTED]


def coverage(plan: Plan, papers: Collection[str], unread: list[str] | None = None) -> list[Coverage]:
    """The coverage of each paper, and last, if there are several, of `all`; what cannot be read goes to `unread`."""
    unread = [] if unread is None else unread
    found, every = [], {}
    for paper in papers:
        targets = [target for target in shown(plan, [paper]) if target.metrics.is_file()]
        files = [t.stem.with_name(f"{t.name}.reported.csv") for t in targets if t.reported]
        numbers = Counter(line for file in files for line in _verdicts(file, unread))
        claims = Counter(_verdicts(claims_file(plan, paper, "csv"), unread))
        runs = {path: took for target in targets for path, took in _runs(target, unread)}
        every |= runs
        found.append(Coverage(paper, numbers, claims, *_spent(runs)))
    if len(found) > 1:
        sums = [sum((getattr(each, kind) for each in found), Counter()) for kind in ("numbers", "claims")]
        found.append(Coverage("all", *sums, *_spent(every)))
    return found


def _spent(runs: dict[str, tuple[int, float, str]]) -> tuple[int, int, float, str]:
    seeds = sum(seeds for seeds, _, _ in runs.values())
    imported = sum(seeds for path, (seeds, _, _) in runs.items() if "/imported/" in path)
    day = max((started for _, _, started in runs.values()), default="").partition("T")[0]
    return seeds, imported, sum(hours for _, hours, _ in runs.values()), day


def _verdicts(file: Path, unread: list[str]) -> Iterator[str]:
    if not file.is_file():
        return
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            yield from [row["verdict"] for row in csv.DictReader(opened)]
    except (OSError, ValueError, KeyError, csv.Error) as error:
        unread.append(f"{file}: {escaped(error)}; snakemake {file} --cores --force")


def _runs(target: Target, unread: list[str]) -> Iterator[tuple[str, tuple[int, float, str]]]:
    """The results that a target's metrics were made of, with the seeds, the core-hours and the start of each."""
    try:
        inputs: Iterable[dict] = read_record(target.metrics)["inputs"]
    except ProvenanceError as error:
        unread.append(escaped(error))
        return
    for path in (str(item["path"]) for item in inputs):
        of_run = {"runs", "imported"} & set(Path(path).parts[2:3]) and Path(path).name.startswith("seed")
        if of_run and not path.endswith(".record.json"):  # which some measures read too
            try:
                record = read_record(path)
                yield path, (len(record["seeds"]), float(record["cpu_seconds"]) / 3600, str(record["started"]))
            except (ProvenanceError, KeyError, TypeError, ValueError):
                yield path, (0, 0.0, "")


def table(covered: Iterable[Coverage]) -> list[list[str]]:
    """The coverage as rows of texts, the first one of headings."""
    heads = ["paper", "numbers compared", "agree", "differ", "claims decided", "supported", "contradicted"]
    rows = [[*heads, "runs", "imported", "core-hours"]]
    for each in covered:
        printed, said = sum(each.numbers.values()), sum(each.claims.values())
        counts = [each.numbers[AGREES], each.numbers[DIFFERS]], [each.claims[SUPPORTED], each.claims[CONTRADICTED]]
        rows.append(
            [
                each.paper,
                f"{each.compared} of {printed}",
                *map(str, counts[0]),
                f"{each.decided} of {said}",
                *map(str, counts[1]),
                f"{each.runs:,}",
                f"{each.imported:,}",
                f"{each.hours:,.1f}",
            ]
        )
    return rows
