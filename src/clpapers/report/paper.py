"""All that the pages tell of a paper, gathered from its built files and their records."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from clpapers.archive import beginnings
from clpapers.archive.beginnings import Beginning
from clpapers.catalogue.names import named, row_and_column
from clpapers.config.model import Cell, Target
from clpapers.config.plan import Plan
from clpapers.evidence import verdict_names
from clpapers.evidence.claims_table import tested
from clpapers.evidence.comparison import printed, read_compared
from clpapers.evidence.conditions import sentence
from clpapers.evidence.differences import COLUMNS
from clpapers.evidence.pooled import one_sided, pooled, pooled_texts
from clpapers.evidence.rendering import table_of
from clpapers.evidence.sentences import standing
from clpapers.graph import jobs
from clpapers.graph.pages import claims_file, findings_file, targets_of
from clpapers.home import project_path
from clpapers.metrics.factors import flat
from clpapers.provenance import as_published, device_of, read_record, sha256
from clpapers.report.coverage import Coverage, Numbers, count, coverage
from clpapers.report.findings import Cause, causes
from clpapers.targets.caption import Caption, read_caption
from clpapers.targets.footnotes import Notes, notes_on
from clpapers.targets.table import Table

Describe = Callable[[Path, tuple[int, ...]], dict]  # a result's file and the seeds that are read from it


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """A conclusion of a paper: in plain words, the place where it is drawn, and the claims that test it.

    claims: lines of the paper's `claims.csv`, with `tested` (in words), first those on what it says first.
    """

    says: str
    place: str
    claims: list[dict]

    @property
    def standing(self) -> str:
        """Whether it holds, of `verdict_names.STANDINGS`."""
        return standing([claim["verdict"] for claim in self.claims])


@dataclasses.dataclass(frozen=True)
class Runs:
    """The runs behind the numbers in a row and column of a target.

    values: metric → seed → the value as text. cells: each with its files, as `_described`.
    """

    target: str
    row: str
    column: str
    cells: list[tuple[Cell, list[dict]]]
    values: dict[str, dict[int, str]]


@dataclasses.dataclass(frozen=True)
class Section:
    """A target as a page shows it.

    tables: the target's own and those below it; none of a figure. caption, picture: of a figure that has runs.
    numbers: the lines of the comparison, with `texts`, `place` and `named`. pooled: the statistics over all of them.
    one_sided: in words, those in which all numbers lie on one side of print.
    pairs: the lines of `paired.csv` that have a number. waits: whether nothing that it is made of is there.
    """

    target: Target
    notes: Notes
    tables: list[Table]
    caption: Caption | None
    picture: Path | None
    numbers: list[dict]
    pooled: list[dict[str, str]]
    one_sided: list[str]
    pairs: list[dict]
    runs: list[Runs]
    waits: bool

    @property
    def name(self) -> str:
        return f"{self.target.paper}/{self.target.name}"

    @property
    def compared(self) -> list[dict]:
        """The numbers with a grade."""
        return [number for number in self.numbers if number["verdict"] in verdict_names.GRADES]

    @property
    def filled(self) -> bool:
        """Whether half of the cells of a data set have runs: a figure with fewer is nearly empty."""
        left = [flat(factors) for factors in self.notes.unrun.cells]
        cells, absent = (
            Counter(levels.get("dataset") for levels in some)
            for some in ([flat(factors) for factors, _ in self.target.cells], left)
        )
        return not cells or any(2 * absent[dataset] <= count for dataset, count in cells.items())

    @functools.cached_property
    def places(self) -> set[tuple[str, str]]:
        """The rows and columns that have runs."""
        return {(runs.row, runs.column) for runs in self.runs if any(files for _, files in runs.cells)}


@dataclasses.dataclass(frozen=True)
class Paper:
    """A paper as the pages tell of it.

    trained: its runs, core-hours and first steps by today's code, by commit, machine, device and PyTorch.
    """

    name: str
    title: str
    about: dict
    covered: Coverage
    conclusions: list[Conclusion]
    targets: list[Section]
    claims: list[dict]
    causes: list[Cause]
    trained: list[list[str]]

    @functools.cached_property
    def compared(self) -> pd.DataFrame:
        """The numbers with a grade, as `differences` and `findings` take them."""
        return frame_of(number for section in self.targets for number in section.compared)

    @functools.cached_property
    def cause_of(self) -> dict[tuple[str, str, str, str], Cause]:
        """Target, row, column and metric of a number that differs → the cause that it stands under."""
        return {place_of(number): cause for cause in self.causes for number in cause.numbers}


def place_of(number: dict) -> tuple[str, str, str, str]:
    """The place of a number in its paper."""
    return number["place"], number["row"], number["column"], number["metric"]


def frame_of(numbers: Iterable[dict]) -> pd.DataFrame:
    """The frame of some numbers; without any, one of the columns that drawing asks for."""
    lines = list(numbers)
    return pd.DataFrame(lines) if lines else pd.DataFrame(columns=[*COLUMNS, "rule", "texts"])


def gather(plan: Plan, papers: Collection[str], built: Callable[[Target], bool] = lambda target: True) -> list[Paper]:
    """The papers of a plan, whose targets and claims must be built as far as `built` says.

    Raises `ProvenanceError` for a file without a record.
    """
    covered, describe = {each.paper: each for each in coverage(plan, papers)}, describer()
    return [_paper(plan, paper, covered[paper], built, describe) for paper in papers]


def describer() -> Describe:
    """The function that describes a result's file, as `_described`, once."""
    begun = {each.run: each for each in beginnings.read(project_path(beginnings.FILE))}
    return functools.cache(functools.partial(_described, begun))


