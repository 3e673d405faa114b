"""Fills a paper's page of findings: below each mark stand the numbers that differ, and the claims, that the mark names.

A mark opens with `<!-- differs`, has a line a place, `target | row | column | metric`, and closes with `-->`. Each part
is a pattern as of `fnmatch`, and may be left out at the end. `claim | name` is a contradicted claim. The mark without
lines takes the rest, which has no experiment on the page.
"""

import fnmatch
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from clpapers.evidence.pooled import each_once
from clpapers.evidence.words import DIFFERS
from clpapers.targets.markdown import markdown_table

MARK = re.compile(r"(?P<head><!-- differs\n(?P<places>(?:[^\n]+\n)*?)-->\n).*?(?P<foot><!-- differs ends -->\n)", re.S)
PARTS = ("place", "row", "column", "named")
NOTHING = "Nothing here differs now."
HEADS = ["target", "row", "columns", "metric", "difference", "runs"]


def fill(file: Path, text: str, compared: pd.DataFrame, claims: Mapping[str, str]) -> str:
    """The text of a page with the numbers below its marks.

    compared: the paper's numbers, rows of `comparison.compare` with `texts`, `place` (the target's name) and `named`
        (the metric's).
    claims: the contradicted claims, a line each, by name.

    A number stands below the first mark that names it. `ValueError` unless one mark takes the rest.
    """
    marks = [_patterns(mark["places"]) for mark in MARK.finditer(text)]
    if marks.count([]) != 1:
        raise ValueError(f"{file}: {marks.count([])} marks `<!-- differs` without lines; one takes the rest")
    rest = marks.index([])
    differing = compared[compared["verdict"] == DIFFERS]
    numbers = differing.to_dict("records")
    taken = [_first(marks, [number[part] for part in PARTS], rest) for number in numbers]
    said = {name: _first(marks, ["claim", name], rest) for name in claims}
    once = Counter(pd.Series(taken, differing.index, dtype=int)[each_once(differing).index])
    blocks = []
    for mark in range(len(marks)):
        found = _table([number for number, place in zip(numbers, taken) if place == mark])
        found += ["", *(f"- {claims[name]}" for name, place in said.items() if place == mark)]
        blocks.append("\n".join(found).strip("\n") or NOTHING)
    total = sum(once.values())
    count = f"{total} numbers differ, each comparison once. {once[rest]} of them have no experiment on this page."
    none = f"No number {'that was compared differs' if len(compared) else 'is compared'}."
    blocks[rest] = "\n\n".join([count if total else none, *([] if blocks[rest] == NOTHING else [blocks[rest]])])
    each = iter(blocks)
    return MARK.sub(lambda mark: f"{mark['head']}\n{next(each)}\n\n{mark['foot']}", text)


def _patterns(text: str) -> list[list[str]]:
    return [[part.strip() for part in line.split(" | ")] for line in text.splitlines()]


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
