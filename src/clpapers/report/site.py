"""Builds the site: the pages on what came out, the findings, the guides and the reference, by Sphinx.

The pages stand as Markdown in a folder that is laid out like docs/, so that a link means the same in both. A link to a
file that the site has not is text. The site needs no network and no server: its folder can be zipped and mailed.
"""

from __future__ import annotations

import base64
import io
import json
import pkgutil
import posixpath
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import matplotlib as mpl
import pandas as pd

from clpapers import metrics, provenance
from clpapers.archive.check import manifest_of
from clpapers.evidence import verdict_names
from clpapers.evidence.differences import forest, scatter
from clpapers.graph.pages import DOCS, THEME, copy_path
from clpapers.report import own_methods, pages, runs_table
from clpapers.report.own_methods import OwnMethod
from clpapers.report.paper import Paper
from clpapers.targets.figure import write_figure
from clpapers.targets.style import STYLE

ADDED = {  # files beside docs/ that the site has, by their place in it
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "config/README.md": "configuration.md",
}
STUB = "`make site` builds this page"  # in a page of docs/ that stands for one that is made here
NOTEBOOK = "notebook.md"
GUIDES = ("tour", "notebook", "own_method", "own_paper", "own_data", "streams", "machines", "data")
PROJECT = ("decisions", "contributing", "changelog")
LINK = re.compile(r"(?P<text>!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?P<path>[^()\s#]*)(?P<anchor>#[^()\s]*)?\)")
LARGER = 1.25  # of figures on a screen, against print
API = {  # by page, its title and the modules whose docstrings it has
    "api": ("API", ("results", "streams.dataset", "runs.method", "runs.learner")),
    "metrics": ("Metrics", tuple(f"metrics.{module.name}" for module in pkgutil.iter_modules(metrics.__path__))),
}


class SiteError(provenance.Refusal):
    """The site cannot be built; one line: file, fault."""


def write(
    papers: list[Paper], folder: Path, reference: Mapping[str, str] | None = None, own: Collection[OwnMethod] = ()
) -> None:
    """Write the site of some papers, and of methods from outside, into `folder`, which it replaces.

    The working folder's docs/ has the guides and the findings; without it the site is the papers' pages alone.
    reference: the pages of `clpapers.report.reference`.
    """
    with tempfile.TemporaryDirectory(prefix="clpapers-site-") as scratch:
        source = Path(scratch, "source")
        shutil.copytree(THEME, source, ignore=shutil.ignore_patterns("__pycache__"))
        provenance.write_text(source / "_static" / "grades.css", _grades())
        found = _of_docs(source)  # first: the figures of these papers take the place of the published ones
        made_here = _of_papers(papers, source) | own_methods.texts(own) | dict(reference or {})
        own_methods.draw(own, source)
        found |= {f"{DOCS}/{place}": (place, text) for place, text in made_here.items()}
        places = {path: place for path, (place, _) in found.items()}
        texts = {place: _moved(text, path, place, source, places) for path, (place, text) in found.items()}
        texts[pages.HOME] = own_methods.linked(texts[pages.HOME], own)
        for place, text in (texts | _sections(texts, [each.page for each in own])).items():
            provenance.write_text(source / place, text)
        for picture in source.rglob("*.svg"):
            provenance.write_text(picture, _larger(picture.read_text(encoding="utf-8")))
        made = Path(scratch, "site")
        _build(source, made, Path(scratch, "trees"))
        files = sorted(path for path in made.rglob("*") if path.is_file() and path != made / "index.html")
        digests = {path.relative_to(made).as_posix(): provenance.sha256(path) for path in files}
        provenance.write_text(made / provenance.MANIFEST, manifest_of(digests))
        shutil.rmtree(folder, ignore_errors=True)  # with the pages of a site of other papers
        shutil.copytree(made, folder)


def _grades() -> str:
    """The style of grades, in the colours of the pictures."""
    rule = ".{name} {{ border-bottom: 0.2em {line} {colour}; white-space: nowrap; }}"
    lines = [
        rule.format(name=verdict_names.style(word), line=verdict_names.LINES.get(word, "solid"), colour=colour)
        for word, colour in verdict_names.COLOURS.items()
    ]
    return "\n".join(lines) + "\n"


