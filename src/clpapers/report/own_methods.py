"""The pages of methods from outside, one a method: its place, its differences, its rows, its runs and what more costs.

They tell what the papers' pages tell of it (`report.paper`), gathered by method.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import duration, named, row_and_column
from clpapers.config.model import Cell
from clpapers.config.plan import Plan
from clpapers.evidence import verdict_names
from clpapers.metrics.intervals import CONFIDENCE, critical, summarise, welch
from clpapers.provenance import as_published, sha256
from clpapers.report.findings import slug
from clpapers.report.pages import page_of as paper_page_of
from clpapers.report.paper import Paper, Section
from clpapers.targets.figure import write_figure
from clpapers.targets.footnotes import NOT_RUN, levels
from clpapers.targets.markdown import markdown, markdown_table
from clpapers.targets.paired import FEWEST, pairs
from clpapers.targets.style import COLUMN, STYLE
from clpapers.targets.table import signed

AHEAD, BEHIND, UNDECIDED = "ahead", "behind", "undecided"
LOOKS = {
    AHEAD: (verdict_names.COLOURS[verdict_names.SAME], "o"),
    BEHIND: (verdict_names.COLOURS[verdict_names.DIFFERS], "s"),
    UNDECIDED: ("0.45", "D"),
}
ROW, HEAD, FOOT, SIZE = 0.17, 0.25, 0.42, 7  # inches: a line, a title, an axis; points of a label
REACH = 2  # times the largest difference that a panel shows on either side; what lies further out is an arrow
DECIMALS = 2  # of a difference
UP = "../"  # from these pages to docs/


@dataclasses.dataclass(frozen=True)
class Difference:
    """A method less a baseline, in the metric's unit, with the interval that decides; NaN where one run gives none.

    paired: whether it is over the same streams; or the two means stand side by side. n: streams, or the fewer runs.
    sd: of the differences by stream, NaN without pairs. better: 1 where more is better, −1 where less is.
    """

    baseline: str
    value: float
    low: float
    high: float
    n: int
    paired: bool
    sd: float
    better: int

    @property
    def standing(self) -> str:
        """Whether the interval leaves zero out, and on which side."""
        if self.n >= FEWEST and (self.low > 0 or self.high < 0):
            return AHEAD if self.value * self.better > 0 else BEHIND
        return UNDECIDED

    def decided_by(self, runs: int, comparisons: int) -> bool:
        """Whether so many streams would decide it among some comparisons, if mean and spread stayed as they are."""
        confidence = 1 - (1 - CONFIDENCE) / comparisons  # of the first of Holm's
        return runs > self.n and bool(abs(self.value) > critical(runs - 1, confidence) * self.sd / np.sqrt(runs))


@dataclasses.dataclass(frozen=True)
class Place:
    """A method's place in a column and metric of a table, among `of` methods that were run there."""

    column: str
    metric: str
    named: str
    rank: int
    of: int
    runs: int
    differences: list[Difference]

    def count(self, standing: str) -> int:
        """How many baselines it is ahead of, behind, or neither."""
        return sum(each.standing == standing for each in self.differences)


@dataclasses.dataclass(frozen=True)
class Row:
    """A method in a table or figure.

    cells: its cells there. runs, wanted: of its runs, those that are there and those that the target asks for. hours:
    core-hours of the others, None where nobody measured. places: of a table of results, where it was run.
    """

    section: Section
    cells: list[Cell]
    runs: int
    wanted: int
    hours: float | None
    places: list[Place]

    @property
    def title(self) -> str:
        return f"{self.section.name}: {self.section.target.spec['title']}"

    @property
    def to_decide(self) -> list[Difference]:
        """The undecided differences that all runs of the target would decide, if they stayed as they are."""
        seeds = len(self.section.target.seeds)
        return [
            each
            for place in self.places
            for each in place.differences
            if each.standing == UNDECIDED and each.decided_by(seeds, len(place.differences))
        ]


