"""The files that the report shows, and the files that it consists of. Imports nothing heavy."""

from collections.abc import Collection
from pathlib import Path

from clpapers.config.model import Target
from clpapers.config.paths import RESULTS
from clpapers.config.plan import Plan
from clpapers.graph.claims import claiming

TEMPLATES = Path(__file__).parents[1] / "report" / "templates"
ASSETS = ("report.css", "report.js")
COPIED = (".csv", ".svg")  # rendered files that a reader of the report may open or download


def targets_of(plan: Plan, papers: Collection[str]) -> list[Target]:
    """The targets that `all` builds and the report shows: the papers' targets but the extra ones."""
    return [target for target in plan.targets.values() if target.paper in papers and not target.spec.get("extra")]


def inputs(plan: Plan, papers: Collection[str]) -> list[Path]:
    """The files that the report shows."""
    endings = (*COPIED, ".html", ".caption.md", ".unrun.md")
    rendered = [
        path for target in targets_of(plan, papers) for path in plan.rendered(target) if path.name.endswith(endings)
    ]
    return [*rendered, *(claims_file(plan, paper, end) for paper in claiming(papers) for end in ("csv", "html"))]


def claims_file(plan: Plan, paper: str, ending: str) -> Path:
    """The path of the table of a paper's claims."""
    return RESULTS / plan.scale / "targets" / paper / f"claims.{ending}"


def outputs(plan: Plan, papers: Collection[str]) -> list[Path]:
    """The files that the report consists of, its first page first."""
    folder, targets = RESULTS / plan.scale / "report", targets_of(plan, papers)
    pages = [folder / paper / "index.html" for paper in papers]
    pages += [folder / target.paper / f"{target.name}.html" for target in targets]
    copies = [copy_path(path, folder) for target in targets for path in plan.rendered(target) if path.suffix in COPIED]
    copies += [copy_path(claims_file(plan, paper, "csv"), folder) for paper in claiming(papers)]
    pictures = [picture_path(paper, folder) for paper in ("", *papers)]
    return [folder / "index.html", *(folder / name for name in ASSETS), *pages, *copies, *pictures]


def picture_path(paper: str, folder: Path) -> Path:
    """The path of the report's picture of a paper's differences, or without a paper of the one of all numbers."""
    return folder / paper / "differences.svg" if paper else folder / "numbers.svg"


def copy_path(path: Path, folder: Path) -> Path:
    """The path of the report's own copy of a file."""
    return folder / path.parent.name / path.name