def _paper(plan: Plan, paper: str, covered: Coverage, built: Callable[[Target], bool], describe: Describe) -> Paper:
    targets = [_section_of(plan, target, describe) for target in targets_of(plan, [paper]) if built(target)]
    claims = _claims(plan, paper)
    by_name = {claim["claim"]: claim for claim in claims}
    conclusions = [
        Conclusion(each["says"], each["place"], [by_name[name] for name in each["claims"] if name in by_name])
        for each in plan.about[paper].get("conclusions", [])
    ]
    file = findings_file(paper)
    numbers = frame_of(number for section in targets for number in section.compared)
    failing = [claim["claim"] for claim in claims if claim["verdict"] == verdict_names.FAILS]
    found = causes(file, file.read_text(encoding="utf-8"), numbers, failing) if file.is_file() else []
    title, about = plan.titles[paper], plan.about[paper]
    return Paper(paper, title, about, covered, conclusions, targets, claims, found, _trained(targets))


def _section_of(plan: Plan, target: Target, describe: Describe) -> Section:
    """A target with what its pages show."""
    notes = notes_on(plan, target, jobs.reduced(plan, target), sentence(target, plan.datasets))
    notes = dataclasses.replace(notes, imported={})  # the runs' commits stand on their own page
    measured = pd.read_csv(target.metrics)
    tables, caption, picture = [], None, None
    if target.spec["kind"] == "table":
        table = table_of(target, measured, notes)
        tables = [table, *table.appended]
    else:
        file = target.stem.with_name(f"{target.name}.svg")
        picture = file if file.is_file() else None
        caption = read_caption(target.stem.with_name(f"{target.name}.caption.md")) if picture else None
    numbers: list[dict] = []
    if target.reported:
        frame = read_compared(target.stem.with_name(f"{target.name}.reported.csv"))
        numbers = [
            line | {"texts": printed(line), "place": target.name, "named": named(target.spec, line["metric"])}
            for line in frame.to_dict("records")
        ]
    lines = pooled(target.spec, measured, pd.DataFrame(numbers)).to_dict("records") if numbers else []
    texts = [pooled_texts(target.spec, line) for line in lines]
    sided = [*filter(None, (one_sided(target.spec, line) for line in lines))]
    file = target.stem.with_name(f"{target.name}.paired.csv")
    pairs = pd.read_csv(file).dropna(subset="difference").to_dict("records") if file in target.outputs else []
    runs = list(_runs(plan, target, measured, describe))
    return Section(target, notes, tables, caption, picture, numbers, texts, sided, pairs, runs, plan.waits(target))