@dataclasses.dataclass(frozen=True)
class OwnMethod:
    """A method from outside as its page tells of it.

    hours: core-hours of all its runs that are left, each once; None where nobody measured any. command: trains more.
    """

    label: str
    file: Path
    rows: list[Row]
    hours: float | None
    command: str

    @property
    def page(self) -> str:
        return page_of(self.label)


def page_of(label: str) -> str:
    """The page of a method, relative to docs/."""
    return f"methods/{label}.md"


def gather(plan: Plan, papers: Iterable[Paper]) -> list[OwnMethod]:
    """The methods from outside of a plan, as far as they are in some papers' targets."""
    papers, found = list(papers), []
    sections = [section for paper in papers for section in paper.targets]
    for label, method in plan.facts.user_methods.items():
        rows = [row for section in sections if (row := _row(plan, label, section))]
        cells = {cell.hash: cell for row in rows for cell in row.cells}
        methods = f"methods=[{', '.join(plan.methods)}]"
        names = f"papers={papers[0].name}" if len(papers) == 1 else f"'papers=[{', '.join(p.name for p in papers)}]'"
        command = f"snakemake all report --cores --config '{methods}' {names} hours=N"
        found.append(OwnMethod(label, Path(method.file), rows, _hours(plan, cells.values()), command))
    return found


def _row(plan: Plan, label: str, section: Section) -> Row | None:
    target = section.target
    cells = [cell for factors, cell in target.cells if factors.get("learner") == label]
    if label not in target.spec.get("own", {}) or not cells:
        return None
    there = sum(len(seeds) for cell in cells for seeds in plan.results(cell, target.seeds).values())
    places = list(_places(section, label)) if target.spec["render"] == "results_table" else []
    return Row(section, cells, there, len(target.seeds) * len(cells), _hours(plan, cells), places)


def _hours(plan: Plan, cells: Collection[Cell]) -> float | None:
    """Core-hours of the runs of some cells that a build leaves out; None where nobody measured one of them."""
    left = plan.choice.unrun if plan.choice else {}
    hours = [left[cell.hash] for cell in cells if cell.hash in left]
    return None if None in hours else sum(each for each in hours if each is not None)


def _places(section: Section, label: str) -> Iterator[Place]:
    """A method's places in a table, column by column."""
    spec = section.target.spec
    row, column = row_and_column(spec)
    data = pd.read_csv(section.target.metrics)
    if row != "learner" or not {row, column, "metric", "value"} <= set(data):
        return
    compared = pairs(spec, data[data["metric"].isin(spec["metrics"])])
    own = named(spec, label)
    for across in levels(spec, data, column):
        for metric in spec["metrics"]:
            here = compared[(compared["column"] == named(spec, across)) & (compared["metric"] == metric)]
            of_both = {frozenset((pair["first"], pair["second"])): pair for pair in here.to_dict("records")}
            cells = data[(data[column] == across) & (data["metric"] == metric)]
            means = summarise(cells, [row]).set_index(row)
            if label not in means.index:
                continue
            smaller = catalogue.metrics()[metric].better == "smaller"
            ranks = means["mean"].rank(ascending=smaller, method="min")
            differences = []
            for other in (each for each in levels(spec, cells, row) if each in means.index and each != label):
                pair = of_both.get(frozenset((own, named(spec, other))))
                sides = means.loc[label], means.loc[other]
                differences.append(_difference(pair, own, named(spec, other), *sides, -1 if smaller else 1))
            names = named(spec, across), metric, named(spec, metric)
            yield Place(*names, int(ranks[label]), len(ranks), int(means["n"][label]), differences)


