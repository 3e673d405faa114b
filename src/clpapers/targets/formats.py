"""Writes tables as CSV, Markdown, LaTeX and HTML: same input, same bytes."""

import html
import itertools
import re
from collections.abc import Callable
from pathlib import Path

import jinja2
import pandas as pd

from clpapers.provenance import write_text
from clpapers.targets.markdown import markdown
from clpapers.targets.table import Table
from clpapers.targets.tex import latex

_TEX = jinja2.Template(
    r"""% In the preamble: \usepackage{booktabs}
\begin{table}
\centering
\caption{ {{- title }}. {{ caption -}} }
\label{ {{- label -}} }
\footnotesize
\setlength{\tabcolsep}{3pt}
\makebox[\linewidth]{
{{- tabular -}}
}
{%- for note in footnotes %}
\par\smallskip
\begin{minipage}{\linewidth}\footnotesize {{ note }}\end{minipage}
{%- endfor %}
\end{table}
{%- for source in sources %}
% {{ source }}
{%- endfor %}
""",
    keep_trailing_newline=True,
)

_LONG_TEX = jinja2.Template(
    r"""% In the preamble: \usepackage{booktabs,longtable}
{\footnotesize
\setlength{\tabcolsep}{3pt}
\setlength{\LTcapwidth}{\linewidth}
{{ tabular }}
{%- for note in footnotes %}
\par\smallskip {{ note }}
{%- endfor %}
}
{%- for source in sources %}
% {{ source }}
{%- endfor %}
""",
    keep_trailing_newline=True,
)

_HTML = jinja2.Template(
    """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ escape(tables[0].title) }}</title>
<style>
body { font: 1rem/1.5 serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
div { overflow-x: auto; margin-bottom: 2.5rem; }
table { border-collapse: collapse; border-top: 2px solid; border-bottom: 2px solid; margin: auto; }
caption { text-align: left; padding-bottom: .75rem; }
thead { border-bottom: 1px solid; }
th, td { padding: .2rem .7rem; text-align: center; font-variant-numeric: tabular-nums; white-space: nowrap; }
th { font-weight: normal; }
td:first-child, th:first-child { text-align: left; }
.prose td, .prose tbody th { white-space: normal; text-align: left; vertical-align: top; }
.note { font-size: .85rem; margin: .5rem 0; }
</style>
</head>
<body>
{% for table in tables -%}
<div{{ ' class="prose"' if table.prose }}>
<table>
<caption><strong>{{ escape(table.title) }}.</strong> {{ escape(table.caption) }}</caption>
  <thead>
  {%- for row in table.head %}
    <tr>
    {%- for heading, span in row %}
      <th scope={% if span > 1 %}"colgroup" colspan="{{ span }}"{% else %}"col"{% endif %}>{{ heading }}</th>
    {%- endfor %}
    </tr>
  {%- endfor %}
  </thead>
  <tbody>
  {%- for row in table.rows %}
    <tr>
      {% if row[0] %}<th scope="row">{{ row[0] }}</th>{% else %}<td ></td>{% endif %}
    {%- for cell in row[1:] %}
      <td >{{ cell }}</td>
    {%- endfor %}
    </tr>
  {%- endfor %}
  </tbody>
</table>

{% for note in table.footnotes + table.sources -%}
<p class="note">{{ escape(note) }}</p>
{% endfor -%}
</div>
{% endfor -%}
</body>
</html>
""",
    keep_trailing_newline=True,
)


def _typeset(table: Table, escape: Callable[[str], str], strong: str) -> pd.DataFrame:
    """The body with every cell and heading escaped, and bold cells formatted by `strong`."""
    cells = table.body.map(escape)
    cells = cells.where(~table.bold, cells.map(strong.format))
    return cells.rename(columns=escape)


def markdown_cells(table: Table) -> pd.DataFrame:
    """The body as Markdown, with one level of headings; bold cells are strong."""
    cells = _typeset(table, markdown, "**{}**")
    if cells.columns.nlevels > 1:
        cells.columns = [" ".join(filter(None, heading)) for heading in cells.columns]
    return cells


def to_markdown(table: Table) -> str:
    """The table and its appended tables as GitHub Markdown."""
    grid = markdown_cells(table).to_markdown(index=False, tablefmt="pipe", disable_numparse=True)
    parts = [f"**{markdown(table.title)}.** {markdown(table.caption)}", grid]
    parts += map(markdown, [*table.footnotes, *table.sources])
    return "\n\n".join([*parts, *(to_markdown(other).rstrip("\n") for other in table.appended)]) + "\n"


def to_latex(table: Table, label: str) -> str:
    """The table as a LaTeX float (booktabs only), or with prose as a longtable; appended tables are left out.

    LaTeX numbers it, so the number in its title follows as the paper's. Its sources are comments.
    """
    cells = _typeset(table, latex, r"\textbf{{{}}}")
    title = latex(re.sub(r"^(Table \d+): (.+)", r"\2 (\1 of the paper)", table.title))
    if table.prose:
        widths = [table.prose.get(column) for column in table.body.columns]
        tabular = cells.style.hide(axis="index").to_latex(
            hrules=True,
            environment="longtable",
            column_format="".join(rf"p{{{width}\linewidth}}" if width else "l" for width in widths),
            caption=f"{title}. {latex(table.caption)}",
            label=f"tab:{label}",
        )
        return _LONG_TEX.render(tabular=tabular.strip(), footnotes=map(latex, table.footnotes), sources=table.sources)
    tabular = cells.style.hide(axis="index").to_latex(
        hrules=True, multicol_align="c", column_format="l" + "c" * (cells.shape[1] - 1)
    )
    return _TEX.render(
        title=title,
        caption=latex(table.caption),
        label=f"tab:{label}",
        tabular=tabular.strip(),
        footnotes=map(latex, table.footnotes),
        sources=table.sources,
    )


def to_html(table: Table) -> str:
    """The table and its appended tables as one self-contained page; headings have scopes."""
    tables = []
    for each in (table, *table.appended):
        cells = _typeset(each, html.escape, "<strong>{}</strong>")
        head = [[(heading, 1) for heading in cells.columns.get_level_values(-1)]]
        if cells.columns.nlevels > 1:
            upper = itertools.groupby(cells.columns.get_level_values(0))
            head.insert(0, [(heading, len(list(columns))) for heading, columns in upper])
        tables.append({**vars(each), "head": head, "rows": cells.to_numpy().tolist()})
    return _HTML.render(tables=tables, escape=html.escape)


def to_csv(data: pd.DataFrame) -> str:
    """A frame as CSV, numbers to ten digits, lines ended by a bare newline."""
    return data.to_csv(index=False, lineterminator="\n", float_format="%.10g")


def write_table(table: Table, stem: Path | str) -> list[Path]:
    """Write `<stem>.csv .md .tex .html` and return their paths; Markdown and HTML include appended tables.

    The label in LaTeX has the names of the folder, a paper's, and of the file.
    """
    texts = {
        ".csv": to_csv(table.data),
        ".md": to_markdown(table),
        ".tex": to_latex(table, "-".join(Path(stem).parts[-2:])),
        ".html": to_html(table),
    }
    paths = [Path(f"{stem}{suffix}") for suffix in texts]
    for path, text in zip(paths, texts.values()):
        write_text(path, text)
    return paths
