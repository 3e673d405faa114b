"""Counts the compared printed numbers and the decided claims, for all pages and tables that show such counts."""

from __future__ import annotations

import csv
import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from clpapers.config.model import Target
from clpapers.config.plan import Plan
from clpapers.config.reported import read_csv
from clpapers.evidence import verdict_names
from clpapers.evidence.sentences import by_sentence
from clpapers.graph.pages import claims_file, targets_of
from clpapers.provenance import read_record, sha256, verified_record

DECIDED = (verdict_names.HOLDS, verdict_names.FAILS)


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Printed numbers by kind and verdict. once: shared comparisons count once. weak: numbers on one run, by kind."""

    every: Counter[tuple[str, str]]
    once: Counter[tuple[str, str]]
    weak: Counter[str]

    def __add__(self, other: Numbers) -> Numbers:
        return Numbers(self.every + other.every, self.once + other.once, self.weak + other.weak)

    def compared(self, *kinds: str, once: bool = False) -> int:
        """Numbers with a grade, of some kinds or of all."""
        counts = self.once if once else self.every
        return sum(counts[kind, grade] for kind in kinds or verdict_names.KINDS for grade in verdict_names.GRADES)

    def grades(self, *kinds: str) -> dict[str, int]:
        """How many have each grade, each comparison once."""
        return {
            grade: sum(self.once[kind, grade] for kind in kinds or verdict_names.KINDS)
            for grade in verdict_names.GRADES
        }


@dataclasses.dataclass(frozen=True)
class Coverage:
    """The verdicts on the printed numbers and claims of a paper, or of several, and the cost of the runs.

    - printed: how many numbers the paper prints.
    - sentences: the sentences that claims test, by `evidence.sentences`.
    - runs: the runs that its targets are made of; imported: how many of them were imported.
    - hours: their core-hours of training.
    - latest: the day on which the last of them began; empty without any.
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
    def all_claims(self) -> int:
        """How many claims there are."""
        return sum(self.claims.values()) - self.claims[verdict_names.CALIBRATED]


def count(numbers: Iterable[Mapping[str, object]]) -> Numbers:
    """The counts of some lines of `*.reported.csv`, of targets of one paper, in their order."""
    every: Counter[tuple[str, str]] = Counter()
    weak: Counter[str] = Counter()
    once: dict[tuple, tuple[str, str]] = {}
    for i, number in enumerate(sorted(numbers, key=lambda number: not number["against_se"])):  # as `each_once`
        kind, verdict = str(number["kind"]), str(number["verdict"])
        every[kind, verdict] += 1
        if number["cause"] == verdict_names.WEAK and verdict in verdict_names.GRADES:
            weak[kind] += 1
        once.setdefault(tuple(number[key] for key in verdict_names.ONCE) if number["runs"] else (i,), (kind, verdict))
    return Numbers(every, Counter(once.values()), weak)


def coverage(plan: Plan, papers: Collection[str]) -> list[Coverage]:
    """The coverage of each paper, and last, if there are several, of `all`."""
    covered: list[Coverage] = []
    all_runs: dict[str, tuple[int, float, str]] = {}
    for paper in papers:
        targets = [target for target in targets_of(plan, [paper]) if target.metrics.is_file()]
        files = [t.stem.with_name(f"{t.name}.reported.csv") for t in targets if t.reported]
        numbers = count(line for file in files for line in lines_of(file))
        claims = lines_of(claims_file(plan, paper, "csv"))
        verdicts = Counter(claim["verdict"] for claim in claims)
        verdicts[verdict_names.CALIBRATED] = sum(
            bool(claim["calibrated"]) and claim["verdict"] in DECIDED for claim in claims
        )
        runs = {path: took for target in targets for path, took in _runs(target)}
        all_runs |= runs
        covered.append(Coverage(paper, printed(plan, paper), numbers, verdicts, by_sentence(claims), *_spent(runs)))
    if len(covered) > 1:
        covered.append(
            Coverage(
                "all",
                sum(each.printed for each in covered),
                sum((each.numbers for each in covered[1:]), covered[0].numbers),
                sum((each.claims for each in covered), Counter[str]()),
                sum((each.sentences for each in covered), Counter[str]()),
                *_spent(all_runs),
            )
        )
    return covered


