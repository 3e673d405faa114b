"""Writes the report: a folder of static pages on the built targets of some papers and the lineage of each number.

The report needs no network and no server: it can be zipped and mailed. Without JavaScript, its tables do not sort.
"""

from __future__ import annotations

import functools
import math
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import jinja2
import pandas as pd
from markupsafe import Markup

from clpapers import provenance
from clpapers.audit import lineage
from clpapers.budget.costs import duration
from clpapers.catalogue.names import named, row_and_column
from clpapers.config.model import Target
from clpapers.config.paths import block_seeds
from clpapers.config.plan import Plan
from clpapers.evidence import words
from clpapers.evidence.comparison import COMPARED, printed
from clpapers.evidence.desiderata import DESIDERATA, declare
from clpapers.evidence.differences import COLUMNS, forest, scatter
from clpapers.evidence.grades import MARGINS
from clpapers.evidence.grades import MEANINGS as OF_GRADES
from clpapers.evidence.pooled import pooled, pooled_texts
from clpapers.graph.claims import claiming
from clpapers.graph.pages import ASSETS, COPIED, TEMPLATES, claims_file, copy_path, picture_path, targets_of
from clpapers.metrics.factors import flat
from clpapers.provenance import ancestry, as_published
from clpapers.report.coverage import Numbers, by_kind, count, coverage, of_claims
from clpapers.targets.caption import Caption, read_caption
from clpapers.targets.figure import write_figure
from clpapers.targets.notes import NOT_RUN, REDUCED, STANDIN, Notes, price
from clpapers.targets.table import plus_minus, signed

SIGNS = {words.SAME: "✓", words.NEAR: "≈", words.OPEN: "?", words.DIFFERS: "✗", words.NOT_COMPARABLE: "○"}
SIGNS |= {words.SUPPORTED: "✓", words.CONTRADICTED: "✗", words.UNDECIDED: "?", words.BY_CONSTRUCTION: "="}
MEANINGS = {
    **OF_GRADES,
    words.NOT_COMPARABLE: "other data, another scale or other hardware than the paper's, or no number",
    words.SUPPORTED: "a claim's test on the reproduced runs comes out as the paper says",
    words.CONTRADICTED: "it comes out the other way",
    words.BY_CONSTRUCTION: "it holds, but no run could have decided otherwise",
    words.UNDECIDED: "its interval allows both, or Holm's correction for several tests leaves it open",
}
Anchors = dict[tuple[str, str], str]  # row and column → the address of their lineage
NUMBER = re.compile(r"[−+-]?\d[^A-Za-z]*$|∞|OoM")
UNBROKEN = "\xa0"  # a space at which no line ends
REASONS = 3  # counted in the words on folded lines
ANCESTORS = ("targets", "metrics", "selection", "features", "weights", "datasets")  # stages that many numbers share


# --- the pages -----------------------------------------------------------------------------------------------


