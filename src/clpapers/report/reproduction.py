"""Writes the reproduction by the published runs: a page a paper in docs/reproduction, differences in docs/findings,
README's tables, the rules' counts in docs/verdicts.md, figures.

It is made from results/published and config/ alone, in a temporary folder, so other built files do not matter. The same
crates and the same code give the same bytes on every machine. Measured seconds come from records.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from clpapers import results
from clpapers.archive import beginnings
from clpapers.archive.beginnings import OTHERWISE, ROUNDING, SAME, UNTRIED, Beginning
from clpapers.archive.check import MANIFEST, opened
from clpapers.archive.imported import PUBLISHED, import_published, imported, published
from clpapers.budget import card_costs, costs, priority
from clpapers.catalogue.names import named, row_and_column
from clpapers.config import choice
from clpapers.config.choice import Choice
from clpapers.config.model import Target
from clpapers.config.paths import RESULTS, method_path
from clpapers.config.plan import Plan
from clpapers.config.settings import own_papers
from clpapers.evidence.claims_table import effect, tested
from clpapers.evidence.comparison import KEY, RULES, printed
from clpapers.evidence.grades import MARGINS
from clpapers.evidence.pooled import pooled, pooled_texts
from clpapers.evidence.words import BY_CONSTRUCTION, CONTRADICTED, DIFFERS, GRADES, NOT_COMPARABLE, SUPPORTED
from clpapers.graph import jobs, own
from clpapers.graph.pages import claims_file, targets_of
from clpapers.provenance import as_published, read_record, write_bytes, write_text
from clpapers.report.coverage import Coverage, Numbers, by_kind, count, coverage, of_claims, table
from clpapers.report.coverage import printed as numbers_printed
from clpapers.report.findings import fill
from clpapers.targets.markdown import markdown_table
from clpapers.targets.palette import TEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALE = "paper"
FOLDER, FINDINGS = Path("docs/reproduction"), Path("docs/findings")
README, COSTS, VERDICTS = Path("README.md"), Path("docs/costs.md"), Path("docs/verdicts.md")
OWN = Path("docs/own_method.md")
FIGURE, COSTS_FIGURE, SHOWN_FIGURE = (Path(f"docs/figures/{name}.svg") for name in ("published", "costs", "shown"))
FOREST = "docs/figures/differences-{paper}.svg"
BLOCK = "<!-- {name}: `make reproduction` writes this -->\n\n{text}\n<!-- {name} ends -->\n"
EXAMPLE = ("stf/table1", "CIFAR-10")  # README's first screen shows these streams, and `OWN` too
OUTSIDE = (Path("examples/stacked/der_pp.py"), Path("examples/stacked/finetune.py"))  # with published runs there
COMPARED = ("ER", "ACE")  # rows that `OWN` compares the first of them with
SHOWN = "desiderata/figure2"  # and this figure
SECONDS = (0.01, 20_000)  # a run, the ends of the figure of costs
BEGINNINGS = (SAME, ROUNDING, OTHERWISE, UNTRIED)
BEGUN = (
    "Of a published file of each cell the first steps were taken again (`clpapers verify --steps`): they give the same "
    "digits, or part as far as a change of the weights by 10⁻⁷ grows, or begin otherwise."
)
NEAR = 0.25  # the largest relative error of a near prediction


def write(run: Callable[[list[str]], int]) -> list[Path]:
    """Write all pages, the marked blocks and the figures, in the project's folder; returns the files.

    run: runs a job's command, `clpapers …`, and returns its exit status.
    """
    root = Path.cwd()
    findings = {paper: FINDINGS / f"{paper}.md" for paper in own_papers()}
    pages = README, COSTS, VERDICTS, OWN, *findings.values()
    before = {file: file.read_text(encoding="utf-8") if file.is_file() else "" for file in pages}
    with tempfile.TemporaryDirectory(prefix="clpapers-reproduction-") as scratch, contextlib.chdir(scratch):
        for part in ("config", "workflow"):
            Path(part).symlink_to(root / part)
        PUBLISHED.parent.mkdir(parents=True)
        PUBLISHED.symlink_to(root / PUBLISHED)
        made = _Reproduction(run)
        files = {FOLDER / f"{paper}.md": made.paper_page(paper) for paper in made.plan.titles}
        files |= {file: made.findings(paper, file, before[file]) for paper, file in findings.items()}
        files[README] = filled(README, before[README], {"example": made.example(), "status": made.status()})
        files[VERDICTS] = filled(VERDICTS, before[VERDICTS], {"rules": made.rules()})
        costs_figure, text = made.costs()
        files[COSTS] = filled(COSTS, before[COSTS], {"runs": text, "cards": made.cards()})
        figures = {FIGURE: made.figure().read_bytes(), COSTS_FIGURE: costs_figure.read_bytes()}
        forests = {Path(FOREST.format(paper=paper)): made.forest(paper) for paper in made.plan.titles}
        figures |= {path: file.read_bytes() for path, file in forests.items() if file is not None}
        if (figure := made.shown_figure()) is not None:
            figures[SHOWN_FIGURE] = figure.read_bytes()
        measured = RESULTS / SCALE
        for file in sorted((*measured.glob("metrics/*/*.csv"), *measured.glob("targets/*/*.reported.csv"))):
            files[PUBLISHED / "metrics" / file.parent.name / file.name] = file.read_text(encoding="utf-8")
        files[card_costs.FILE] = card_costs.text(made.of_cards)
        files[OWN] = filled(OWN, before[OWN], {"own": made.own([root / file for file in OUTSIDE])})  # last, as it says
    for path, text in files.items():
        write_text(path, text)
    for path, image in figures.items():
        write_bytes(path, image)
    return [*files, *figures]


def filled(file: Path, text: str, blocks: dict[str, str]) -> str:
    """The text of a file with its marked blocks replaced; `ValueError` unless it has each block once."""
    for name, content in blocks.items():
        begin, end = BLOCK.format(name=name, text="\0").split("\0")
        parts = re.split(f"{re.escape(begin)}|{re.escape(end)}", text)
        if len(parts) != 3:
            raise ValueError(f"{file}: {begin.strip()}: not there once, with its end; put both lines back")
        text = f"{parts[0]}{begin}{content}{end}{parts[2]}"
    return text


def fingerprint(crate: Path) -> str:
    """The SHA-256 of the manifest of a crate, which names its whole content."""
    with opened(crate) as (members, _), members[MANIFEST]() as stream:
        return hashlib.sha256(stream.read()).hexdigest()


class _Reproduction:
    """The reproduction by the crates, computed in the working folder, which has no other results."""

    def __init__(self, run: Callable[[list[str]], int]) -> None:
        self.run = run
        import_published(SCALE)
        whole = Plan(SCALE, own_papers())
        self.runs = priority.files_of_seeds(whole, imported(SCALE))
        absent = dict.fromkeys([*whole.datasets, *whole.weights], "not asked for")
        chosen = Choice(self.runs, {}, absent)
        self.plan = whole.using(chosen)
        self.crates = {paper: published(SCALE, paper) for paper in whole.titles}
        with _told(chosen):
            for paper in (paper for paper in whole.titles if self.crates[paper]):
                self._measure(paper)

    def _measure(self, paper: str) -> None:
        for target in self.targets(paper):
            self._make(target.metrics)
            if target.reported:
                self._make(target.stem.with_name(f"{target.name}.reported.csv"))
        if paper in jobs.claims_of(self.plan):
            self._make(claims_file(self.plan, paper, "csv"))

    def _make(self, path: Path, plan: Plan | None = None) -> None:
        """Make a file, and its inputs before it, by their jobs' commands."""
        if path.exists():
            return
        job = jobs.job_of(plan or self.plan, path)
        for each in job.inputs:
            self._make(each, plan)
        if self.run([job.command, "--out", str(path)]):
            raise RuntimeError(f"{path}: could not be made; see above")

    def targets(self, paper: str) -> list[Target]:
        """The targets of a paper with a published run, and targets with printed numbers that need no run."""
        targets = targets_of(self.plan, [paper])
        return [each for each in targets if self.plan.present(each).cells or (each.reported and _without_runs(each))]

    @functools.cached_property
    def covered(self) -> dict[str, Coverage]:
        """The coverage of each paper's printed numbers and claims, and of all."""
        covered = {each.paper: each for each in coverage(self.plan, list(self.plan.titles))}
        for paper, claims in jobs.claims_of(self.plan).items():
            absent = len(claims) - covered[paper].all_claims  # all claims of a paper without published runs
            covered[paper].claims[NOT_COMPARABLE] += absent
            covered["all"].claims[NOT_COMPARABLE] += absent
        return covered

    @functools.cache  # noqa: B019
    def compared(self, name: str) -> pd.DataFrame:
        """The printed numbers of a target that have a verdict, with their `texts`."""
        target = self.plan.targets[name]
        if not (self.crates[target.paper] and target.reported and target in self.targets(target.paper)):
            return pd.DataFrame(columns=["texts"])
        frame = results.compare(name, SCALE)
        frame = frame[frame["verdict"].isin(GRADES)]
        names = [named(target.spec, metric) for metric in frame["metric"]]
        return frame.assign(texts=[printed(line) for line in frame.to_dict("records")], place=target.name, named=names)

    def numbers(self, name: str) -> Numbers:
        """The counts of the numbers that are compared in a target."""
        return count(self.compared(name).to_dict("records"))

    def all_compared(self, papers: Iterable[str]) -> pd.DataFrame:
        """The compared numbers of some papers."""
        from clpapers.evidence.differences import COLUMNS

        names = [f"{target.paper}/{target.name}" for paper in papers for target in self.targets(paper)]
        frames = [frame for name in names if len(frame := self.compared(name))]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[*COLUMNS, "rule"])

    # pages

    def paper_page(self, paper: str) -> str:
        """docs/reproduction/<paper>.md."""
        lines = [f"# `{paper}`: what its published runs reproduce", "", f"{self.plan.titles[paper]}.", ""]
        findings = f"What follows from it, and what was tried, is in [findings](../findings/{paper}.md)."
        if not self.crates[paper]:
            lines += [f"No run of it is published yet: `{PUBLISHED}` has no crate of it. {findings}", "", WRITTEN]
            return "\n".join(lines) + "\n"
        if len(self.all_compared([paper])):
            image = os.path.relpath(FOREST.format(paper=paper), FOLDER)
            lines += [f"![Differences, reproduced minus reported, with 95 % intervals, by table]({image})", ""]
        crates = "; ".join(f"`{each}`, manifest SHA-256 `{fingerprint(each)}`" for each in self.crates[paper])
        lines += [f"From {crates}. {findings}", "", WRITTEN, ""]
        heads, *rows = _without(("paper", "imported"), table([self.covered[paper]]))
        lines += [*markdown_table(heads, rows), ""]
        if len(self.all_compared([paper])):
            heads, *rows = by_kind(self.covered[paper].numbers)
            lines += [*markdown_table(heads, rows), "", NOTE_ON_GRADES, ""]
        heads, row = of_claims([self.covered[paper]])
        lines += [*markdown_table(heads[1:], [row[1:]]), ""]
        lines += [*self._trained(paper), "", "## Targets", ""]
        rows = []
        for target in self.targets(paper):
            name = f"{paper}/{target.name}"
            numbers = self.numbers(name)
            cells = {cell.hash: cell for _, cell in target.cells}.values()
            finished = sum(len(seeds) for cell in cells for seeds in self.plan.results(cell, target.seeds).values())
            printed_count = numbers_printed(self.plan, paper, target.name)
            total = f"{numbers.compared()} of {printed_count}" if printed_count else "none printed"
            runs = "needs none" if _without_runs(target) else f"{finished} of {len(cells) * len(target.seeds)}"
            grades = numbers.grades().values()
            rows.append([f"`{name}`", runs, total, str(sum(grades)), *map(str, grades)])
        lines += markdown_table(["target", "runs", "numbers compared", "each once", *GRADES], rows)
        for target in self.targets(paper):
            lines += self._section(target)
        return "\n".join([*lines, *self._claims(paper)]) + "\n"

    def _trained(self, paper: str) -> list[str]:
        """The runs by commit and machine."""
        cells = {cell.hash: cell for target in self.targets(paper) for _, cell in target.cells}
        runs: Counter = Counter()
        hours: Counter = Counter()
        began: dict[tuple, Counter[str]] = {}
        by_run = {each.run: each for each in beginnings.read(beginnings.FILE)}
        for path in {path for cell in cells.values() for path in self.plan.results(cell)}:
            record = read_record(path)
            hardware = record["hardware"]
            machine = f"{hardware['processor']}, {hardware['cores']} cores, {hardware['system'].split('-')[0]}"
            key = record["git"]["commit"][:10], machine, hardware["device"], record["packages"]["torch"]
            runs[key] += len(record["seeds"])
            hours[key] += record["cpu_seconds"] / 3600
            if (found := by_run.get(as_published(path))) is not None:
                began.setdefault(key, Counter())[found.verdict] += 1
        rows = []
        for key in sorted(runs):
            of_key = began.get(key, Counter())
            tried = (f"{of_key[verdict]} {verdict}" for verdict in BEGINNINGS if of_key[verdict])
            rows.append([f"`{key[0]}`", *key[1:], f"{runs[key]:,}", f"{hours[key]:,.2f}", "; ".join(tried) or "–"])
        heads = ["commit", "machine", "device", "torch", "runs", "core-hours", "first steps by today’s code"]
        return [*markdown_table(heads, rows), "", *self._begun(by_run.values(), paper)]

    def _begun(self, found: Iterable[Beginning], paper: str) -> list[str]:
        """The note on the first steps of a paper's runs."""
        cells = {str(cell.folder) for target in self.targets(paper) for _, cell in target.cells}
        own = [each for each in found if str(Path(each.run).parent) in cells and each.verdict != UNTRIED]
        if not own:
            return []
        days, commits = (sorted({getattr(each, key) for each in own}) for key in ("date", "commit"))
        by = ", ".join(f"`{commit[:10]}`" for commit in commits)
        others = [f"`{Path(each.run).parent.name}/{Path(each.run).stem}`" for each in own if each.verdict == OTHERWISE]
        which = f" Otherwise begins {', '.join(others)}." if others else ""
        return [f"{BEGUN} Tried by {by}, {' to '.join(dict.fromkeys((days[0], days[-1])))}.{which}"]

    def _section(self, target: Target) -> Iterator[str]:
        """The compared numbers of a target."""
        name, spec = f"{target.paper}/{target.name}", target.spec
        lines = self.compared(name)
        if lines.empty:
            return
        yield from ("", f"## `{name}`", "", f"{spec['title']}. `snakemake {name} --cores`", "")
        keys = [key for key in KEY if key != "metric" or lines["metric"].nunique() > 1]
        keys = [key for key in keys if key != "column" or lines["column"].any()]
        texts = ["reported", "authors", "reproduced", "runs", "difference", "verdict"]
        texts = [text for text in texts if text != "authors" or lines["authors"].notna().any()]
        rows = []
        for line in lines.to_dict("records"):
            cells = line["texts"] | {"verdict": _verdict(line)}
            names = [named(spec, line[key]) if key == "metric" else line[key] for key in keys]
            rows.append([*names, *(cells[text] for text in texts)])
        yield from markdown_table([*keys, *texts], rows)
        together = pooled(spec, pd.read_csv(target.metrics), lines).to_dict("records")
        if pooled_rows := [pooled_texts(spec, line) for line in together]:
            yield from ("", "Pooled over these numbers, each comparison once:", "")
            yield from markdown_table(pooled_rows[0], [row.values() for row in pooled_rows])

    def _decided(self, paper: str) -> pd.DataFrame:
        """The claims of a paper that the published runs decide."""
        file = claims_file(self.plan, paper, "csv")
        if not file.is_file():
            return pd.DataFrame(columns=["verdict"])
        frame = pd.read_csv(file, keep_default_na=False)
        return frame[frame["verdict"].isin([SUPPORTED, CONTRADICTED, BY_CONSTRUCTION])]

    def _claims(self, paper: str) -> Iterator[str]:
        frame = self._decided(paper)
        if frame.empty:
            return
        yield from (
            "",
            "## Claims",
            "",
            "Those that the published runs decide, and those that hold by construction.",
            "",
        )
        claims = frame.to_dict("records")
        rows = [[claim["statement"], tested(claim), _effect(claim), _claim_verdict(claim)] for claim in claims]
        yield from markdown_table(["the paper says", "tested as", "effect", "verdict"], rows)

    # docs/findings

    def findings(self, paper: str, file: Path, before: str) -> str:
        """The text of docs/findings/<paper>.md, with what differs and the contradicted claims below its marks."""
        claims = self._decided(paper)
        claims = claims[claims["verdict"] == CONTRADICTED].to_dict("records")
        said = {
            each["claim"]: f"“{each['statement'].rstrip('.')}”. Tested: {tested(each)}. Here: {_effect(each)}."
            for each in claims
        }
        return fill(file, before, self.all_compared([paper]), said)

    # README

    def status(self) -> str:
        """README's tables: by paper, and by the kind of number."""
        heads, *rows = _without(("runs", "imported"), table(self.covered.values()))
        for row in rows:
            if row[0] in self.plan.titles:
                row[0] = f"[`{row[0]}`]({FOLDER / row[0]}.md): {self.plan.titles[row[0]]}"
        papers = markdown_table(heads, rows)
        claims = of_claims(self.covered.values())
        heads, *rows = by_kind(self.covered["all"].numbers)
        lines = [
            *papers,
            "",
            *markdown_table(heads, rows),
            "",
            NOTE_ON_GRADES,
            "",
            *markdown_table(claims[0], claims[1:]),
        ]
        return "\n".join(lines) + "\n"

    def rules(self) -> str:
        """The table of rules in docs/verdicts.md, with how many numbers each judges."""
        counts = self.all_compared(self.plan.titles)["rule"].value_counts()
        rows = [[rule, when, str(counts.get(rule, 0))] for rule, when in RULES.items()]
        return "\n".join(markdown_table(["rule", "when, and which interval", "numbers"], rows)) + "\n"

    def example(self) -> str:
        """README's table: the compared numbers in a column of a target."""
        name, column = EXAMPLE
        target, lines = self.plan.targets[name], self.compared(name)
        lines = lines[lines["column"] == column] if len(lines) else lines
        if lines.empty:
            return "Nothing of it is published yet.\n"
        title = f"{target.spec['title']} of [{target.paper}]({FOLDER / target.paper}.md), column {column}:"
        texts = ("reported", "reproduced", "runs", "difference")
        rows = [
            [each["row"], named(target.spec, each["metric"]), *(each["texts"][text] for text in texts), _verdict(each)]
            for each in lines.to_dict("records")
        ]
        heads = [named(target.spec, row_and_column(target.spec)[0]), "metric", *texts, "verdict"]
        return "\n".join([title, "", *markdown_table(heads, rows)]) + "\n"

    def own(self, methods: Iterable[Path]) -> str:
        """The tables of docs/own_method.md: README's table with rows of methods from outside, and their places.

        Metrics with these rows take the place of the target's in this folder, so nothing is made of it afterwards.
        """
        name, column = EXAMPLE
        copies = []
        for file in methods:
            copies.append(method_path(SCALE, file.stem, own.check(file)))
            self.run(["method", "--out", str(copies[-1]), "--file", str(file)])
        plan = Plan(SCALE, [name.partition("/")[0]], methods=[str(copy) for copy in copies])
        absent = dict.fromkeys([*plan.datasets, *plan.weights], "not asked for")
        chosen = Choice(priority.files_of_seeds(plan, imported(SCALE)), {}, absent, plan.methods)
        plan = plan.using(chosen)
        page = plan.targets[name].stem.with_suffix(".md")
        if not plan.present(plan.targets[name]).cells:
            return "Nothing of it is published yet.\n"
        plan.targets[name].metrics.unlink(missing_ok=True)
        with _told(chosen):
            self._make(page, plan)
        lines = page.read_text(encoding="utf-8").splitlines()
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
        starts = [i for i, row in enumerate(rows) if row[0] == rows[0][0]]
        numbers, places = rows[: starts[1]], rows[starts[1] :]
        kept = [0, *(i for i, head in enumerate(numbers[0]) if head.startswith(f"{column} "))]
        shown = [[row[i] for i in kept] for row in numbers if "(" in row[kept[1]] or row is numbers[0]]
        first = named(plan.targets[name].spec, copies[0].stem.partition("-")[0]).replace("_", r"\_")
        differing = [row for row in places if row[0] == first and row[1] == column and row[4] in COMPARED]
        heads = [head for head in places[0] if head != places[0][1]]
        of_place = [[row[0], *row[2:]] for row in differing]
        title = f"From `{RESULTS / SCALE / 'targets' / name}.md`, accuracies in percent, runs in brackets:"
        tables = [*markdown_table(shown[0], shown[1:]), "", *markdown_table(heads, of_place)]
        return "\n".join([title, "", *tables]) + "\n"

    def figure(self) -> Path:
        """Trained numbers in percent, reproduced against reported, by grade; an SVG in this folder."""
        from clpapers.evidence.differences import scatter

        return _write_figure(scatter(self.all_compared(self.plan.titles)), FIGURE)

    def forest(self, paper: str) -> Path | None:
        """The differences of a paper, an SVG in this folder; None if nothing is compared."""
        from clpapers.evidence.differences import forest

        lines = self.all_compared([paper])
        return _write_figure(forest(lines), Path(FOREST.format(paper=paper))) if len(lines) else None

    def shown_figure(self) -> Path | None:
        """The figure of README's first screen, of its published runs; None if there are none."""
        target = self.plan.targets[SHOWN]
        if not self.plan.present(target).cells:
            return None
        file = next(path for path in target.outputs if path.suffix == SHOWN_FIGURE.suffix)
        self._make(file)
        return file

    # costs

    @functools.cached_property
    def rehearsed(self) -> costs.Table:
        """The project's rehearsed costs, at the speed of its own machine."""
        rows = costs.read()
        return costs.Table(rows, calibration=float(np.median([row.calibration for row in rows])))

    @functools.cached_property
    def of_cards(self) -> list[card_costs.Row]:
        """The kinds of runs that were trained on a card."""
        return card_costs.measure(self.plan, self.runs, self.rehearsed)

    def cards(self) -> str:
        """The lines of a table: what runs take of a card."""
        heads = ["learner", "net", "items", "card", "runs", "core-seconds a card-second", "MB a seed"]
        rows = []
        for row in self.of_cards:
            net = " ".join(map(str, json.loads(row.net).values()))
            speed = "" if row.ratio is None else f"{1 / row.ratio:.0f}"
            rows.append([row.learner, net, row.shape, row.card, str(row.runs), speed, f"{row.megabytes:,.0f}"])
        return "\n".join(markdown_table(heads, rows)) + "\n"

    def costs(self) -> tuple[Path, str]:
        """The predicted against the measured costs of the published runs: an SVG in this folder, and its text.

        Both are seconds a seed of a cell. Rehearsals predict, at the speed of the machine of config/costs.csv.
        """
        from clpapers.evidence.differences import square

        table = self.rehearsed
        cells = [self.plan.cells[key] for key in self.runs]
        took = costs.finished(self.plan, cells)
        predicted = {cell.hash: table.seconds(self.plan, cell) for cell in cells if cell.hash in took}
        seeds = {key: sum(map(len, files.values())) for key, files in self.runs.items()}
        paper_of = {cell.hash: target.paper for target in self.plan.targets.values() for _, cell in target.cells}
        lines = pd.DataFrame(
            [
                (paper_of[key], predicted[key], took[key], seeds[key])
                for key in sorted(took)
                if predicted[key] and key in paper_of
            ],
            columns=["paper", "predicted", "took", "seeds"],
        )
        lines["near"] = (lines["predicted"] / lines["took"] - 1).abs() <= NEAR
        with square(SECONDS, xlabel="took, s", ylabel="predicted, s") as (figure, axes):
            axes.set(xscale="log", yscale="log")
            for (paper, each), colour in zip(lines.groupby("paper"), TEN):
                label = f"{paper} ({len(each)})"
                axes.scatter(each["took"], each["predicted"], s=8, color=colour, alpha=0.6, clip_on=False, label=label)
        by_paper = []
        for paper, each in [*lines.groupby("paper"), ("all", lines)]:
            hours = [(each[key] * each["seeds"]).sum() / 3600 for key in ("predicted", "took")]
            counts = [len(each), each["seeds"].sum(), each["near"].sum()]
            by_paper.append([paper, *map("{:,}".format, counts), *map("{:.2f}".format, hours)])
        heads = ["paper", "cells", "runs", f"cells within {NEAR:.0%}", "predicted, core-hours", "took"]
        image = f"![Predicted against measured seconds a run, a dot a cell]({COSTS_FIGURE.relative_to(COSTS.parent)})"
        return _write_figure(figure, COSTS_FIGURE), "\n".join([*markdown_table(heads, by_paper), "", image]) + "\n"