def _difference(
    pair: dict | None, own: str, baseline: str, ours: pd.Series, theirs: pd.Series, better: int
) -> Difference:
    """A method less another: paired by stream where both have common ones, else by their means (Welch).

    pair: of both, a line of `paired.pairs`. ours, theirs: as `summarise` has them.
    """
    if pair is not None and pair["n"]:
        sign = 1 if pair["first"] == own else -1
        low, high = sorted((sign * pair["low_holm"], sign * pair["high_holm"]))
        value = sign * pair["difference"]
        sd = abs(value / pair["effect"]) if pair["effect"] else float("nan")
        return Difference(baseline, value, low, high, int(pair["n"]), True, sd, better)
    estimate = welch(ours["mean"], ours["se"], ours["n"], theirs["mean"], theirs["se"], theirs["n"])
    low, high = (float(end) for end in estimate.interval())
    n = int(min(ours["n"], theirs["n"]))
    return Difference(baseline, float(ours["mean"] - theirs["mean"]), low, high, n, False, float("nan"), better)


# --- the pictures ----------------------------------------------------------------------------------------------


def picture_of(method: OwnMethod, row: Row, i: int) -> str:
    """The place of the picture of a method's place number i in a table, relative to docs/."""
    return f"figures/methods/{method.label}-{row.section.name.replace('/', '-')}-{i}.svg"


def draw(methods: Iterable[OwnMethod], folder: Path) -> None:
    """Draw the places of methods, a picture a table, column and metric, below the site's folder of pages."""
    for method in methods:
        for row in method.rows:
            for i, place in enumerate(row.places):
                with mpl.rc_context(STYLE):
                    write_figure(
                        panel(method.label, place), (folder / picture_of(method, row, i)).with_suffix(""), (".svg",)
                    )


@mpl.rc_context(STYLE)
def panel(label: str, place: Place) -> Figure:
    """The differences of a method from its baselines in a column and metric, a line each, with their intervals.

    An interval is left out where there is one run; a hollow mark is no pair on the same streams.
    """
    drawn = [each for each in place.differences if np.isfinite(each.value)]
    figure = Figure(figsize=(COLUMN, HEAD + FOOT + ROW * max(len(drawn), 1)), layout="constrained")
    axes = figure.subplots()
    reach = REACH * max((abs(each.value) for each in drawn), default=0.0) or 1.0
    heights = range(len(drawn))[::-1]
    for height, each in zip(heights, drawn):
        colour, marker = LOOKS[each.standing]
        filling = colour if each.paired else "white"
        if not np.isnan(each.low):
            ends = np.clip([each.low, each.high], -reach, reach)
            axes.plot(ends, [height, height], color=colour, linewidth=1.0, zorder=1)
            for end, sign, out in ((-reach, "<", each.low < -reach), (reach, ">", each.high > reach)):
                if out:
                    axes.plot(end, height, marker=sign, color=colour, markersize=3.5, clip_on=False)
        look: dict[str, Any] = {"marker": marker, "color": colour, "markerfacecolor": filling, "markersize": 4.0}
        axes.plot(each.value, height, clip_on=False, zorder=2, **look)
    axes.axvline(0, color="0.3", linewidth=0.6, zorder=0)
    axes.set(xlim=(-reach, reach), ylim=(-0.6, max(len(drawn), 1) - 0.4))
    axes.set_yticks(list(heights), [each.baseline for each in drawn], size=SIZE)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=SIZE)
    axes.spines["left"].set_visible(False)
    metric = catalogue.metrics()[place.metric]
    unit = metric.unit.replace("%", "points")
    smaller = ", smaller is better" if metric.better == "smaller" else ""
    axes.set_xlabel(f"{label} less the other{f', {unit}' if unit else ''}{smaller}", size=SIZE)
    where = ", ".join(filter(None, [place.column, place.named]))
    axes.set_title(f"{where}: {place.rank} of {place.of}", loc="left", size=SIZE)
    return figure


# --- the text --------------------------------------------------------------------------------------------------


def texts(methods: Iterable[OwnMethod]) -> dict[str, str]:
    """The pages, by their places relative to docs/."""
    return {method.page: "\n".join(_page(method)).rstrip("\n") + "\n" for method in methods}