@dataclass
class TargetPage:
    """One target as a paper's page shows it.

    caption: of a figure. rendered: its files. waits: whether none of its runs is there. lines: reported and reproduced
    numbers. pooled: the statistics over all of them, as texts. pairs: its methods compared in pairs, as texts.
    parts: the sections of its lineage page.
    """

    target: Target
    notes: Notes
    caption: Caption | None
    node: dict
    rendered: list[Path]
    waits: bool
    data: dict
    tables: list[HtmlTable]
    lines: list[dict]
    pooled: list[dict[str, str]]
    pairs: list[dict[str, str]]
    parts: list[Part]
    cost: dict
    desiderata: dict[str, str]

    @property
    def price(self) -> str:
        """The cost of its missing runs: `: the missing runs take 18 h of one core`."""
        hours = self.notes.unrun.hours
        return f": the missing runs take {price(hours)} of one core" if hours > 0 else ""

    @property
    def numbers(self) -> Numbers:
        """The counts of its lines."""
        return count(self.lines)

    @property
    def by_authors(self) -> bool:
        """Whether the authors' own number is known of any."""
        return any(pd.notna(line["authors"]) for line in self.lines)

    @property
    def tables_of_lines(self) -> list[tuple[str, list[dict]]]:
        """The lines with a verdict, under ""; and the lines without, folded away under a title that counts them."""
        return _parted(self.lines, "cause")

    @property
    def headings(self) -> list[str]:
        """The headings of the table of lines, without a column if the target has none."""
        spec = self.target.spec
        single = not any(line["column"] for line in self.lines)
        first = [named(spec, "row")] if single else [named(spec, factor) for factor in row_and_column(spec)]
        printed = ["Reported", "Authors"] if self.by_authors else ["Reported"]
        return [*first, "Metric", *printed, "Reproduced", named(spec, "Runs"), "Difference", "Verdict"]

    @property
    def files(self) -> list[Path]:
        """The files that a reader may open."""
        return [path for path in self.rendered if path.suffix in COPIED]

    @property
    def ancestors(self) -> list[dict]:
        """The files that all of its numbers share."""
        return [each for each in _walk(self.node) if each.get("stage", "targets") in ANCESTORS]


