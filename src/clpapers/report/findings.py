"""The causes on a paper's page of findings, and the numbers that differ and the claims that do not hold below each.

A section that tells of a cause has a mark. It opens with `<!-- differs, STATUS`, has a line a place,
`target | row | column | metric`, and closes with `-->`. Each part is a pattern as of `fnmatch`, and may be left out at
the end. `claim | name` is a claim that does not hold. The mark without lines takes the rest, which has no experiment on
the page. The lines between a mark and its end are written again with the numbers.
"""

import dataclasses
import fnmatch
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from clpapers.evidence.pooled import each_once
from clpapers.evidence.verdict_names import DIFFERS
from clpapers.targets.markdown import markdown_table

EXPLAINED, IN_PART, UNEXPLAINED = "explained", "in part", "unexplained"
STATUSES = (EXPLAINED, IN_PART, UNEXPLAINED)
MARK = re.compile(
    r"(?P<head><!-- differs, (?P<status>[a-z ]+)\n(?P<places>(?:[^\n]+\n)*?)-->\n).*?(?P<foot><!-- differs ends -->\n)",
    re.S,
)
HEADING = re.compile(r"^## (.+)$", re.M)
PARTS = ("place", "row", "column", "named")
NOTHING = "Nothing here differs now."
HEADS = ["target", "row", "columns", "metric", "difference", "runs"]


@dataclasses.dataclass(frozen=True)
class Cause:
    """A section of the page.

    status: of `STATUSES`. rest: whether it takes all that no other names. numbers: its numbers, as `causes` has them.
    once: how many these are, each comparison once. claims: the names of its claims that do not hold.
    """

    title: str
    status: str
    rest: bool
    numbers: list[dict]
    once: int
    claims: list[str]

    @property
    def anchor(self) -> str:
        """The address of its heading, as code hosts and the site make it."""
        return slug(self.title)


def slug(heading: str) -> str:
    """The address of a heading, as code hosts and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def causes(file: Path, text: str, compared: pd.DataFrame, claims: Sequence[str]) -> list[Cause]:
    """The causes on a page, in its order.

    compared: the paper's numbers, rows of `comparison.compare` with `texts`, `place` (the target's name) and `named`
        (the metric's).
    claims: the names of the claims that do not hold.

    A number stands below the first mark that names it. `ValueError` unless one mark takes the rest, and for a status
    that is none.
    """
    marks = list(MARK.finditer(text))
    patterns = [
        [[part.strip() for part in line.split(" | ")] for line in mark["places"].splitlines()] for mark in marks
    ]
    if patterns.count([]) != 1:
        raise ValueError(f"{file}: {patterns.count([])} marks `<!-- differs` without lines; one takes the rest")
    rest = patterns.index([])
    differing = compared[compared["verdict"] == DIFFERS]
    numbers = differing.to_dict("records")
    taken = [_first(patterns, [number[part] for part in PARTS], rest) for number in numbers]
    said = [_first(patterns, ["claim", name], rest) for name in claims]
    once = Counter(pd.Series(taken, differing.index, dtype=int)[each_once(differing).index])
    found = []
    for i, mark in enumerate(marks):
        if mark["status"] not in STATUSES:
            raise ValueError(f"{file}: `<!-- differs, {mark['status']}`: not one of {', '.join(STATUSES)}")
        title = HEADING.findall(text, 0, mark.start())[-1]
        own = [number for number, place in zip(numbers, taken) if place == i]
        own_claims = [name for name, place in zip(claims, said) if place == i]
        found.append(Cause(title, mark["status"], i == rest, own, once[i], own_claims))
    return found


def fill(text: str, of_page: Sequence[Cause], sentences: Mapping[str, str]) -> str:
    """The text of a page with the numbers and claims of its causes below its marks. sentences: each claim's line."""
    total = sum(cause.once for cause in of_page)
    blocks = []
    for cause in of_page:
        lines = [*_table(cause.numbers), "", *(f"- {sentences[name]}" for name in cause.claims)]
        block = "\n".join(lines).strip("\n")
        if cause.rest:
            count = (
                f"{total} numbers differ; one that several tables repeat counts once. Calibrated and exact numbers are "
                f"among them, which README leaves out. {cause.once} have no experiment on this page."
            )
            block = "\n\n".join(filter(None, [count if total else "No number that was compared differs.", block]))
        blocks.append(block or NOTHING)
    each = iter(blocks)
    return MARK.sub(lambda mark: f"{mark['head']}\n{next(each)}\n\n{mark['foot']}", text)


def _first(marks: Sequence[list[list[str]]], parts: Sequence[str], rest: int) -> int:
    """The first mark that names something by its parts, or the rest."""
    for mark, places in enumerate(marks):
        for place in places:
            if len(place) <= len(parts) and all(map(fnmatch.fnmatchcase, parts, place)):
                return mark
    return rest


def _table(numbers: Sequence[dict]) -> list[str]:
    """The lines of a table of numbers; columns with equal texts share a line."""
    columns_of: dict[tuple[str, ...], list[str]] = {}
    for each in numbers:
        key = f"`{each['place']}`", each["row"], each["named"], each["texts"]["difference"], each["texts"]["runs"]
        columns_of.setdefault(key, []).append(each["column"])
    rows = [[place, row, ", ".join(columns), *others] for (place, row, *others), columns in columns_of.items()]
    return markdown_table(HEADS, rows) if rows else []
