"""The site's settings, which Sphinx reads."""

import re

from sphinx.application import Sphinx

project = "clpapers"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
html_theme = "pydata_sphinx_theme"
html_title = "clpapers"
html_static_path = ["_static"]
html_css_files = ["site.css", "grades.css"]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_sidebars: dict[str, list[str]] = {page: [] for page in ("index", "holds", "gallery")}  # they stand in no section
html_show_search_summary = False  # they are fetched, which a folder without a server does not allow
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
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


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", list_entries)
    app.connect("autodoc-skip-member", skip_field)