def linked(home: str, methods: Collection[OwnMethod]) -> str:
    """The text of the first page, with a line below its title that leads to methods from outside."""
    if not methods:
        return home
    title, _, rest = home.partition("\n\n")
    named_methods = ", ".join(f"[{markdown(each.label)}]({each.page})" for each in methods)
    return f"{title}\n\nYour methods in this build: {named_methods}.\n\n{rest}"


def _page(method: OwnMethod) -> Iterator[str]:
    yield from (f"# {markdown(method.label)}, your method", "")
    runs = {(cell.hash, seed) for row in method.rows for cell in row.cells for seed in _seeds(row, cell)}
    took = sum(file["hours"] for file in _files(method.rows).values())
    trained = f"It has {len(runs):,} runs, which took {took:,.2g} core-hours." if runs else "It has no run yet."
    yield from (f"{trained} {_price(method.hours)}", "", "```", method.command, "```", "")
    yield from (f"Its file is kept as `{method.file}`, SHA-256 `{sha256(method.file)[:12]}`.", "")
    placed = [row for row in method.rows if row.places]
    if placed:
        yield from _summary(placed)
        for row in placed:
            yield from _table(method, row)
    if lines := [row for row in method.rows if row.runs and not row.places]:
        yield from ("", "## Other tables and figures that have it", "")
        for row in lines:
            yield f"- [{markdown(row.title)}]({_section(row)}), {row.runs:,} of {row.wanted:,} runs"
    if left := [row for row in method.rows if row.runs < row.wanted]:
        yield from _left(left)
    yield from _kept(method)


def _seeds(row: Row, cell: Cell) -> Iterator[int]:
    found = (files for runs in row.section.runs for each, files in runs.cells if each.hash == cell.hash)
    yield from (seed for files in found for file in files for seed in file["seeds"])


def _files(rows: Iterable[Row]) -> dict[Path, dict]:
    """The result files of a method, each once."""
    found: dict[Path, dict] = {}
    for row in rows:
        own = {cell.hash for cell in row.cells}
        for cell, files in (each for runs in row.section.runs for each in runs.cells):
            found |= {file["path"]: file | {"cell": cell} for file in files if cell.hash in own}
    return found


def _price(hours: float | None) -> str:
    if hours is None:
        return "A build with hours measures what its other runs take, and trains as many as N hours hold:"
    if not hours:
        return "No run of it is left. This builds its page again:"
    return f"Its other runs take {duration(3600 * hours)} of one core. This trains as many of them as N hours hold:"


def _section(row: Row) -> str:
    """The address of a target on its paper's page."""
    anchor = "" if row.section.waits else f"#{slug(row.section.target.spec['title'])}"
    return f"{UP}{paper_page_of(row.section.target.paper)}{anchor}"


def _summary(rows: list[Row]) -> Iterator[str]:
    yield from ("## Its place", "")
    yield (
        "Its place is the rank of its mean. It is ahead of a method, or behind, where the interval of their difference "
        f"leaves out 0, over {FEWEST} streams or more. The interval is that of a test at 5 %, with Holm's correction "
        "for the comparisons in the same column and metric."
    )
    lines = []
    for row in rows:
        for place in row.places:
            counts = [str(place.count(standing)) for standing in (AHEAD, BEHIND, UNDECIDED)]
            name = f"[{row.section.name}](#{slug(row.title)})"
            lines.append([f"{place.rank} of {place.of}", name, markdown(place.column), place.named, *counts])
            lines[-1].append(str(place.runs))
    heads = ["place", "table", "column", "metric", AHEAD, BEHIND, UNDECIDED, "runs"]
    yield from ("", *markdown_table(heads, lines), "")