def _write_figure(figure: Figure, file: Path) -> Path:
    """Write a figure into this folder under a file's name."""
    import matplotlib as mpl

    from clpapers.targets.figure import write_figure
    from clpapers.targets.style import STYLE

    style: dict = STYLE
    with mpl.rc_context(style):
        return write_figure(figure, file.stem, (file.suffix,))[0]


WRITTEN = "`make reproduction` writes this page."
NOTE_ON_GRADES = (
    "The first grade that fits holds. ‘Same’: the runs exclude any difference beyond the first margin. ‘Differs’: they "
    "exclude zero. ‘Near’: they exclude any difference beyond the second margin. ‘Open’: none of these. "
    f"The margins are {MARGINS}. ‘Each once’: a comparison that targets share counts once. A number is ‘calibrated’ "
    "if a choice of ours was read off it; a ‘guess’ if nothing is trained; ‘exact’ if no run decides it."
)


@contextlib.contextmanager
def _told(chosen: Choice) -> Iterator[None]:
    """Inside, jobs use the runs that are chosen."""
    before = os.environ.get(choice.VARIABLE, "")
    os.environ[choice.VARIABLE] = str(chosen.write(SCALE))
    try:
        yield
    finally:
        os.environ[choice.VARIABLE] = before  # where it is empty, a job uses all runs


def _without_runs(target: Target) -> bool:
    return not target.cells and not target.selections


def _verdict(number: dict) -> str:
    """The verdict of a compared number, in bold if it differs."""
    verdict = number["texts"]["verdict"]
    return f"**{verdict}**" if number["verdict"] == DIFFERS else verdict


def _claim_verdict(claim: dict) -> str:
    """A claim's verdict, and whether a choice was read off it."""
    return claim["verdict"] + ", calibrated" * bool(claim["calibrated"])


def _effect(claim: dict) -> str:
    """A claim's effect with its interval and unit; of several parts the one that `reason` names."""
    value, low, high = (float(claim[key] if claim[key] != "" else "nan") for key in ("effect", "ci_low", "ci_high"))
    return "; ".join(filter(None, [effect(value, low, high, claim["unit"]), claim["reason"]]))


def _without(headings: Collection[str], rows: list[list[str]]) -> list[list[str]]:
    """A table, headings first, without some columns."""
    columns = [i for i, heading in enumerate(rows[0]) if heading not in headings]
    return [[row[i] for i in columns] for row in rows]
