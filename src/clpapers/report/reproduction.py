"""Writes what the hand-written pages and git have of the published runs, and the site.

These are the marked blocks of docs/findings, README, docs/verdicts.md, docs/machines.md and docs/own_method.md, two
figures, and in results/published the metrics, the comparisons, the list of runs and the costs of cards.

It is made from results/published and config/ alone, in a temporary folder, so other built files do not matter. The same
crates and the same code give the same bytes on every machine. Measured seconds come from records.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd

from clpapers.archive.imported import PUBLISHED, import_published, imported
from clpapers.budget import card_costs, costs, priority
from clpapers.catalogue.metrics import margins_told
from clpapers.catalogue.names import named
from clpapers.config.model import Target
from clpapers.config.paths import RESULTS, method_path
from clpapers.config.plan import Plan
from clpapers.config.selected_runs import SelectedRuns
from clpapers.config.settings import project_papers
from clpapers.evidence.differences import square
from clpapers.evidence.grades import RULES
from clpapers.evidence.rendering import table_of
from clpapers.evidence.verdict_names import GRADES, TRAINED
from clpapers.graph import jobs, user_methods
from clpapers.graph.maker import Maker
from clpapers.graph.pages import DOCS, claims_file, findings_file
from clpapers.provenance import write_bytes, write_text
from clpapers.report import pages, reference, runs_table, site
from clpapers.report.coverage import by_kind, of_claims, of_sentences
from clpapers.report.findings import fill
from clpapers.report.paper import Paper, describer, gather, numbers_of
from clpapers.targets.figure import write_figure
from clpapers.targets.footnotes import notes_on
from clpapers.targets.formats import markdown_cells
from clpapers.targets.markdown import markdown, markdown_table
from clpapers.targets.palette import TEN
from clpapers.targets.style import STYLE

SCALE = "paper"
README, MACHINES, VERDICTS = Path("README.md"), Path("docs/machines.md"), Path("docs/verdicts.md")
OWN_METHOD = Path("docs/own_method.md")
COSTS_FIGURE = Path("docs/figures/costs.svg")
MARKED = "<!-- {name}: `make reproduction` writes this -->\n\n{text}\n<!-- {name} ends -->\n"
BLOCKS = {
    README: ("status", "example"),
    VERDICTS: ("rules", "margins", "counts"),
    MACHINES: ("runs", "cards"),
    OWN_METHOD: ("own",),
}
BESIDE = (".reported.csv", ".paired.csv")  # of a target's files those that its section is made of
EXAMPLE = ("stf/table1", "CIFAR-10")  # README shows these streams, and `OWN_METHOD` too
OUTSIDE = (Path("examples/stacked/der_pp.py"), Path("examples/stacked/finetune.py"))  # with published runs there
COMPARED = ("ER", "ACE")  # rows that `OWN_METHOD` compares the first of them with
SECONDS = (0.01, 20_000)  # a run, the ends of the figure of costs
NEAR = 0.25  # the largest relative error of a near prediction


class Written(NamedTuple):
    """The files that were written, and the papers that they tell of."""

    files: list[Path]
    papers: list[Paper]


def write(run: Callable[[list[str]], int], folder: Path | None = None) -> Written:
    """Write the marked blocks, the figures and the tables, in the project's folder.

    run: runs a job's command, `clpapers …`, and returns its exit status. folder: where to build the site too.
    """
    root = Path.cwd()
    findings = {paper: findings_file(paper) for paper in project_papers()}
    marked = README, MACHINES, VERDICTS, OWN_METHOD, *findings.values()
    before = {file: file.read_text(encoding="utf-8") for file in marked if file.is_file()}
    for file, names in BLOCKS.items():  # before any work
        filled(file, before[file], dict.fromkeys(names, ""))
    with tempfile.TemporaryDirectory(prefix="clpapers-reproduction-") as scratch, contextlib.chdir(scratch):
        for part in ("config", "workflow", "examples", *(path for path in site.ADDED if "/" not in path)):
            Path(part).symlink_to(root / part)
        shutil.copytree(root / DOCS, DOCS)
        PUBLISHED.parent.mkdir(parents=True)
        PUBLISHED.symlink_to(root / PUBLISHED)
        made = _Reproduction(run)
        files = {findings[paper.name]: made.findings(paper, before[findings[paper.name]]) for paper in made.papers}
        files[README] = filled(README, before[README], {"example": made.example(), "status": made.status()})
        told = {"rules": made.rules(), "margins": f"The margins are {margins_told()}.\n", "counts": made.counts()}
        files[VERDICTS] = filled(VERDICTS, before[VERDICTS], told)
        files[MACHINES] = filled(MACHINES, before[MACHINES], {"runs": made.costs(), "cards": made.cards()})
        site.draw(made.papers, DOCS)
        images = {path: path.read_bytes() for path in (COSTS_FIGURE, DOCS / pages.PICTURE)}
        measured = RESULTS / SCALE
        for file in sorted((*measured.glob("metrics/*/*.csv"), *measured.glob("targets/*/*.reported.csv"))):
            files[PUBLISHED / "metrics" / file.parent.name / file.name] = file.read_text(encoding="utf-8")
        files[card_costs.FILE] = card_costs.text(made.of_cards)
        files[runs_table.FILE] = runs_table.frame(made.files()).to_csv(index=False, lineterminator="\n")
        if folder is not None:
            _put({path: text for path, text in files.items() if path.parts[0] == DOCS.name}, {})
            made.site(root / folder)
        own = made.own_methods([root / file for file in OUTSIDE])  # last, as it says
        files[OWN_METHOD] = filled(OWN_METHOD, before[OWN_METHOD], {"own": own})
    _put(files, images)
    return Written([*files, *images], made.papers)


def _put(files: dict[Path, str], images: dict[Path, bytes]) -> None:
    for path, text in files.items():
        write_text(path, text)
    for path, image in images.items():
        write_bytes(path, image)


def filled(file: Path, text: str, blocks: dict[str, str]) -> str:
    """The text of a file with its marked blocks replaced; `ValueError` unless it has each block once."""
    for name, content in blocks.items():
        begin, end = MARKED.format(name=name, text="\0").split("\0")
        parts = re.split(f"{re.escape(begin)}|{re.escape(end)}", text)
        if len(parts) != 3:
            raise ValueError(f"{file}: {begin.strip()}: not there once, with its end; put both lines back")
        text = f"{parts[0]}{begin}{content}{end}{parts[2]}"
    return text


class _Reproduction:
    """The reproduction by the crates, computed in the working folder, which has no other results."""

    def __init__(self, run: Callable[[list[str]], int]) -> None:
        self.run = run
        import_published(SCALE)
        whole = Plan(SCALE, project_papers())
        self.runs = priority.files_of_seeds(whole, imported(SCALE))
        absent = dict.fromkeys([*whole.datasets, *whole.weights], "")  # whether it could be had is not asked
        chosen = SelectedRuns(self.runs, {}, absent)
        self.plan = whole.using(chosen)
        for target in (target for target in self.plan.targets.values() if self.has(target)):
            self.make(target.metrics, *(path for path in target.outputs if path.name.endswith(BESIDE)))
        for paper in jobs.claims_of(self.plan):
            self.make(claims_file(self.plan, paper, "csv"))
        self.papers = gather(self.plan, list(self.plan.titles), self.has)

    def has(self, target: Target) -> bool:
        """Whether a target has a published run, or needs none."""
        if target.spec.get("extra"):
            return False
        without_runs = not target.cells and not target.selections
        return bool(self.plan.present(target).cells) or (without_runs and target.reported is not None)

    def files(self) -> Iterator[dict]:
        """All files of the published runs, described."""
        describe = describer()
        return (describe(path, tuple(seeds)) for files in self.runs.values() for path, seeds in files.items())

    def make(self, *paths: Path, plan: Plan | None = None) -> None:
        """Make files, and their inputs before them."""
        plan = plan or self.plan
        maker = Maker(plan, lambda command: "see above" if self.run(command) else "")
        for path in paths:
            if fault := maker.make(path):
                raise RuntimeError(f"{path}: could not be made; {fault}")

    def site(self, folder: Path) -> None:
        """Build the site of all published runs, with their figures."""
        for target in (target for target in self.plan.targets.values() if self.has(target)):
            self.make(*self.plan.rendered(target))
        pages_of_code = reference.texts(self.plan, priority.left(self.plan.using(None), self.runs))
        site.write(gather(self.plan, list(self.plan.titles), self.has), folder, pages_of_code)

    def findings(self, paper: Paper, before: str) -> str:
        """The text of docs/findings/<paper>.md, with what differs and the claims that do not hold below its marks."""
        said = {
            each["claim"]: f"“{each['statement'].rstrip('.')}”. Tested: {each['tested']}. "
            f"Here: {'; '.join(filter(None, [each['result'], each['reason']]))}."
            for each in paper.claims
        }
        return fill(before, paper.causes, said)

    # blocks of pages

    def status(self) -> str:
        """README's counts, in sentences and by paper."""
        rows = []
        for paper in self.papers:
            grades = paper.covered.numbers.grades(TRAINED)
            compared = paper.covered.numbers.compared()
            name = f"[{pages.titled(paper)}](docs/{pages.page_of(paper.name)}), {pages.cited(paper)}"
            counts = [compared, sum(grades.values()), *grades.values()]
            shown = map(str, counts) if compared else ["none yet", *["–"] * (len(counts) - 1)]
            rows.append([name, str(paper.covered.printed), *shown])
        table = markdown_table(["paper", "prints", "compared", "graded", *GRADES], rows)
        return "\n".join([pages.status(self.papers), "", *table, "", pages.GRADES.replace("(v", "(docs/v")]) + "\n"

    def rules(self) -> str:
        """The table of rules in docs/verdicts.md, with how many numbers each judges."""
        counts = pd.concat([paper.compared for paper in self.papers])["rule"].value_counts()
        rows = [[rule, when, str(counts.get(rule, 0))] for rule, when in RULES.items()]
        return "\n".join(markdown_table(["rule", "when, and which interval", "numbers"], rows)) + "\n"

    def counts(self) -> str:
        """The tables of docs/verdicts.md: numbers by kind, and claims and sentences by paper."""
        covered = [paper.covered for paper in self.papers]
        found = by_kind(numbers_of(self.papers)), of_claims(covered), of_sentences(covered)
        return "\n".join(line for rows in found for line in (*markdown_table(rows[0], rows[1:]), ""))

    def example(self) -> str:
        """README's table: the compared numbers in a column of a target."""
        name, column = EXAMPLE
        section = next(section for paper in self.papers for section in paper.targets if section.name == name)
        lines = [number for number in section.compared if number["column"] == column]
        texts = ("printed", "ours", "runs", "difference")
        kinds = ["" if n["kind"] == TRAINED else f", {n['kind']}" for n in lines]
        rows = [
            [n["row"], n["named"], *(n["texts"][text] for text in texts), n["verdict"] + kind]
            for n, kind in zip(lines, kinds)
        ]
        page = f"docs/{pages.page_of(section.target.paper)}"
        title = f"{section.target.spec['title']} of [{section.target.paper}]({page}), {column}:"
        heads = ["method", "metric", "printed", "ours", "runs", "difference", "grade"]
        return "\n".join([title, "", *markdown_table(heads, rows)]) + "\n"

    def own_methods(self, methods: Iterable[Path]) -> str:
        """The tables of docs/own_method.md: README's table with rows of methods from outside, and their places.

        Metrics with these rows take the place of the target's in this folder, so nothing is made of it afterwards.
        """
        name, column = EXAMPLE
        copies = []
        for file in methods:
            copies.append(method_path(SCALE, file.stem, user_methods.check(file)))
            self.run(["method", "--out", str(copies[-1]), "--file", str(file)])
        plan = Plan(SCALE, [name.partition("/")[0]], methods=[str(copy) for copy in copies])
        absent = dict.fromkeys([*plan.datasets, *plan.weights], "")  # whether it could be had is not asked
        chosen = SelectedRuns(priority.files_of_seeds(plan, imported(SCALE)), {}, absent, plan.methods)
        plan = plan.using(chosen)
        target = plan.targets[name]
        if not plan.present(target).cells:
            return "Nothing of it is published yet.\n"
        target.metrics.unlink(missing_ok=True)
        self.make(target.metrics, plan=plan)
        notes = notes_on(plan, target, jobs.reduced(plan, target))
        table = table_of(target, pd.read_csv(target.metrics), notes)
        numbers, places = markdown_cells(table), markdown_cells(table.appended[0])
        kept = [numbers.columns[0], *(head for head in numbers if head.startswith(f"{column} "))]
        numbers = numbers.loc[numbers[kept[1]].str.contains("(", regex=False), kept]
        first = markdown(named(target.spec, copies[0].stem.partition("-")[0]))
        method, across, _, _, less, *_ = places.columns
        of_first = (places[method] == first) & (places[across] == column) & places[less].isin(COMPARED)
        places = places[of_first].drop(columns=across)
        title = f"From `{RESULTS / SCALE / 'targets' / name}.md`, accuracies in percent, runs in brackets:"
        tables = [*markdown_table(numbers, numbers.to_numpy()), "", *markdown_table(places, places.to_numpy())]
        return "\n".join([title, "", *tables]) + "\n"

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
        """The lines of a table: seconds and memory of a card that runs take."""
        heads = ["learner", "net", "items", "card", "runs", "core-seconds a card-second", "MB a seed"]
        rows = []
        for row in self.of_cards:
            net = " ".join(map(str, json.loads(row.net).values()))
            speed = "" if row.ratio is None else f"{1 / row.ratio:.0f}"
            rows.append([row.learner, net, row.shape, row.card, str(row.runs), speed, f"{row.megabytes:,.0f}"])
        return "\n".join(markdown_table(heads, rows)) + "\n"

    def costs(self) -> str:
        """The predicted against the measured costs of the published runs, drawn in this folder, and a table of them.

        Both are seconds a seed of a cell. Rehearsals predict, at the speed of the machine of config/costs.csv.
        """
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
        heads = ["paper", "cells", "runs", f"cells within {NEAR:.0%}", "predicted, core-hours", "as on a core"]
        image = (
            f"![Predicted against measured seconds a run, a dot a cell]({COSTS_FIGURE.relative_to(MACHINES.parent)})"
        )
        with mpl.rc_context(STYLE):
            write_figure(figure, COSTS_FIGURE.with_suffix(""), (COSTS_FIGURE.suffix,))
        return "\n".join([*markdown_table(heads, by_paper), "", image]) + "\n"