def write(plan: Plan, papers: list[str], folder: Path, notes: Callable[[Target], Notes]) -> None:
    """Write the report's files into `folder`.

    plan: of all papers. papers: the papers to report on; their targets and claims must be built. notes: returns a
    target's notes.

    Raises `ProvenanceError` for a file without a record.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"duration": duration, "size": size, "link": quote, "rounded": rounded}
    environment.globals |= {
        "plan": plan,
        "signs": SIGNS,
        "meanings": MEANINGS,
        "grades": words.GRADES,
        "margins": MARGINS,
        "by_kind": by_kind,
        "of_claims": of_claims,
        "trained": words.TRAINED,
        "letters": DESIDERATA,
        "commit": provenance.git_state()["commit"] or "unknown",
        "named": named,
        "STANDIN": STANDIN,
        "REDUCED": REDUCED,
        "papers": papers,
    }
    shutil.rmtree(folder, ignore_errors=True)  # removes pages of a report on other targets

    def write_page(file: Path, template: str, root: str, **content: object) -> None:
        provenance.write_text(file, environment.get_template(template).render(root=root, **content))

    digest = functools.cache(provenance.sha256)
    by_paper = {
        paper: [_target_page(plan, target, notes(target), digest) for target in targets_of(plan, [paper])]
        for paper in papers
    }
    with_claims, covered = claiming(papers), {each.paper: each for each in coverage(plan, papers)}
    compared = {paper: _compared(targets) for paper, targets in by_paper.items()}
    for name in ASSETS:
        text = (TEMPLATES / name).read_text(encoding="utf-8")
        provenance.write_text(folder / name, text + (colour_rules() if name.endswith(".css") else ""))
    for paper, targets in by_paper.items():
        for each in targets:
            for path in each.files:
                provenance.write_text(copy_path(path, folder), path.read_text(encoding="utf-8"))
            write_page(folder / paper / f"{each.target.name}.html", "lineage.html", "../", each=each)
        if paper in with_claims:
            file = claims_file(plan, paper, "csv")
            provenance.write_text(copy_path(file, folder), file.read_text(encoding="utf-8"))
        claims, tables = _claims(plan, paper) if paper in with_claims else ([], [])
        content: dict = {"paper": paper, "targets": targets, "tables_of_claims": tables}
        content["claims"] = _parted(claims, "reason", "effect")
        write_page(folder / paper / "index.html", "paper.html", "../", covered=covered[paper], **content)
        write_figure(forest(compared[paper]), picture_path(paper, folder).with_suffix(""), (".svg",))
    write_figure(scatter(pd.concat(compared.values())), picture_path("", folder).with_suffix(""), (".svg",))
    data = {name: facts for targets in by_paper.values() for each in targets for name, facts in each.data.items()}
    write_page(
        folder / "index.html",
        "index.html",
        "",
        by_paper=by_paper,
        covered=covered,
        whole=covered.get("all", covered[papers[0]]),
        claims=with_claims,
        data=data,
    )


def colour_rules() -> str:
    """The rules of CSS that give what has a verdict the colour that pictures draw it in."""
    rules = (f'[data-verdict="{name}"] {{ --verdict: {colour}; }}' for name, colour in words.COLOURS.items())
    return "".join(f"{rule}\n" for rule in rules)


def _compared(targets: list[TargetPage]) -> pd.DataFrame:
    """The compared numbers of a paper, as `differences` draws them."""
    lines = [
        line | {"place": each.target.name, "named": named(each.target.spec, line["metric"])}
        for each in targets
        for line in each.lines
        if line["verdict"] in words.GRADES
    ]
    return pd.DataFrame(lines, columns=[*lines[0]] if lines else [*COLUMNS])


def _target_page(plan: Plan, target: Target, notes: Notes, digest: Callable[[str], str]) -> TargetPage:
    table = target.spec["kind"] == "table"
    waits, rendered = plan.waits(target), plan.rendered(target)
    file = (
        target.note if target.note in rendered else target.stem.with_name(f"{target.name}.{'csv' if table else 'svg'}")
    )
    parts = list(_parts(plan, target, file, digest))
    measured = pd.read_csv(target.metrics)
    for part in parts:
        part.metrics, part.seeds = _by_seed(target, measured, part)
    anchors: Anchors = {}
    for part in parts:
        address = f"{target.name}.html#{quote(part.anchor)}"
        anchors[part.row, part.column] = address
        anchors[named(target.spec, part.row), named(target.spec, part.column)] = address
    described: set[str] = set()
    for cell in (cell for part in parts for cell in part.cells):
        cell["again"] = cell["cell"] in described
        described.add(cell["cell"])
    slugs: set[str] = set()
    lines = _compared_lines(target, anchors, slugs)
    for part in parts:
        part.lines = [line for line in lines if line["link"].endswith(f"#{quote(part.anchor)}")]
    return TargetPage(
        target=target,
        notes=notes,
        caption=None if table or waits else read_caption(target.stem.with_name(f"{target.name}.caption.md")),
        node=lineage.tree(file, digest, lambda path: not as_published(path).startswith(f"results/{plan.scale}/runs/")),
        rendered=rendered,
        waits=waits,
        data=provenance.read_record(file)["data"],
        tables=list(_tables(target, anchors, lines, slugs)) if table else [],
        lines=lines,
        pooled=[pooled_texts(target.spec, each) for each in _pooled(target, measured, lines)],
        pairs=_pairs(target),
        parts=parts,
        cost=_cost(file),
        desiderata=declare(target, plan.datasets),
    )


def _parted(verdicts: list[dict], key: str, number: str = "") -> list[tuple[str, list[dict]]]:
    """Those in sight under ""; those `not comparable` under a title that counts them by their reason, at `key`.

    number: the key of a number that keeps its line in sight, where the page shows it nowhere else.
    """
    uncompared = [each for each in verdicts if each["verdict"] == words.NOT_COMPARABLE]
    folded = [each for each in uncompared if not number or pd.isna(each[number])]
    shown = [each for each in verdicts if each not in folded]
    reasons = Counter(re.split("[;:]", re.sub(r"^\d+ parts: [^;]*; ", "", verdict[key]))[0] for verdict in folded)
    counts = [f"{count} {reason or 'without a number'}" for reason, count in reasons.most_common(REASONS)]
    counts += ["…"] if len(reasons) > REASONS else []
    parts = ("", shown), (f"{len(folded)} not comparable: {', '.join(counts)}", folded)
    return [each for each in parts if each[1]]


def _cost(file: Path) -> dict:
    """The costs of all jobs that a file descends from.

    Returns `seconds`, `memory`, `device_memory` (peak bytes), `devices`, `runs`.
    """
    records = ancestry(file).values()
    runs = [record for record in records if record["stage"] == "runs" and "device" in record["hardware"]]
    return {
        "seconds": sum(record["wall_seconds"] for record in records),
        "memory": max(record["peak_memory_bytes"] for record in records),
        "device_memory": max((record.get("peak_device_bytes") or 0 for record in runs), default=0),
        "devices": list(dict.fromkeys(provenance.device_of(record["hardware"]) for record in runs)),
        "runs": len(runs),
    }


# --- a target's tables ---------------------------------------------------------------------------------------


def _compared_lines(target: Target, anchors: Anchors, slugs: set[str]) -> list[dict]:
    """The lines of a target's `.reported.csv`, with texts (`comparison.printed`), slugs and addresses of lineages."""
    if not target.reported:
        return []
    file = target.stem.with_name(f"{target.name}.reported.csv")
    lines = pd.read_csv(file, keep_default_na=False, na_values=[""], dtype={"runs": str})
    texts = ["column", "cause", "reason", "calibrated", "dataset", "source", "rule", "runs", "spread_kind"]
    texts += ["reported_note", "reproduced_note"]
    no_numbers = lines.columns.difference(lines.select_dtypes("number").columns).union(texts)
    lines[no_numbers] = lines[no_numbers].astype(object).fillna("").astype(str)
    return [
        line
        | {
            "texts": printed(line),
            "link": _address(target, anchors, line["row"], line["column"]),
            "place": slug(slugs, target.name, line["row"], line["column"], line["metric"]),
        }
        for line in lines.to_dict("records")
    ]