def _of_docs(source: Path) -> dict[str, tuple[str, str]]:
    """The pages of docs/ and `ADDED`, by path: place and text. Pictures and programs beside them are copied."""
    files = {path: path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*")) if path.is_file()}
    files |= {Path(path): place for path, place in ADDED.items() if Path(path).is_file()}
    found = {}
    for path, place in files.items():
        if place.endswith(".md"):
            text = path.read_text(encoding="utf-8")
            if STUB not in text:
                found[path.as_posix()] = place, text
        elif place.endswith(".ipynb"):
            found[path.as_posix()] = NOTEBOOK, _notebook(path, source)
        else:
            provenance.write_bytes(source / place, path.read_bytes())
    return found


def _notebook(file: Path, source: Path) -> str:
    """A notebook with its saved outputs as a page; its pictures are written beside it."""
    lines: list[str] = []
    for number, cell in enumerate(json.loads(file.read_text(encoding="utf-8"))["cells"]):
        text = "".join(cell["source"])
        lines += [text, ""] if cell["cell_type"] == "markdown" else ["```python", text, "```", ""]
        for output in cell.get("outputs", []):
            data = output.get("data") or {"text/plain": output["text"]}
            if "image/png" in data:
                picture = f"figures/{file.stem}-{number}.png"
                provenance.write_bytes(source / picture, base64.b64decode("".join(data["image/png"])))
                lines += [f"![The picture that these lines draw]({picture})", ""]
            elif "text/html" in data:  # of a frame, whose own style would end at its first empty line
                lines += [re.sub(r"<style.*?</style>|\n\s*(?=\n)", "", "".join(data["text/html"]), flags=re.DOTALL), ""]
            else:
                lines += ["```text", "".join(data["text/plain"]).rstrip("\n"), "```", ""]
    return "\n".join(lines)


def _moved(text: str, path: str, site_path: str, source: Path, site_paths: Mapping[str, str]) -> str:
    """A page's text with its links as they lead from its place in the site; a link to elsewhere is text.

    A link that has a file's name as its text has the page's title here.

    path: of the page in the project; site_path: in the site. site_paths: of all pages, by their paths in the project.
    """

    def move(link: re.Match) -> str:
        target = link["path"]
        if not target or ":" in target:
            return link[0]
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        found = site_paths.get(meant) or (meant.removeprefix("docs/") if meant.startswith("docs/") else None)
        if found is None or not (meant in site_paths or (source / found).is_file()):
            return link["text"].removeprefix("!")[1:-1]
        way = posixpath.relpath(found, posixpath.dirname(site_path) or ".")
        text = "[]" if link["text"].endswith(".md]") else link["text"]
        return f"{text}({way}{link['anchor'] or ''})"

    return LINK.sub(move, text)


def draw(papers: list[Paper], folder: Path) -> list[Path]:
    """Draw the comparisons of all papers and of each, SVGs at the places that `pages` names; returns their paths."""
    compared = {paper.name: paper.compared for paper in papers if len(paper.compared)}
    figures = {pages.FOREST.format(paper=paper): forest(numbers) for paper, numbers in compared.items()}
    if compared:
        figures[pages.PICTURE] = scatter(pd.concat(compared.values()))
    stems = {(folder / place).with_suffix(""): figure for place, figure in figures.items()}
    with mpl.rc_context(STYLE):
        return [path for stem, figure in stems.items() for path in write_figure(figure, stem, (".svg",))]


def _of_papers(papers: list[Paper], source: Path) -> dict[str, str]:
    """The pages on what came out, and the pictures that they show."""
    draw(papers, source)
    provenance.write_text(source / runs_table.DATA, runs_table.script(papers))
    pictures: dict[str, str] = {}
    for section in (section for paper in papers for section in paper.targets if not section.waits):
        for path in (path for path in section.target.outputs if path.suffix in pages.LINKED):
            provenance.write_bytes(source / "files" / copy_path(path), path.read_bytes())
        if section.picture is not None:
            pictures[section.name] = f"figures/{copy_path(section.picture)}"
            provenance.write_bytes(source / pictures[section.name], section.picture.read_bytes())
    return pages.texts(papers, pictures, files="../files")


def _sections(texts: Mapping[str, str], methods: Iterable[str]) -> dict[str, str]:
    """The pages that list others, the papers' pages, which no other than the first lists, and the first page.

    methods: the pages of methods from outside.
    """
    names = {path.removesuffix(".md") for path in texts}
    alone = [name for name in names if name.startswith(("reproduction/", "findings/"))]  # home leads to them
    of_methods = [path.removesuffix(".md") for path in methods]
    decisions = sorted(name for name in names if name.startswith("decisions/"))
    guides, project = ([name for name in some if name in names] for some in (GUIDES, PROJECT))
    rest = sorted(names - {*alone, *of_methods, *decisions, *guides, *project, "index", "holds", "gallery", "runs"})
    sections = {
        "methods": ("Your methods", of_methods),
        "guides": ("Guides", guides),
        "reference": ("Reference", [*API, *rest]),
        "project": ("Project", [*project, *decisions]),
    }
    made = {f"{page}.md": f"# {title}\n\n{_docstrings(modules)}" for page, (title, modules) in API.items()}
    sections = {name: section for name, section in sections.items() if section[1]}
    for name, (title, entries) in sections.items():
        made[f"{name}.md"] = f"# {title}\n\n{_tree(entries)}"
    made |= {f"{name}.md": f"---\norphan: true\n---\n\n{texts[f'{name}.md']}" for name in alone}
    return made | {pages.HOME: texts[pages.HOME] + "\n" + _tree(["holds", "runs", *sections, "gallery"], "hidden")}


def _larger(svg: str) -> str:
    """One of our figures, larger than in print, so that its labels have 9 pixels; another picture as it is."""
    if 'id="figure_1"' not in svg:
        return svg
    sizes = re.compile(r'(?<= )(width|height)="([\d.]+)pt"')
    return sizes.sub(lambda size: f'{size[1]}="{float(size[2]) * LARGER:g}pt"', svg, count=2)


def _docstrings(modules: Iterable[str]) -> str:
    """The directives for the docstrings of some modules, a section each."""
    section = "## {0}\n\n```{{eval-rst}}\n.. automodule:: {0}\n   :members:\n```\n"
    return "\n".join(section.format(f"clpapers.{module}") for module in modules)


def _tree(names: list[str], *options: str) -> str:
    return "\n".join(["```{toctree}", ":maxdepth: 1", *(f":{option}:" for option in options), "", *names, "```", ""])


def _build(source: Path, out: Path, trees: Path) -> None:
    """Run Sphinx; `SiteError` with its first warning, as each is a link or a name that leads nowhere."""
    from sphinx.application import Sphinx

    warnings = io.StringIO()
    app = Sphinx(source, source, out, trees, "html", status=None, warning=warnings, parallel=2)
    app.build()
    told = [line.replace(f"{source}/", "") for line in warnings.getvalue().splitlines() if line]
    if told or app.statuscode:
        raise SiteError(f"site: {len(told)} faults, first {told[0] if told else 'in Sphinx'}")
    for name in (".buildinfo", "objects.inv"):
        (out / name).unlink(missing_ok=True)
