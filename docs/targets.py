"""Writes docs/targets.md, every target with its command, runs and cost at the papers' settings: `make targets`."""

import subprocess
from pathlib import Path

PAGE = Path(__file__).with_suffix(".md")
HEAD = """\
# Targets

This page lists every table, figure and number of the five papers, at their settings. Each line has the command that
makes it, the runs that it needs, and two predicted costs of one core. "Whole" is all of the target from nothing. "Still
to train" is what remains where the published runs are there, as if all data sets were at hand; footnotes and `clpapers
next` give the same number on the same machine. Targets share runs, so the last line is less than the sum.
The targets `class_order` and those whose name begins with `sensitivity` are part neither of their papers nor of `all`.
At another scale the path says so: `results/smoke/…`. [costs.md](costs.md) says how costs are predicted, and how far
that was right. The costs are for the machine that wrote the page.

`make targets` writes this page.

"""


def without(lines: list[str], heading: str) -> list[str]:
    """The lines of a Markdown table without the columns whose heading begins like that."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    kept = [i for i, cell in enumerate(rows[0]) if not cell.startswith(heading)]
    return [f"| {' | '.join(row[i] for i in kept)} |" for row in rows]


if __name__ == "__main__":
    command = ["clpapers", "targets", "--scale", "paper"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    table = [line for line in printed.splitlines() if line.startswith("|")]
    PAGE.write_text(HEAD + "\n".join(without(table, "cost at")) + "\n", encoding="utf-8")  # those are this machine's
