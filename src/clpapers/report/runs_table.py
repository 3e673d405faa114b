"""All runs behind the numbers: a file of theirs that git has, and the page on which a reader finds them."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from clpapers.archive.imported import PUBLISHED, source_of
from clpapers.provenance import as_published, is_imported
from clpapers.report.paper import Paper, Runs

FILE = PUBLISHED / "runs.csv"
PAGE, DATA = "runs.md", "_static/runs_data.js"
AND = " | "  # between the parts of a place
TEXT = f"""\
# Runs

Each line is a run behind a number of a table or figure. A number leads to its own runs; the field finds others by any
words of a line, such as a method, a commit or a file. A published run lies under the same path with `imported` in the
place of `runs`.

- `snakemake FILE --cores --force` trains it again.
- `clpapers lineage FILE` follows it down to its images.
- `{FILE}` has all files as one table.

<label class="find">Find runs <input id="run-filter" type="search" autocomplete="off"></label>
<p id="run-count" role="status"></p>
<div class="pst-scrollable-table-container"><table id="run-list" class="table">
<thead></thead><tbody></tbody></table></div>
<noscript>The table needs JavaScript; <code>{FILE}</code> has the same runs.</noscript>
<script src="{DATA}"></script>
<script src="_static/runs.js"></script>
"""
HEADS = ["place", "seed", "values", "file", "crate", "SHA-256", "commit", "day", "machine", "core-hours", "first steps"]


def address(target: str, row: str = "", column: str = "") -> str:
    """The address of the runs of a target, or of a row and column of it, from the site's folder."""
    return f"{PAGE.replace('.md', '.html')}#{quote(AND.join(filter(None, [target, row, column])))}"


def linked(text: str, where: str) -> str:
    """A text that leads to an address."""
    return f'<a href="{html.escape(where)}">{text}</a>'


def frame(files: Iterable[dict]) -> pd.DataFrame:
    """A line a file of runs, sorted: what its record says of it, and the crate that brought it.

    files: as `clpapers.report.paper.describer` describes them.
    """
    lines = [
        {
            "file": as_published(each["path"]),
            "seeds": " ".join(map(str, each["seeds"])),
            "crate": _crate(each),
            "sha256": each["sha256"],
            "commit": each["commit"],
            "day": each["day"],
            "machine": each["machine"],
            "device": each["device"],
            "torch": each["torch"],
            "core_hours": f"{each['hours']:.4g}",
            "first_steps": each["begun"].verdict if each["begun"] else "",
        }
        for each in files
    ]
    return pd.DataFrame(lines).sort_values("file", kind="stable") if lines else pd.DataFrame(columns=["file"])


def script(papers: Iterable[Paper]) -> str:
    """The page's data: the files, and a line a run and place of the tables, with the number of its file."""
    numbers: dict[Path, int] = {}
    files: list[list[str]] = []
    rows: list[list] = []
    for paper in papers:
        for runs in _all([paper]):
            place = AND.join(filter(None, [f"{paper.name}/{runs.target}", runs.row, runs.column]))
            for file in (file for _, of_cell in runs.cells for file in of_cell):
                if file["path"] not in numbers:
                    numbers[file["path"]] = len(files)
                    files.append(_shown(file))
                rows += [[place, seed, _values(runs, seed), numbers[file["path"]]] for seed in file["seeds"]]
    told = json.dumps({"heads": HEADS, "files": files, "rows": rows}, ensure_ascii=False, separators=(",", ":"))
    return f"const RUNS = {told};\n"


def _all(papers: Iterable[Paper]) -> Iterator[Runs]:
    return (runs for paper in papers for section in paper.targets for runs in section.runs)


def _crate(file: dict) -> str:
    source = source_of(file["path"], file["sha256"])
    return source["name"] if source else ""


def _shown(file: dict) -> list[str]:
    """A file's cells, from `file` on."""
    begun = file["begun"]
    steps = f"{begun.verdict} ({begun.commit[:10]}, {begun.date})" if begun else ""
    return [
        as_published(str(file["path"])) + " (not as recorded)" * file["edited"],
        _crate(file) or ("no crate" if is_imported(file["path"]) else "trained here"),
        file["sha256"][:12],
        file["commit"][:10],
        file["day"],
        file["machine"],
        f"{file['hours']:.2g}",
        steps,
    ]


def _values(runs: Runs, seed: int) -> str:
    return ", ".join(f"{metric} {values[seed]}" for metric, values in runs.values.items() if seed in values)
