"""Writes the pages on what came out, as Markdown for code hosts and for the site.

Paths are relative to docs/. HTML stands only where Markdown has no word: to fold, and to name a grade.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from clpapers.catalogue.metrics import PERCENT
from clpapers.catalogue.names import duration, named, row_and_column
from clpapers.evidence import verdict_names
from clpapers.report import runs_table
from clpapers.report.coverage import by_kind
from clpapers.report.findings import EXPLAINED, IN_PART, UNEXPLAINED, Cause, slug
from clpapers.report.paper import Paper, Section, numbers_of, place_of
from clpapers.targets.footnotes import NOT_RUN, REDUCED, STANDIN
from clpapers.targets.markdown import markdown, markdown_table
from clpapers.targets.style import COLUMN
from clpapers.targets.table import Table, signed

(SAME_WITHIN, NEAR_WITHIN), (SAME_SHARE, NEAR_SHARE) = PERCENT["margins"], PERCENT["shares"]
GRADES = (
    f"We check the grades in this order. **same**: the 90 % interval of the difference lies within "
    f"±{SAME_WITHIN} points. "
    f"**differs**: its 95 % interval leaves out 0. **near**: the 90 % interval lies within ±{NEAR_WITHIN} points. "
    "**open**: too few runs, ours or the paper's, to decide. **diverges, as printed**: infinite in both. The "
    f"margins are at most {100 * SAME_SHARE:g} % and {100 * NEAR_SHARE:g} % of the printed value; [other "
    "units](verdicts.md#margins) have others."
)
PRINTED = (
    "A printed spread is shown as the half-width of its 95 % interval, and a printed number with as many digits as "
    "ours. The interval of a difference counts the digits that the paper prints."
)
HOME, CONCLUSIONS, GALLERY = "index.md", "holds.md", "gallery.md"
LINKED = (".csv", ".tex")  # files of a target that the site links
DECIMALS = 2  # of a difference between two methods
LONGEST = 30  # characters of a number with its interval
EMPTY = ("", NOT_RUN, "N.A.")  # cells of a table without a number
POINTS = 72  # an inch
MANY = 40  # differences whose picture is folded
PICTURE, FOREST = "figures/published.svg", "figures/differences-{paper}.svg"  # all numbers, and a paper's differences
LEDE = "We re-implement papers on how to evaluate continual learning, from raw images to tables."
EXAMPLE = [  # on the first page, beside the papers
    "**[Three types of incremental learning](own_paper.md)**, van de Ven et al. 2022: an example of your own paper.",
    "",
    "- **By configuration alone.** One YAML file, one CSV of printed numbers, one file for each method that we lack.",
]
STANDING = (
    "We split a conclusion into claims that runs can test. It **holds** if all of them do. It **holds where tested** "
    "if its first claim does, and the others are not decided yet. It **holds in part** if one holds and another does "
    "not. It **does not hold** if one does not and no other does. It holds **by construction** if no run could have "
    "decided otherwise. It is **not tested** where no claim is comparable, and else **undecided**. A claim is **not "
    "comparable** on data or hardware other than the paper's. A conclusion can hold although numbers differ, for "
    "instance when all methods shift equally."
)


def page_of(paper: str) -> str:
    """The page of a paper."""
    return f"reproduction/{paper}.md"


def texts(papers: list[Paper], pictures: Mapping[str, str] | None = None, files: str = "") -> dict[str, str]:
    """All pages on what came out, by their places.

    pictures: of each figure, by `<paper>/<target>`, its place; with them there is a gallery. files: the folder of the
    targets' files, relative to a paper's page, if the page stands beside them.
    """
    some = any(len(paper.compared) for paper in papers)
    made = {HOME: home(papers, some), CONCLUSIONS: conclusions(papers), runs_table.PAGE: runs_table.TEXT}
    if pictures is not None:
        made[GALLERY] = gallery(papers, pictures)
    for paper in papers:
        made[page_of(paper.name)] = paper_page(paper, pictures or {}, files)
    return made


# --- home and conclusions ------------------------------------------------------------------------------------


def status(papers: list[Paper]) -> str:
    """The counts of all papers, in sentences."""
    numbers = numbers_of(papers)
    grades = numbers.grades(verdict_names.TRAINED)
    total, explained = sum(paper.covered.printed for paper in papers), _explained(papers)
    differing, graded = grades[verdict_names.DIFFERS], sum(grades.values())
    parts = _counted(grades)
    text = (
        f"The papers print {total:,} numbers, and ours stand beside {numbers.compared():,}. We grade {graded:,} of "
        f"these, with the grades explained below: {', '.join(parts[:-1])}, and {parts[-1]}. The others are printed "
        "twice, or need no training, or served to choose a setting that the paper leaves out, so that they are no "
        "check."
    )
    return " ".join([text, *([f"{explained}."] if differing else []), *one_sided(papers)])


def one_sided(papers: Iterable[Paper]) -> Iterator[str]:
    """A sentence a target that lies on one side of print as a whole."""
    sections = (section for paper in papers for section in paper.targets if section.one_sided)
    yield from (f"In `{section.name}`, {' and '.join(section.one_sided)}." for section in sections)


def _counted(grades: Mapping[str, int]) -> list[str]:
    """How many numbers have each grade; of those that diverge, as printed, only where there are any."""
    verbs = {
        verdict_names.SAME: "are the same",
        verdict_names.NEAR: "near",
        verdict_names.OPEN: "open",
        verdict_names.DIFFERS: "differ",
        verdict_names.DIVERGES: "diverge, as printed",
    }
    return [f"{n} {verbs[grade]}" for grade, n in grades.items() if n or grade != verdict_names.DIVERGES]


def _explained(papers: Iterable[Paper]) -> str:
    """How many of the trained numbers that differ we explain, in part, or not."""
    counts = dict.fromkeys((EXPLAINED, IN_PART, UNEXPLAINED), 0)
    seen = set()
    for paper in papers:
        for cause in paper.causes:
            for number in cause.numbers:
                key = (paper.name, *(number[each] for each in verdict_names.ONCE))
                if number["kind"] == verdict_names.TRAINED and (not number["runs"] or key not in seen):
                    seen.add(key)
                    counts[cause.status] += 1
    return (
        f"We explain {counts[EXPLAINED]} of the {sum(counts.values())} that differ, and {counts[IN_PART]} in part; "
        f"{counts[UNEXPLAINED]} remain"
    )


def home(papers: list[Paper], picture: bool) -> str:
    """The first page: the three doors and the counts beside the picture, and a card a paper."""
    lines = ["# Do the papers' results hold?", "", LEDE, ""]
    lines += ['<div class="beside">', "", "<div>", ""]
    findings = ", ".join(f"[{paper.name}](findings/{paper.name}.md)" for paper in papers)
    lines += [
        f"- **Does a number hold?** One page says [which conclusions hold]({CONCLUSIONS}). "
        "The papers below lead to their numbers.",
        "- **Where does my method stand?** [One file of yours](own_method.md) becomes a row of each table that "
        "compares methods.",
        "- **Can I have the streams alone?** [Yes](streams.md), as files for your own training code.",
        "",
        status(papers),
        "",
        GRADES,
        "",
        "</div>",
        "",
    ]
    if picture:
        lines += ["<div>", "", f"![Ours against the printed numbers, by grade]({PICTURE})", ""]
        lines += ["The picture has the graded numbers that are percentages.", "", "</div>", ""]
    lines += [
        "</div>",
        "",
        "## Five papers" if len(papers) == 5 else "## Papers",
        "",
        f"{STANDING} Findings tell why numbers differ: {findings}. The [glossary](glossary.md) has the words.",
        "",
        '<div class="papers">',
        "",
    ]
    for paper in papers:
        lines += ['<div class="paper">', "", f"**[{titled(paper)}]({page_of(paper.name)})**, {cited(paper)}.", ""]
        lines += [*_standing(paper), "", "</div>", ""]
    lines += ['<div class="paper">', "", *EXAMPLE, "", "</div>", "", "</div>"]
    return "\n".join(lines) + "\n"


def titled(paper: Paper) -> str:
    """The name of a paper's page, which all links to it have: `agem: Efficient lifelong learning with A-GEM`."""
    return f"{paper.name}: {paper.title}"


