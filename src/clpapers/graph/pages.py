"""The files that the report shows, and those that it consists of. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from clpapers.config.model import Target
from clpapers.config.paths import RESULTS
from clpapers.config.plan import Plan
from clpapers.graph.claims import claiming

TEMPLATES = Path(__file__).parents[1] / "report" / "templates"
ASSETS = ("report.css", "report.js")
COPIED = (".csv", ".svg")  # rendered files that a reader of the report may open or download


def shown(plan: Plan, papers: Collection[str]) -> list[Target]:
    """The targets that `all` builds and the report shows: those of `papers` but the extra ones."""
    return [target for target in plan.targets.values() if target.paper in papers and not target.spec.get("extra")]


def inputs(plan: Plan, papers: Collection[str]) -> list[Path]:
    """The files that the report shows."""
    endings = (*COPIED, ".html", ".caption.md")
    rendered = [path for target in shown(plan, papers) for path in target.outputs if path.name.endswith(endings)]
    return [*rendered, *(claims_file(plan, paper, end) for paper in claiming(papers) for end in ("csv", "html"))]


def claims_file(plan: Plan, paper: str, ending: str) -> Path:
    """Where the table of a paper's claims stands."""
    return RESULTS / plan.scale / "targets" / paper / f"claims.{ending}"


def outputs(plan: Plan, papers: Collection[str]) -> list[Path]:
    """The files that the report consists of, its first page first."""
    folder, targets = RESULTS / plan.scale / "report", shown(plan, papers)
    pages = [folder / paper / "index.html" for paper in papers]
    pages += [folder / target.paper / f"{target.name}.html" for target in targets]
    copies = [copy_of(path, folder) for target in targets for path in target.outputs if path.suffix in COPIED]
    copies += [copy_of(claims_file(plan, paper, "csv"), folder) for paper in claiming(papers)]
    drawn = [drawn_of(paper, folder) for paper in ("", *papers)]
    return [folder / "index.html", *(folder / name for name in ASSETS), *pages, *copies, *drawn]


def drawn_of(paper: str, folder: Path) -> Path:
    """Where the report's picture of a paper's differences stands, or without a paper the one of all numbers."""
    return folder / paper / "differences.svg" if paper else folder / "numbers.svg"


def copy_of(path: Path, folder: Path) -> Path:
    """Where the report's own copy of a file stands."""
    return folder / path.parent.name / path.name