def _pooled(target: Target, measured: pd.DataFrame, numbers: list[dict]) -> list[dict]:
    return pooled(target.spec, measured, pd.DataFrame(numbers)).to_dict("records") if numbers else []


def _pairs(target: Target) -> list[dict[str, str]]:
    """The lines of a target's `.paired.csv`, as texts."""
    file = target.stem.with_name(f"{target.name}.paired.csv")
    if file not in target.outputs:
        return []
    return [
        {
            named(target.spec, row_and_column(target.spec)[1]): str(line.column),
            "Metric": named(target.spec, line.metric),
            "First": line.first,
            "Second": line.second,
            "First − second": signed(line.difference, line.low, line.high, 1),
            "p (Holm)": "–" if pd.isna(line.p_holm) else f"{line.p_holm:.2g}",
            "Runs": str(line.n),
        }
        for line in pd.read_csv(file, keep_default_na=False, na_values=[""]).itertuples()
    ]


def _address(target: Target, anchors: Anchors, row: str, column: str) -> str:
    """The address of a number's lineage, or of its target's lineage, relative to the paper's page."""
    return anchors.get((row, column)) or anchors.get((row, "")) or f"{target.name}.html"


def _tables(target: Target, anchors: Anchors, numbers: list[dict], slugs: set[str]) -> Iterator[HtmlTable]:
    """The tables of a target's HTML, with numbers linked to their lineage and reported numbers below them.

    The tables of the comparison are left out, since the page makes its own from the CSV.
    """
    tables = _read_tables(target.stem.with_name(f"{target.name}.html"))
    for table in takewhile(lambda table: not table.title.endswith(COMPARED), tables):
        table.remove_unrun()  # first of all: what is written into a cell below is no text of the table's
        headings, body = _headings(table.tree), table.tree.findall("tbody/tr")
        compared = {(each["row"], each["column"], named(target.spec, each["metric"])): each for each in numbers}
        for row in body:
            down = _text(row[0])
            for cell, (across, metric) in zip(row[1:], headings[1:]):
                if NUMBER.match(_text(cell)):
                    _link(cell, _address(target, anchors, down, across))
                    if number := compared.get((down, across, metric)):
                        _add_verdict(cell, number)
        table.anchor(target.name, slugs)
        yield table