def cited(paper: Paper) -> str:
    """A paper's authors and year as a text cites them: `Chaudhry et al. 2019`."""
    authors = paper.about.get("authors", "").split(", ")
    last = [author.split()[-1] for author in authors if author]
    short = f"{last[0]} et al." if len(last) > 2 else " & ".join(last) if "year" in paper.about else authors[0]
    return " ".join(filter(None, [short, str(paper.about.get("year", ""))]))


def _standing(paper: Paper) -> Iterator[str]:
    """A card's lines: what holds of a paper's conclusions, and what does not."""
    by_standing: dict[str, list[str]] = {}
    for conclusion in paper.conclusions:
        by_standing.setdefault(conclusion.standing, []).append(conclusion.says)
    for standing in verdict_names.STANDINGS:
        yield from (f"- **{standing.capitalize()}.** {says}" for says in by_standing.get(standing, []))
    grades = paper.covered.numbers.grades(verdict_names.TRAINED)
    counts = ", ".join(_counted(grades)).replace("are the ", "")
    yield f"- **Numbers.** {counts}." if sum(grades.values()) else "- **Numbers.** None is compared yet."


def conclusions(papers: list[Paper]) -> str:
    """The page of the papers' conclusions: the sentence, whether it holds, the effects with their intervals."""
    lines = [
        "# What holds",
        "",
        "This page lists each paper's conclusions in plain words. We chose them from abstract and conclusion, before "
        f"we looked at any verdict. {STANDING} Brackets after a conclusion have the paper's sections. Below it stand "
        "its claims, each with our number, the interval that decides, and the bounds that the claim sets. A ratio has "
        "a ×. The interval is of 95 %, or bears its own level ([why](verdicts.md#claims)). A claim of several parts "
        "shows one: among the parts that decide it, the one farthest from holding.",
        "",
        *(line for sentence in one_sided(papers) for line in (sentence, "")),
    ]
    for paper in papers:
        lines += [
            f"## {paper.name}",
            "",
            f"[{titled(paper)}]({page_of(paper.name)}).",
            "",
            *_conclusions(paper, ""),
            "",
        ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _conclusions(paper: Paper, up: str) -> list[str]:
    """The lines of a paper's conclusions, each with the claims that test it. up: the way from the page to docs/."""
    lines = []
    for conclusion in paper.conclusions:
        lines.append(f"- **{conclusion.says}** ({conclusion.place}) {_grade(conclusion.standing)}")
        order = [verdict_names.UNDECIDED, verdict_names.NOT_COMPARABLE]  # these last
        claims = sorted(conclusion.claims, key=lambda claim: claim["verdict"] in order)
        lines += [f"  - {_tested(paper, claim, up)}" for claim in claims]
    return lines or ["No conclusion of it is listed."]


def _tested(paper: Paper, claim: dict, up: str) -> str:
    target = claim["target"].split()[0]
    section = _section(paper, target)
    place = f"[{target}]({up}{section})" if "#" in section else target
    several = int(claim["parts"]) > 1
    said = claim["test"] if several or not claim["result"] else claim["result"]
    shown = f". One of {claim['parts']} parts: {markdown(claim['result'])}" if several and claim["result"] else ""
    return f"{_grade(claim['verdict'])}: {markdown(said)} ({place}){shown}"


# --- a paper -------------------------------------------------------------------------------------------------


def paper_page(paper: Paper, pictures: Mapping[str, str], files: str) -> str:
    """The page of a paper. Parameters as `texts`."""
    up = "../"
    about = paper.about
    whence = "from outside of the project" if about.get("from_outside") else ""
    who = ", ".join(filter(None, [about.get("authors", ""), str(about.get("year", "")), whence]))
    link = f" [The paper]({about['link']})." if "link" in about else ""
    lines = [f"# {titled(paper)}", "", f"{who}.{link}", "", "## What holds", "", *_conclusions(paper, up)]
    lines += ["", "## What differs, and why", "", *_causes(paper, up)]
    if count := len(paper.compared):
        place = f"{up}{FOREST.format(paper=paper.name)}"
        picture = f"![Differences, ours minus printed, with 95 % intervals, by table]({place})"
        lines += ["", *(_folded("A picture of all differences", [picture]) if count > MANY else [picture])]
    lines += ["", "## How many numbers", "", *_counts(paper, up)]
    waiting = [section for section in paper.targets if section.waits]
    lines += ["", "## Tables and figures", ""]
    if waiting:
        named_targets = ", ".join(f"`{section.target.name}` ({_price(section)})" for section in waiting)
        lines += [f"Not run yet: {named_targets}.", ""]
    for section in (section for section in paper.targets if not section.waits):
        lines += [*_target(paper, section, pictures.get(section.name), up, files), ""]
    lines += ["## Claims", "", *_claims(paper), "", "## Runs", "", *_trained(paper, up)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _folded(summary: str, lines: Iterable[str]) -> list[str]:
    """Lines that a reader opens by a click on the summary."""
    return [f"<details><summary>{summary}</summary>", "", *lines, "", "</details>"]


def _price(section: Section) -> str:
    hours = section.notes.unrun.hours
    return f"{duration(3600 * hours)} of one core" if hours > 0 else "data not at hand"


def _causes(paper: Paper, up: str) -> Iterator[str]:
    found = [cause for cause in paper.causes if cause.once or cause.claims]
    if not found:
        yield "No number that was compared differs."
        return
    rows = [
        [
            f"[{markdown(cause.title)}]({_finding(paper, cause, up)})",
            str(cause.once),
            str(len(cause.claims)),
            cause.status,
        ]
        for cause in found
    ]
    total = ["all", str(sum(cause.once for cause in found)), str(sum(len(cause.claims) for cause in found)), ""]
    yield from markdown_table(["cause", "numbers that differ", "claims", "status"], [*rows, total])


def _finding(paper: Paper, cause: Cause, up: str) -> str:
    return f"{up}findings/{paper.name}.md#{cause.anchor}"


def _counts(paper: Paper, up: str) -> Iterator[str]:
    numbers, covered = paper.covered.numbers, paper.covered
    if not numbers.compared():
        yield f"The paper prints {covered.printed} numbers. None is compared yet."
        return
    heads, *rows = ([kind, *counts[2:]] for kind, *counts in by_kind(numbers))
    again = numbers.compared() - numbers.compared(once=True)
    yield (
        f"The paper prints {covered.printed} numbers. {numbers.compared()} of them are compared. The tables and "
        f"figures below rest on {covered.runs} runs, which took {covered.hours:,.1f} core-hours; GANs that runs share "
        "are not counted."
        + (f" {again} compare the same runs with the same number again; the table has each once." if again else "")
    )
    yield ""
    yield from markdown_table(heads, (row for row in rows if row[1] != "0"))
    yield from ("", GRADES.replace("(verdicts.md", f"({up}verdicts.md"), "", PRINTED)


def _section(paper: Paper, name: str) -> str:
    """The address of a target's section, relative to docs/; of the page where it has none."""
    section = next((section for section in paper.targets if section.name == name and not section.waits), None)
    anchor = f"#{slug(section.target.spec['title'])}" if section else ""
    return f"{page_of(name.partition('/')[0])}{anchor}"


def _target(paper: Paper, section: Section, picture: str | None, up: str, files: str) -> Iterator[str]:
    """A target's section."""
    spec = section.target.spec
    yield from (f"### {markdown(spec['title'])}", "", markdown(section.notes.caption(spec)), "")
    ends = [path.name.removeprefix(section.target.name) for path in section.target.outputs if path.suffix in LINKED]
    links = [f"[{end[1:]}]({files}/{section.name}{end})" for end in ends if files]
    hours = " --config hours=N" if section.target.cells else ""
    yield from (", ".join([f"`snakemake {section.name} --cores{hours}`", *links]), "")
    if section.caption and picture:
        shown = [f"![{markdown(section.caption.title)}]({up}{picture})"]
        yield from (*(shown if section.filled else _folded("The picture, nearly empty so far", shown)), "")
        yield from (f"{markdown(note)}\n" for note in section.caption.notes)
    elif section.caption:
        target = section.target
        yield from (f"`make` draws it, `{target.stem}.svg`; its numbers are in `{target.metrics}`.", "")
    for i, table in enumerate(section.tables):
        if i:
            yield from (f"**{markdown(table.title)}.** {markdown(table.caption)}", "")
        yield from _graded(paper, section, table, up)
        yield ""
        yield from (f"{markdown(note)}\n" for note in [*table.footnotes, *table.sources])
    if count := len(section.compared):
        summary = f"{count} numbers: printed, ours, difference" if count > 1 else "One number: difference"
        yield from _folded(summary, _differences(paper, section, up))
    if section.pairs:
        summary = f"{len(section.pairs)} pairs of methods on the same streams"
        yield from ("", *_folded(summary, _pairs(section)))


def _graded(paper: Paper, section: Section, table: Table, up: str) -> Iterator[str]:
    """A table whose numbers lead to their runs and have the printed number and the grade below them."""
    body = table.body
    columns = [each if isinstance(each, tuple) else (str(each), "") for each in body.columns]
    numbers = {(n["row"], n["column"], n["named"]): n for n in section.numbers}
    metrics = section.target.spec.get("metrics", [])
    only = named(section.target.spec, metrics[0]) if len(metrics) == 1 else ""
    rows, unrun = [], []
    for texts, bold in zip(body.to_numpy().tolist(), table.bold.to_numpy().tolist()):
        cells = [f"**{markdown(text)}**" if strong else markdown(str(text)) for text, strong in zip(texts, bold)]
        row = str(texts[0])
        if table is section.tables[0] and NOT_RUN in texts[1:] and not any(map(_is_number, texts[1:])):
            unrun.append(row)
            continue
        for i, (across, metric) in enumerate(columns[1:], 1):
            column = across.rstrip(STANDIN + REDUCED)
            if not _is_number(texts[i]):
                continue
            cells[i] = _unbroken(cells[i])
            if (row, column) in section.places:
                cells[i] = runs_table.linked(cells[i], up + runs_table.address(section.name, row, column))
            number = numbers.get((row, column, metric or only))
            if number and number["verdict"] in verdict_names.GRADES:
                beside = [number["texts"]["printed"], number["texts"]["against"]]
                printed = "; ".join(each for each in beside if each not in ("", NOT_RUN))
                cells[i] += f"<br><small>{_unbroken(printed)}</small> {_verdict(paper, number, up)}"
        rows.append(cells)
    if not rows:  # none has a number: say so once, and show them all
        rows, unrun = [[markdown(str(text)) for text in texts] for texts in body.to_numpy().tolist()], []
    heads = [" ".join(filter(None, each)) for each in columns]
    shown, empty = _with_numbers(section, rows)
    yield from markdown_table([heads[i] for i in shown], ([cells[i] for i in shown] for cells in rows))
    if any("<small>" in cell for cells in rows for cell in cells):
        yield from (
            "",
            "The small line has the printed number, the one that ours is graded against if it is another, and the "
            "grade. A number leads to its runs.",
        )
    if unrun := [*map(markdown, unrun), *(heads[i] for i in empty)]:
        yield from ("", f"Not run yet: {', '.join(unrun)}.")


def _with_numbers(section: Section, rows: list[list[str]]) -> tuple[list[int], list[int]]:
    """The columns of a table to show, those that only guesses have last; and the columns in which nothing was run.

    rows: the cells; the first has the row's name. All columns are shown where nothing was run in any.
    """
    guesses = {markdown(named(section.target.spec, level)) for level in section.notes.guesses}
    some, ours = (
        [i for i in range(1, len(rows[0])) if any(row[i] not in EMPTY for row in of)]
        for of in (rows, [row for row in rows if row[0] not in guesses])
    )
    shown = [0, *ours, *(i for i in some if i not in ours)] if some else list(range(len(rows[0])))
    return shown, [i for i in range(len(rows[0])) if i not in shown]


def _unbroken(text: str) -> str:
    """A number with its interval, which a narrow column does not break."""
    return text.replace(" ", "\u00a0") if len(text) < LONGEST else text


def _is_number(text: object) -> bool:
    return any(character.isdigit() for character in str(text)) or text in ("∞", "OoM")


def _grade(grade: str) -> str:
    """A grade or a standing, named for the style of the site."""
    return f'<span class="{verdict_names.style(grade)}">{grade}</span>'


def _verdict(paper: Paper, number: dict, up: str) -> str:
    """A number's grade; one that differs leads to its cause."""
    cause = paper.cause_of.get(place_of(number))
    word = f"[{number['verdict']}]({_finding(paper, cause, up)})" if cause else number["verdict"]
    return f'<span class="{verdict_names.style(number["verdict"])}">{word}</span>'


def _differences(paper: Paper, section: Section, up: str) -> Iterator[str]:
    """The compared numbers of a target; the grade stands in the cell of ours."""
    spec, numbers = section.target.spec, section.compared
    keys = ["row", *(["column"] if any(number["column"] for number in numbers) else [])]
    heads = [named(spec, factor) for factor in row_and_column(spec)][: len(keys)]
    several = len({number["metric"] for number in numbers}) > 1
    against = any(number["texts"]["against"] for number in numbers)
    rows = []
    for number in numbers:
        texts, place = number["texts"], (number["row"], number["column"])
        ours = _unbroken(texts["ours"])
        if place in section.places:
            ours = runs_table.linked(ours, up + runs_table.address(section.name, *place))
        remarks = [number["cause"], number["kind"] if number["kind"] != verdict_names.TRAINED else ""]
        ours += f" {', '.join([_verdict(paper, number, up), *filter(None, remarks)])}"
        beside = [texts["against"] or NOT_RUN] if against else []
        cells = [texts["printed"], *beside, ours, texts["runs"], texts["difference"]]
        cells = [each if each == ours else _unbroken(each) for each in cells]
        rows.append([*(markdown(number[key]) for key in keys), *([number["named"]] if several else []), *cells])
    columns = [*heads, *(["metric"] if several else []), "printed", *(["graded against"] if against else [])]
    yield from markdown_table([*columns, "ours", "runs", "difference"], rows)
    if section.pooled:
        yield from ("", "Pooled over these numbers, each comparison once:", "")
        yield from markdown_table(section.pooled[0], [line.values() for line in section.pooled])
    if absent := len(section.numbers) - len(numbers):
        yield from ("", f"{absent} more printed numbers are not compared.")


def _pairs(section: Section) -> Iterator[str]:
    """The methods of a target compared in pairs on the same streams."""
    spec, pairs = section.target.spec, section.pairs
    rows = []
    for pair in pairs:
        difference = signed(pair["difference"], pair["low_holm"], pair["high_holm"], DECIMALS)
        place = [] if pd.isna(pair["column"]) else [markdown(str(pair["column"]))]
        p = "" if pd.isna(pair["p_holm"]) else f"{pair['p_holm']:.2g}"
        names = [markdown(pair["first"]), markdown(pair["second"]), named(spec, pair["metric"])]
        rows.append([*place, *names, _unbroken(difference), str(int(pair["n"])), p])
    heads = [*([named(spec, row_and_column(spec)[1])] if len(rows[0]) == 7 else []), "first", "less second", "metric"]
    yield from markdown_table([*heads, "difference, Holm", "streams", "p, Holm"], rows)


def _claims(paper: Paper) -> Iterator[str]:
    """The claims as the paper words them: those with a number, and the others, both folded."""

    def has_number(claim: dict) -> bool:
        return claim["verdict"] != verdict_names.NOT_COMPARABLE or bool(claim["result"])

    decided = [claim for claim in paper.claims if has_number(claim)]
    rest = [claim for claim in paper.claims if not has_number(claim)]
    if not paper.claims:
        yield "No claim of it is tested."
        return
    for claims, what in ((decided, "in the paper's words, each with its test"), (rest, "without a number yet")):
        if claims:
            yield from ("", *_folded(f"{len(claims)} claims {what}", map(_claim, claims)))


def _claim(claim: dict) -> str:
    result = f" {markdown(claim['result'])}." if claim["result"] else ""
    calibrated = ", calibrated" if claim["calibrated"] else ""
    reason = f" {markdown(claim['reason'])}." if claim["reason"] else ""
    return (
        f"- {_grade(claim['verdict'])}{calibrated}: “{markdown(claim['statement'].rstrip('.'))}” "
        f"({claim['section']}). Tested: {markdown(claim['tested'])}.{result}{reason}"
    )


def _trained(paper: Paper, up: str) -> Iterator[str]:
    if not paper.trained:
        yield "No run of it is there."
        return
    where = up + runs_table.address(f"{paper.name}/")
    yield f"{runs_table.linked('Each run, with its file, its values and its crate', where)}."
    heads = ["commit", "machine", "device", "torch", "runs", "core-hours", "first steps by today's code"]
    table = markdown_table(heads, [[f"`{row[0]}`", *row[1:]] for row in paper.trained])
    yield from ("", *_folded("Commits and machines", table))


# --- gallery -------------------------------------------------------------------------------------------------


def gallery(papers: list[Paper], pictures: Mapping[str, str]) -> str:
    """The page of all pictures that are half full, at least. pictures: as `texts`."""
    lines = ["# Gallery", "", "The figures that have half of their runs, by paper. A title leads to its numbers.", ""]
    for paper in papers:
        sections = [section for section in paper.targets if section.name in pictures and section.filled]
        lines += [f"## {paper.name}", "", '<div class="pictures">', ""] if sections else []
        for each in sections:
            title = markdown(each.target.spec["title"])
            lines += ['<div class="wide">' if _wide(each) else "<div>", ""]
            lines += [f"[{title}]({_section(paper, each.name)})", ""]
            lines += [f"![{title}]({pictures[each.name]})", "", "</div>", ""]
        lines += ["</div>", ""] if sections else []
    return "\n".join(lines).rstrip("\n") + "\n"


def _wide(section: Section) -> bool:
    """Whether a figure is wider than a column."""
    text = section.picture.read_text(encoding="utf-8") if section.picture else ""
    found = re.search(r'viewBox="0 0 ([\d.]+)', text)
    return found is not None and float(found[1]) > COLUMN * POINTS
