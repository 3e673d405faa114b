"""Counts the printed numbers that were compared and the claims that were decided; all counts shown are made here."""

from __future__ import annotations

import csv
import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from clpapers.config.model import Target
from clpapers.config.plan import Plan
from clpapers.config.reported import read_csv
from clpapers.evidence.sentences import SENTENCES, by_sentence
from clpapers.evidence.words import (
    BY_CONSTRUCTION,
    CALIBRATED,
    CONTRADICTED,
    GRADES,
    KINDS,
    NOT_COMPARABLE,
    ONCE,
    SUPPORTED,
    TRAINED,
    UNDECIDED,
    WEAK,
)
from clpapers.graph.pages import claims_file, targets_of
from clpapers.provenance import ProvenanceError, escaped, read_record

DECIDED = (SUPPORTED, CONTRADICTED)


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Printed numbers by kind and verdict. once: each comparison once where targets share runs. weak: on one run."""

    every: Counter[tuple[str, str]]
    once: Counter[tuple[str, str]]
    weak: Counter[str]

    def __add__(self, other: Numbers) -> Numbers:
        return Numbers(self.every + other.every, self.once + other.once, self.weak + other.weak)

    @property
    def verdicts(self) -> Counter[str]:
        """How many have each verdict, of any kind."""
        found: Counter[str] = Counter()
        for (_, verdict), number in self.every.items():
            found[verdict] += number
        return found

    def compared(self, *kinds: str, once: bool = False) -> int:
        """Numbers with a grade, of some kinds or of all."""
        counted = self.once if once else self.every
        return sum(counted[kind, grade] for kind in kinds or KINDS for grade in GRADES)

    def grades(self, *kinds: str) -> dict[str, int]:
        """How many have each grade, each comparison once."""
        return {grade: sum(self.once[kind, grade] for kind in kinds or KINDS) for grade in GRADES}


@dataclasses.dataclass(frozen=True)
class Coverage:
    """Of a paper, or of several: verdicts on printed numbers and on claims, and what its runs took.

    printed: how many numbers there are. sentences: what the claims test, by `targets.sentences`. hours:
    core-hours of training, of the runs that its targets are made of. imported: how many of the `runs` were. latest: the
    day on which the last of them began; empty without any.
    """

    paper: str
    printed: int
    numbers: Numbers
    claims: Counter[str]
    sentences: Counter[str]
    runs: int
    imported: int
    hours: float
    latest: str

    @property
    def decided(self) -> int:
        """Claims with a verdict."""
        return sum(self.claims[verdict] for verdict in DECIDED)

    @property
    def said(self) -> int:
        """Claims."""
        return sum(self.claims.values()) - self.claims[CALIBRATED]


def count(lines: Iterable[Mapping[str, object]]) -> Numbers:
    """The verdicts of some lines of `*.reported.csv`, of targets of one paper, in their order."""
    every: Counter[tuple[str, str]] = Counter()
    weak: Counter[str] = Counter()
    once: dict[tuple, tuple[str, str]] = {}
    for i, line in enumerate(lines):
        found = str(line["kind"]), str(line["verdict"])
        every[found] += 1
        if line["cause"] == WEAK and found[1] in GRADES:
            weak[found[0]] += 1
        once.setdefault(tuple(line[key] for key in ONCE) if line["runs"] else (i,), found)
    return Numbers(every, Counter(once.values()), weak)


def coverage(plan: Plan, papers: Collection[str], unread: list[str] | None = None) -> list[Coverage]:
    """The coverage of each paper, and last, if there are several, of `all`; what cannot be read goes to `unread`."""
    unread = [] if unread is None else unread
    found, every = [], {}
    for paper in papers:
        targets = [target for target in targets_of(plan, [paper]) if target.metrics.is_file()]
        files = [t.stem.with_name(f"{t.name}.reported.csv") for t in targets if t.reported]
        numbers = count(line for file in files for line in _lines(file, ("kind", "verdict", "cause", *ONCE), unread))
        said = list(_lines(claims_file(plan, paper, "csv"), ("verdict", "statement", "calibrated"), unread))
        claims = Counter(line["verdict"] for line in said)
        claims[CALIBRATED] = sum(bool(line["calibrated"]) and line["verdict"] in DECIDED for line in said)
        runs = {path: took for target in targets for path, took in _runs(target, unread)}
        every |= runs
        found.append(Coverage(paper, printed(plan, paper), numbers, claims, by_sentence(said), *_spent(runs)))
    if len(found) > 1:
        numbers = sum((each.numbers for each in found[1:]), found[0].numbers)
        counts = [sum((getattr(each, kind) for each in found), Counter()) for kind in ("claims", "sentences")]
        found.append(Coverage("all", sum(each.printed for each in found), numbers, *counts, *_spent(every)))
    return found


def printed(plan: Plan, paper: str, name: str = "") -> int:
    """How many numbers a paper prints, or its authors give, in the targets that are shown, or in the one of a name."""
    targets = [target for target in targets_of(plan, [paper]) if target.reported and name in ("", target.name)]
    names = {target.name for target in targets}
    files = dict.fromkeys(target.reported for target in targets)
    lines = (line for file in files for line in read_csv(file).values() if line["target"] in names)
    return sum(bool(line["value"] or line.get("authors")) and line["spread_kind"] != "formula" for line in lines)


def _spent(runs: dict[str, tuple[int, float, str]]) -> tuple[int, int, float, str]:
    seeds = sum(seeds for seeds, _, _ in runs.values())
    imported = sum(seeds for path, (seeds, _, _) in runs.items() if "/imported/" in path)
    day = max((started for _, _, started in runs.values()), default="").partition("T")[0]
    return seeds, imported, sum(hours for _, hours, _ in runs.values()), day


def _lines(file: Path, keys: tuple[str, ...], unread: list[str]) -> Iterator[dict[str, str]]:
    if not file.is_file():
        return
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            yield from [{key: row[key] for key in keys} for row in csv.DictReader(opened)]
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
    """The coverage as rows of texts, the first one of headings; grades are of trained numbers, each comparison once."""
    heads = ["paper", "printed", "compared", "trained, each once", *GRADES]
    rows = [[*heads, "runs", "imported", "core-hours"]]
    for each in covered:
        numbers = each.numbers
        trained = numbers.grades(TRAINED).values()
        counts = [each.printed, numbers.compared(), sum(trained), *trained]
        whole = [*counts, each.runs, each.imported]
        rows.append([each.paper, *map("{:,}".format, whole), f"{each.hours:,.1f}"])
    return rows


def by_kind(numbers: Numbers) -> list[list[str]]:
    """The numbers compared, a row a kind, as texts; the first row has headings."""
    rows = [["numbers", "compared", "on one run", "each once", *GRADES]]
    for name, kinds in [*((kind, [kind]) for kind in KINDS), ("all", KINDS)]:
        counts = [numbers.compared(*kinds), sum(numbers.weak[kind] for kind in kinds)]
        counts += [numbers.compared(*kinds, once=True), *numbers.grades(*kinds).values()]
        rows.append([name, *map("{:,}".format, counts)])
    return rows


def of_claims(covered: Iterable[Coverage]) -> list[list[str]]:
    """The claims and sentences as rows of texts, the first one of headings."""
    verdicts = (*DECIDED, UNDECIDED, BY_CONSTRUCTION, NOT_COMPARABLE)
    rows = [["paper", "claims", *verdicts, "decided, calibrated", "sentences", *SENTENCES]]
    for each in covered:
        claims = [each.said, *(each.claims[verdict] for verdict in verdicts)]
        sentences = [sum(each.sentences.values()), *(each.sentences[name] for name in SENTENCES)]
        rows.append([each.paper, *map(str, [*claims, each.claims[CALIBRATED], *sentences])])
    return rows
