"""The files that the report shows, and the files that it consists of. Imports nothing heavy."""

from collections.abc import Collection
from pathlib import Path

from clpapers.config.model import Target
from clpapers.config.paths import RESULTS
from clpapers.config.plan import Plan
from clpapers.graph.claims import claiming
from clpapers.provenance import MANIFEST

THEME = Path(__file__).parents[1] / "report" / "theme"
DOCS = Path("docs")
COPIED = (".csv", ".tex", ".svg")  # rendered files that a reader of the site may open


def targets_of(plan: Plan, papers: Collection[str]) -> list[Target]:
    """The targets that `all` builds and the report shows: the papers' targets but the extra ones."""
    return [target for target in plan.targets.values() if target.paper in papers and not target.spec.get("extra")]


def inputs(plan: Plan, papers: Collection[str]) -> list[Path]:
    """The files that the report shows."""
    endings = (*COPIED, ".caption.md", ".unrun.md")
    targets = targets_of(plan, papers)
    rendered = [path for target in targets for path in plan.rendered(target) if path.name.endswith(endings)]
    measured = [target.metrics for target in targets]
    return [*rendered, *measured, *(claims_file(plan, paper, "csv") for paper in claiming(papers))]


def written() -> list[Path]:
    """The pages that the project's authors wrote, which the site has too."""
    return sorted(DOCS.rglob("*.md")) if DOCS.is_dir() else []


def findings_file(paper: str) -> Path:
    """The page on what differs from a paper's numbers, and why."""
    return DOCS / "findings" / f"{paper}.md"


def claims_file(plan: Plan, paper: str, ending: str) -> Path:
    """The path of the table of a paper's claims."""
    return RESULTS / plan.scale / "targets" / paper / f"claims.{ending}"


def outputs(plan: Plan) -> list[Path]:
    """The site's first page, and the list of the other files with their checksums."""
    folder = RESULTS / plan.scale / "report"
    return [folder / "index.html", folder / MANIFEST]


def method_page(plan: Plan, label: str) -> Path:
    """The page of a method from outside."""
    return outputs(plan)[0].parent / "methods" / f"{label}.html"


def copy_path(path: Path) -> Path:
    """The place of a copy of a target's file, below the folder of such copies."""
    return Path(path.parent.name, path.name)
