"""The site's settings, which Sphinx reads."""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

project = "clpapers"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
html_theme = "pydata_sphinx_theme"
html_title = "clpapers"
html_static_path = ["_static"]
html_css_files = ["site.css", "grades.css"]
html_js_files = [("tables.js", {"defer": "defer"})]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
UNLISTED = ("index", "holds", "runs", "gallery", "reproduction/*", "findings/*")  # these pages stand in no section
html_sidebars: dict[str, list[str]] = {page: [] for page in UNLISTED}
html_show_search_summary = False  # they are fetched, which a folder without a server does not allow
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "gallery": []},
    "show_prev_next": False,
    "navigation_with_keys": False,
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
myst_heading_anchors = 3
myst_links_external_new_tab = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
default_role = "code"
smartquotes = False
HYPHENATED = re.compile(r"(\b[A-Z]+(?:-[A-Z\d]+)+\b)")  # a name that no line may break: A-GEM
UNDERLINE = re.compile(r"-{4,}")
ENTRY = re.compile(r"(?P<names>[`*\w.…]+(?:(?:, | → | and )[`*\w.…]+)*): (?P<text>\S.*)")


def list_entries(app: Sphinx, kind: str, name: str, member: object, options: object, docstring: list[str]) -> None:
    """Make a list of a docstring's lines `name: text`, whose further lines are indented; embolden its heading."""
    made: list[str] = []
    inside = False
    for line, below in zip(docstring, [*docstring[1:], ""]):
        if UNDERLINE.fullmatch(line):
            continue
        if UNDERLINE.fullmatch(below):
            line = f"**{line}**"
        entry = ENTRY.fullmatch(line)
        if entry:
            made += [*([] if inside else [""]), f"- **{entry['names'].replace('`', '')}**: {entry['text']}"]
            inside = True
        elif inside and line.startswith("  "):
            made.append(f"  {line.strip()}")
        else:
            made += ["", line] if inside and line else [line]
            inside = inside and not line
    docstring[:] = made


def skip_field(app: Sphinx, kind: str, name: str, member: object, skip: bool, options: object) -> bool | None:
    """Leave out the fields of named tuples, which the tuple's own docstring explains."""
    return True if (getattr(member, "__doc__", None) or "").startswith("Alias for field number") else None


def keep_names(app: Sphinx, page: nodes.document) -> None:
    """Let no line break a name with a hyphen."""
    for text in [*page.findall(nodes.Text)]:
        if isinstance(text.parent, nodes.literal | nodes.FixedTextElement | nodes.raw):
            continue
        parts = HYPHENATED.split(text)
        if len(parts) > 1:
            named = [nodes.inline("", part, classes=["name"]) for part in parts[1::2]]
            parts[1::2] = named
            text.parent.replace(text, [nodes.Text(part) if isinstance(part, str) else part for part in parts])


def frame_pictures(app: Sphinx, page: nodes.document) -> None:
    """Let a picture that is wider than the screen scroll, as a table does, and keep its labels legible."""
    for image in [*page.findall(nodes.image)]:
        paragraph = image.parent
        if isinstance(paragraph, nodes.paragraph) and len(paragraph) == 1:
            paragraph.replace_self(nodes.container("", image, classes=["pst-scrollable-table-container", "picture"]))


class Words(SearchEnglish):
    """English with names of code, which are found by each of their words too: `label_smoothing`."""

    def split(self, input: str) -> list[str]:
        """The words of a text."""
        names = super().split(input)
        return [*names, *(word for name in names if "_" in name for word in name.split("_") if word)]


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_search_language(Words)
    app.connect("doctree-read", keep_names, priority=100)  # before the tables of contents are made
    app.connect("doctree-read", frame_pictures, priority=100)
    app.connect("autodoc-process-docstring", list_entries)
    app.connect("autodoc-skip-member", skip_field)