def printed(plan: Plan, paper: str, name: str = "") -> int:
    """How many numbers a paper prints, or its authors give, in the report's targets or in the target `name`."""
    targets = [target for target in targets_of(plan, [paper]) if name in ("", target.name)]
    files = {target.reported: target for target in targets if target.reported}
    names = {target.name for target in targets if target.reported}
    lines = (line for file in files for line in read_csv(file).values() if line["target"] in names)
    return sum(bool(line["value"] or line.get("authors")) and line["spread_kind"] != "formula" for line in lines)


def _spent(runs: dict[str, tuple[int, float, str]]) -> tuple[int, int, float, str]:
    seeds = sum(seeds for seeds, _, _ in runs.values())
    imported = sum(seeds for path, (seeds, _, _) in runs.items() if "/imported/" in path)
    day = max((started for _, _, started in runs.values()), default="").partition("T")[0]
    return seeds, imported, sum(hours for _, hours, _ in runs.values()), day


def lines_of(file: Path, *, proven: bool = True) -> list[dict[str, str]]:
    """The lines of a CSV, as texts; none of a file that is not there.

    Raises `ProvenanceError` for one that is not as its record says, if `proven`.
    """
    if not file.is_file():
        return []
    if proven:
        verified_record({"path": str(file), "sha256": sha256(file)})
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def _runs(target: Target) -> Iterator[tuple[str, tuple[int, float, str]]]:
    """The results that a target's metrics were made of, with the seeds, the core-hours and the start of each."""
    for path in (str(item["path"]) for item in read_record(target.metrics)["inputs"]):
        of_run = {"runs", "imported"} & set(Path(path).parts[2:3]) and Path(path).name.startswith("seed")
        if of_run and not path.endswith(".record.json"):  # which some measures read too
            record = read_record(path)
            yield path, (len(record["seeds"]), float(record["cpu_seconds"]) / 3600, str(record["started"]))


def table(covered: Iterable[Coverage]) -> list[list[str]]:
    """The coverage as rows of texts, the first one of headings; grades are of trained numbers, each comparison once."""
    heads = ["paper", "printed", "compared", "trained, each once", *verdict_names.GRADES]
    rows = [[*heads, "runs", "imported", "core-hours"]]
    for each in covered:
        numbers = each.numbers
        trained = numbers.grades(verdict_names.TRAINED).values()
        counts = [each.printed, numbers.compared(), sum(trained), *trained]
        rows.append([each.paper, *map("{:,}".format, [*counts, each.runs, each.imported]), f"{each.hours:,.1f}"])
    return rows


def by_kind(numbers: Numbers) -> list[list[str]]:
    """The numbers compared, a row a kind, as texts; the first row has headings."""
    rows = [["numbers", "compared", "on one run", "each once", *verdict_names.GRADES]]
    for name, kinds in [*((kind, [kind]) for kind in verdict_names.KINDS), ("all", verdict_names.KINDS)]:
        counts = [numbers.compared(*kinds), sum(numbers.weak[kind] for kind in kinds)]
        counts += [numbers.compared(*kinds, once=True), *numbers.grades(*kinds).values()]
        rows.append([name, *map("{:,}".format, counts)])
    return rows


def of_claims(covered: Iterable[Coverage]) -> list[list[str]]:
    """The claims as rows of texts, the first one of headings."""
    verdicts = (*DECIDED, verdict_names.UNDECIDED, verdict_names.BY_CONSTRUCTION, verdict_names.NOT_COMPARABLE)
    rows = [["paper", "claims", *verdicts, "decided, calibrated"]]
    for each in covered:
        claims = [each.all_claims, *(each.claims[verdict] for verdict in (*verdicts, verdict_names.CALIBRATED))]
        rows.append([each.paper, *map(str, claims)])
    return rows


def of_sentences(covered: Iterable[Coverage]) -> list[list[str]]:
    """The sentences that claims test as rows of texts, the first one of headings."""
    rows = [["paper", "sentences", *verdict_names.STANDINGS]]
    for each in covered:
        sentences = [sum(each.sentences.values()), *(each.sentences[name] for name in verdict_names.STANDINGS)]
        rows.append([each.paper, *map(str, sentences)])
    return rows