@dataclass
class HtmlTable:
    """One table of a page that `formats.to_html` wrote: its texts, and its markup as a tree."""

    title: str
    caption: str
    tree: ElementTree.Element
    footnotes: list[str]
    unrun: list[str] = field(default_factory=list)

    @property
    def markup(self) -> Markup:
        return Markup(ElementTree.tostring(self.tree, encoding="unicode", method="html"))

    def remove_unrun(self) -> None:
        """Remove the rows without a run, if others have one; `unrun` has their names."""
        body = _child(self.tree, "tbody")
        texts = {row: [_text(cell) for cell in row[1:]] for row in body}
        rows = [row for row, cells in texts.items() if NOT_RUN in cells and not any(map(NUMBER.match, cells))]
        if len(rows) < len(body) and "sortable" in self.tree.get("class", ""):
            for row in rows:
                self.unrun.append(_text(row[0]))
                body.remove(row)

    def anchor(self, target: str, slugs: set[str]) -> None:
        """Give each row with a name a new slug as its address; the name links to it."""
        for row in self.tree.findall("tbody/tr"):
            if name := _text(row[0]):
                row.set("id", address := slug(slugs, target, name))
                _link(row[0], f"#{address}")
                row[0][0].set("class", "anchor")


def _read_tables(file: Path) -> list[HtmlTable]:
    """The tables of such a page; a table is sortable if every row has a heading."""
    tables = []
    body = file.read_text(encoding="utf-8").partition("<body>")[2].partition("</body>")[0]  # well-formed XML
    for division in ElementTree.fromstring(f"<body>{body}</body>"):
        table = _child(division, "table")
        caption = _child(table, "caption")
        table.remove(caption)
        if all(_text(row[0]) for row in table.findall("tbody/tr")):
            table.set("class", " ".join(filter(None, ["sortable", division.get("class")])))
        strong = _child(caption, "strong")
        notes = [_text(note) for note in division.findall("p")]
        tables.append(HtmlTable(_text(strong).removesuffix("."), (strong.tail or "").strip(), table, notes))
    return tables


def slug(slugs: set[str], *names: str) -> str:
    """An address within a page, `table1.A-GEM.CIFAR`, that is not among its slugs yet; adds it."""
    address = ".".join(re.sub(r"[^\w-]+", "_", name) for name in names if name)
    while address in slugs:
        address += "_"
    slugs.add(address)
    return address


def _child(element: ElementTree.Element, tag: str) -> ElementTree.Element:
    child = element.find(tag)
    assert child is not None  # `formats.to_html` writes it
    return child