def _table(method: OwnMethod, row: Row) -> Iterator[str]:
    """A table of results: pictures, the rows of the columns where the method was run, the differences folded."""
    yield from (f"## {markdown(row.title)}", "")
    yield f"[The whole table]({_section(row)}); {row.runs:,} of {row.wanted:,} runs of {markdown(method.label)} so far."
    yield ""
    for i, place in enumerate(row.places):
        alone = f"{method.label} less each method, {place.column}, {place.named}"
        yield f"![{markdown(alone)}]({UP}{picture_of(method, row, i)})"
    paired = [each.paired for place in row.places for each in place.differences]
    told = "All are over common streams." if all(paired) else "A hollow mark compares means: no stream is common."
    yield from ("", f"Green: ahead; red: behind; grey: undecided. {told}", "", *_rows(method, row), "")
    lines = [
        [
            *(markdown(place.column), place.named, markdown(each.baseline)),
            signed(each.value, each.low, each.high, DECIMALS).replace(" ", "\u00a0"),
            str(each.n),
            each.standing,
        ]
        for place in row.places
        for each in place.differences
    ]
    heads = ["column", "metric", "less", "difference", "streams" if all(paired) else "runs", "standing"]
    yield from (f"<details><summary>{len(lines)} differences</summary>", "", *markdown_table(heads, lines))
    yield from ("", "</details>", "")


def _rows(method: OwnMethod, row: Row) -> Iterator[str]:
    """The table's rows, in the columns where the method has a number; its own first and bold."""
    body, name = row.section.tables[0].body, named(row.section.target.spec, method.label)
    rows = body.to_numpy().tolist()
    own = [each for each in rows if each[0] == name]
    shown = [0, *(i for i in range(1, len(body.columns)) if any(str(each[i]) not in ("", NOT_RUN) for each in own))]
    others = [each for each in rows if each[0] != name and any(str(each[i]) not in ("", NOT_RUN) for i in shown[1:])]
    heads = [" ".join(filter(None, each)) if isinstance(each, tuple) else str(each) for each in body.columns]
    lines = [[f"**{markdown(str(each[i]))}**" for i in shown] for each in own]
    lines += [[markdown(str(each[i])) for i in shown] for each in others]
    yield from markdown_table([heads[i] for i in shown], lines)


def _left(rows: list[Row]) -> Iterator[str]:
    yield from ("", "## What more would cost and decide", "")
    yield (
        "Runs that several tables share count in each. A difference would be decided if its mean and spread over "
        "streams stayed as they are."
    )
    lines = []
    for row in rows:
        undecided = sum(place.count(UNDECIDED) for place in row.places)
        decides = f"{len(row.to_decide)} of {undecided} undecided differences" if row.places else "its first numbers"
        cost = "not measured" if row.hours is None else duration(3600 * row.hours) if row.hours else NOT_RUN
        counts = f"{row.runs:,} of {row.wanted:,}"
        lines.append([f"[{markdown(row.title)}]({_section(row)})", counts, cost, decides])
    heads = ["table or figure", "runs so far", "the others take", "all of them would decide"]
    yield from ("", *markdown_table(heads, lines), "")


def _kept(method: OwnMethod) -> Iterator[str]:
    """The files of its runs, with their digests."""
    files = _files(method.rows)
    if not files:
        return
    yield from ("", "## Runs and files", "")
    yield "`clpapers lineage FILE` follows one down to its images; `clpapers audit` hashes all again."
    lines = []
    for path, file in sorted(files.items()):
        edited = ", **not as recorded**" * file["edited"]
        name, seeds = as_published(str(path)), ", ".join(map(str, file["seeds"]))
        digest = f"`{file['sha256'][:12]}`{edited}"
        lines.append([file["cell"].spec["dataset"], seeds, digest, f"{file['hours']:.2g}", file["day"], f"`{name}`"])
    yield from ("", f"<details><summary>{len(lines)} files</summary>", "")
    yield from markdown_table(["data set", "seeds", "SHA-256", "core-hours", "day", "file"], lines)
    yield from ("", "</details>")