def _runs(plan: Plan, target: Target, measured: pd.DataFrame, describe: Describe) -> Iterator[Runs]:
    """The runs of a target, by row and column."""
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    for factors, cell in plan.present(target).cells:
        levels = flat(factors)
        names = [named(target.spec, levels[f]) if f in levels else "" for f in row_and_column(target.spec)]
        cells.setdefault((names[0], names[1]), {})[cell.hash] = cell
    for (row, column), found in cells.items():
        files = [
            (cell, [describe(path, tuple(own)) for path, own in plan.results(cell, target.seeds).items()])
            for cell in found.values()
        ]
        yield Runs(target.name, row, column, files, _by_seed(target, measured, row, column))


def _described(begun: Mapping[str, Beginning], path: Path, seeds: tuple[int, ...]) -> dict:
    """A file of some runs of a cell.

    Returns `path`, `seeds`, `sha256`, `edited` (whether its record says otherwise), `commit`, `machine`, `device`,
    `torch`, `day`, `hours`, and `begun` (how it begins by today's code, or None).
    """
    record = read_record(path)
    return {
        "path": path,
        "seeds": seeds,
        "sha256": sha256(path),
        "edited": sha256(path) not in {each["sha256"] for each in record["outputs"]},
        "commit": record["git"]["commit"] or "unknown",
        "machine": device_of(record["hardware"]),
        "device": record["hardware"]["device"],
        "torch": record["packages"]["torch"],
        "day": record["started"].partition("T")[0],
        "hours": record["cpu_seconds"] / 3600 * len(seeds) / len(record["seeds"]),
        "begun": begun.get(as_published(path)),
    }


def _by_seed(target: Target, measured: pd.DataFrame, row: str, column: str) -> dict[str, dict[int, str]]:
    """The scalars of the runs in a row and column, by metric and seed; none where several cells share the place."""
    if not {"seed", "metric", "value"} <= set(measured):
        return {}
    scalars = measured[measured["metric"].isin(target.spec.get("metrics", []))]
    scalars = scalars[scalars["time"].isna()] if "time" in scalars else scalars
    for factor, name in zip(row_and_column(target.spec), (row, column)):
        if name and factor in scalars and len(scalars):
            scalars = scalars[[name in (str(level), named(target.spec, level)) for level in scalars[factor]]]
    if scalars.empty or scalars.duplicated(["seed", "metric"]).any():
        return {}
    return {
        named(target.spec, metric): {int(seed): f"{value:.5g}" for seed, value in zip(own["seed"], own["value"])}
        for metric, own in scalars.groupby("metric", sort=False)
    }


def _claims(plan: Plan, paper: str) -> list[dict]:
    """The lines of a paper's `claims.csv`, each with `tested`; none of a paper without claims."""
    file = claims_file(plan, paper, "csv")
    if not file.is_file():
        return []
    claims = pd.read_csv(file, keep_default_na=False, dtype=str).to_dict("records")
    return [claim | {"tested": tested(claim)} for claim in claims]


def _trained(targets: list[Section]) -> list[list[str]]:
    """The runs by commit, machine, device and PyTorch: a row of texts each."""
    runs: Counter[tuple[str, ...]] = Counter()
    hours: Counter[tuple[str, ...]] = Counter()
    files = {file["path"]: file for t in targets for each in t.runs for _, of_cell in each.cells for file in of_cell}
    begun: dict[tuple[str, ...], Counter[str]] = {}
    for file in files.values():
        key = file["commit"][:10], file["machine"], file["device"], file["torch"]
        runs[key] += len(file["seeds"])
        hours[key] += file["hours"]
        begun.setdefault(key, Counter()).update([file["begun"].verdict] if file["begun"] else [])
    told = {key: "; ".join(f"{n} {verdict}" for verdict, n in counts.items()) or "–" for key, counts in begun.items()}
    return [[*key, f"{runs[key]:,}", f"{hours[key]:,.2f}", told[key]] for key in sorted(runs)]


def numbers_of(papers: Iterable[Paper]) -> Numbers:
    """The counts of all compared numbers."""
    return sum((paper.covered.numbers for paper in papers), count([]))