def _text(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


def _headings(table: ElementTree.Element) -> list[tuple[str, str]]:
    """Each column's two headings, the upper one without marks; numbers the sortable ones and fills an empty one."""
    upper, *lower = table.findall("thead/tr")
    spanned = [heading for heading in upper for _ in range(int(heading.get("colspan", 1)))]
    if lower and not _text(lower[0][0]):
        upper[0].set("rowspan", "2")
        lower[0].remove(lower[0][0])
        own = [upper[0], *lower[0]]
    else:
        own = list(lower[0]) if lower else spanned
    for i, heading in enumerate(own):
        heading.set("data-column", str(i))
    texts = [[_text(heading) for heading in headings] for headings in (spanned, own)]
    return [(above.rstrip(STANDIN + REDUCED), below) for above, below in zip(*texts)]


def _link(cell: ElementTree.Element, address: str) -> None:
    link = ElementTree.Element("a", href=address)
    link.text, cell.text = cell.text, None
    link.extend(list(cell))
    for child in list(cell):
        cell.remove(child)
    cell.append(link)


def _add_verdict(cell: ElementTree.Element, number: dict) -> None:
    """Put the reported number and the verdict's sign below a number."""
    cell.set("data-verdict", number["verdict"])
    below = ElementTree.SubElement(cell, "small")
    below.text = f"reported {number['texts']['reported'].replace(' ', UNBROKEN)}{UNBROKEN}"
    sign = ElementTree.SubElement(below, "span", {"role": "img", "aria-label": number["verdict"]})
    sign.text = SIGNS[number["verdict"]]


# --- a paper's claims ----------------------------------------------------------------------------------------


def _claims(plan: Plan, paper: str) -> tuple[list[dict], list[HtmlTable]]:
    """The lines of a paper's `claims.csv`, each with its effect as text; the tables of claims and of their parts."""
    claims = pd.read_csv(claims_file(plan, paper, "csv"), keep_default_na=False, na_values=[""])
    texts = [
        "claim",
        "section",
        "statement",
        "test",
        "note",
        "target",
        "unit",
        "verdict",
        "reason",
        "choice",
        "calibrated",
    ]
    claims[texts] = claims[texts].astype(object).fillna("").astype(str)
    claims["targets"] = [[name.rpartition("/")[2] for name in names.split()] for names in claims["target"]]
    own = {target.name for target in targets_of(plan, [paper])}
    claims["link"] = [next((f"{name}.html" for name in names if name in own), "") for names in claims["targets"]]
    links = dict(zip(claims["claim"], claims["link"]))
    table, *parts = _read_tables(claims_file(plan, paper, "html"))
    column = [below for _, below in _headings(table.tree)].index("Effect")
    effects = [_text(row[column]) for row in table.tree.findall("tbody/tr")]
    for part in parts:
        column = [below for _, below in _headings(part.tree)].index("Effect")
        for row in part.tree.findall("tbody/tr"):
            if links[_text(row[0])] and NUMBER.match(_text(row[column]).partition(" ")[0]):
                _link(row[column], links[_text(row[0])])
    return [claim | {"shown": effect} for claim, effect in zip(claims.to_dict("records"), effects)], [table, *parts]


# --- the lineage of its numbers ------------------------------------------------------------------------------


@dataclass
class Part:
    """The ancestors of one number, or of all that share row and column.

    - value: the CSV's lines.
    - lines: the lines of the comparison.
    - metrics: the metrics with values of single runs; seeds: these values, a row of texts a seed.
    - cells: its cells, each with the `files` of its runs and the `command` that trains them again.
    - files: the files of other stages.
    """

    row: str
    column: str
    value: list[dict]
    cells: list[dict] = field(default_factory=list)
    files: list[dict] = field(default_factory=list)
    narrowed: bool = True
    metrics: list[str] = field(default_factory=list)
    seeds: list[list[str]] = field(default_factory=list)
    lines: list[dict] = field(default_factory=list)

    @property
    def title(self) -> str:
        return ", ".join(filter(None, [self.row, self.column]))

    @property
    def anchor(self) -> str:
        return re.sub(r"\s+", "_", f"{self.row}-{self.column}")

    @property
    def streams(self) -> list[str]:
        """The streams that its runs learnt, a text for each order: `mnist/split-5, seeds 0–9`."""
        read = (Path(item["path"]) for cell in self.cells for run in cell["files"] for item in run.get("inputs", ()))
        seeds_of: dict[Path, set[int]] = {}
        for path in (path for path in read if path.parts[2:3] == ("streams",)):
            seeds_of.setdefault(Path(*path.parts[3:-1]), set()).update(block_seeds(path.stem))
        return [f"{order}, seeds {_seed_range(sorted(seeds))}" for order, seeds in sorted(seeds_of.items())]


def _parts(plan: Plan, target: Target, file: Path, digest: Callable[[str], str]) -> Iterator[Part]:
    """The lineage of a target number by number; of a figure, by rows and columns of its grid."""
    if target.spec["kind"] == "table":
        for row, column in lineage.rows_and_columns(target):
            node = lineage.of_cell(plan, target, row, column, digest)
            yield _with_files(Part(row, column, node["value"], narrowed=node["narrowed"]), node, node["cells"])
        return
    parts: dict[tuple[str, str], list] = {}
    for factors, cell in target.cells:
        levels = flat(factors)
        row, column = (
            named(target.spec, levels[factor]) if factor in levels else "" for factor in row_and_column(target.spec)
        )
        parts.setdefault((row, column), []).append((factors, cell))
    for (row, column), cells in parts.items():
        others = {cell.folder for _, cell in target.cells} - {cell.folder for _, cell in cells}
        node = lineage.tree(file, digest, lambda path: Path(as_published(path)).parent not in others)  # noqa: B023, used at once
        yield _with_files(Part(row, column, []), node, [lineage.cell_facts(*pair) for pair in cells])
    if not parts:
        yield _with_files(Part("", "", []), lineage.tree(file, digest), [])


def _by_seed(target: Target, measured: pd.DataFrame, part: Part) -> tuple[list[str], list[list[str]]]:
    """The names of the scalars of a part's runs, and for each seed their values: `["0", "38.25", "–"]`."""
    if not {"seed", "metric", "value"} <= set(measured):
        return [], []
    scalars = measured[measured["metric"].isin(target.spec.get("metrics", []))]
    scalars = scalars[scalars["time"].isna()] if "time" in scalars else scalars
    for factor, name in zip(row_and_column(target.spec), (part.row, part.column)):
        if name and factor in scalars:
            scalars = scalars[[name in (str(level), named(target.spec, level)) for level in scalars[factor]]]
    if scalars.empty or scalars.duplicated(["seed", "metric"]).any():  # several cells: not one value a seed
        return [], []
    table = scalars.pivot(index="seed", columns="metric", values="value")
    metrics = [metric for metric in target.spec["metrics"] if metric in table]
    rows = [[str(seed), *(f"{value:.6g}" for value in values)] for seed, values in table[metrics].iterrows()]
    return [named(target.spec, metric) for metric in metrics], [
        [text.replace("nan", "–") for text in row] for row in rows
    ]


def _with_files(part: Part, node: dict, cells: list[dict]) -> Part:
    """`part` with the files of a tree: files of runs under their cells or, without cells, all unshared files."""
    files = list(_walk(node))
    for cell in cells:
        of_cell = [each for each in files if Path(each["path"]).parent.name.endswith(f"-{cell['cell']}")]
        runs = [each for each in of_cell if not each["path"].endswith(".record.json")]
        again = dict.fromkeys(as_published(each["path"]) for each in runs)
        command = f"snakemake {' '.join(again)} --cores --force" if again else ""
        part.cells.append(cell | {"files": runs, "settings": dict(_flattened(cell["settings"])), "command": command})
    if not cells:
        part.files = [each for each in files if each.get("stage") not in ANCESTORS and "stage" in each]
    return part


def _walk(node: dict) -> Iterator[dict]:
    """A tree's files, each once."""
    if not node.get("seen"):
        yield node
        for each in node.get("inputs", []):
            yield from _walk(each)


def _flattened(settings: dict, prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list | dict) else str(value)
            yield f"{prefix}{key}".removesuffix(".name"), text or "none"


# --- texts ---------------------------------------------------------------------------------------------------


def rounded(mean: str, spread: str = "") -> str:
    """A mean and its spread to the spread's first two digits: `39.8 ± 2.8`; to five digits without one."""
    if not spread or not math.isfinite(float(spread)) or float(spread) == 0:
        return f"{float(mean):.5g}" if mean else NOT_RUN
    decimals = max(0, 1 - math.floor(math.log10(float(spread))))
    return plus_minus(float(mean), float(spread), decimals)


def _seed_range(seeds: list[int]) -> str:
    """`0–9`, or `0, 2, 5` where some between are left out."""
    without_gaps = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
    return f"{seeds[0]}–{seeds[-1]}" if without_gaps else ", ".join(map(str, seeds))


def size(count: float) -> str:
    """Bytes as `512 MB` or `3.2 GB`."""
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"
