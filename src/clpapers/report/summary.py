"""The page printed at the end of a build: how much is compared and decided, on which data, and where to look."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from clpapers.catalogue.names import named
from clpapers.config.model import Target
from clpapers.config.paths import RESULTS
from clpapers.config.plan import Plan
from clpapers.evidence.grades import MARGINS
from clpapers.graph.pages import targets_of
from clpapers.provenance import ProvenanceError, escaped, read_record
from clpapers.report.coverage import by_kind, coverage, of_claims, table

UNBUILT = 5  # targets that are named


def page(plan: Plan, papers: Collection[str], more: str = "") -> str:
    """The summary of what is built of some papers, and of files that could not be read.

    more: what one more core-hour would decide.
    """
    unread: list[str] = []
    targets = targets_of(plan, papers)
    built = [target for target in targets if all(path.is_file() for path in target.outputs)]
    covered = coverage(plan, papers, unread)
    lines = [f"clpapers, scale ‘{plan.scale}’: {plan.settings['description']}", ""]
    lines += [*_aligned(table(covered)), "", *_aligned(by_kind(covered[-1].numbers)), "", f"margins: {MARGINS}", ""]
    lines += _aligned(of_claims(covered))
    if numbers := list(_headlines(built)):
        lines += ["", "a number of each paper, printed and reproduced:", *(f"  {each}" for each in numbers)]
    data: dict[str, dict] = {}
    for target in built:
        try:
            data |= read_record(target.outputs[0]).get("data", {})
        except ProvenanceError as error:
            unread.append(escaped(error))
    for kind, names in _by_origin(data).items():
        lines += ["", f"{kind}: {', '.join(names)}"]
    top = RESULTS / plan.scale
    lines += ["", f"rendered: {len(built)} of {len(targets)} tables and figures, below {top}/targets/<paper>/"]
    lines += _trained_again(top / "verified.csv")
    if more:
        lines += [f"one core-hour more would decide {more}: snakemake all --cores --config hours=1"]
    pages = top / "report" / "index.html"
    lines += [f"as pages: {pages}" if pages.is_file() else f"as pages: snakemake report --cores; then open {pages}"]
    lines += ["where a number came from: clpapers lineage FILE"]
    absent = [target for target in targets if target not in built]
    if absent:
        more = f" and {len(absent) - UNBUILT} more" if len(absent) > UNBUILT else ""
        lines += [f"not built: {', '.join(f'{t.paper}/{t.name}' for t in absent[:UNBUILT])}{more}"]
    return "\n".join([*lines, *(["", "cannot be read"] if unread else []), *(f"  {each}" for each in unread)])


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def _trained_again(file: Path) -> Iterator[str]:
    """How published runs that were trained again came out (`clpapers verify --out`), if any were."""
    if not file.is_file():
        return
    with file.open(encoding="utf-8", newline="") as opened:
        outcomes = [(line["run"], line["verdict"]) for line in csv.DictReader(opened)]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdict for _, verdict in outcomes).items())
    yield f"published runs trained again here, from the images on: {counts}"
    yield from (f"  {verdict}: {run}" for run, verdict in outcomes if verdict == "differs")


def _headlines(targets: Iterable[Target]) -> Iterator[str]:
    """The printed number of each target that has a `headline`, beside what was reproduced of it."""
    for target in targets:
        if not (told := target.spec.get("headline")) or not target.reported:
            continue
        try:
            with target.stem.with_name(f"{target.name}.reported.csv").open(encoding="utf-8", newline="") as file:
                line = next(each for each in csv.DictReader(file) if told.items() <= each.items())
            printed, here = f"{float(line['reported']):.{int(line['decimals'])}f}", "not run"
            if line["reproduced"]:
                here = (
                    f"{float(line['reproduced']):.{int(line['decimals'])}f}, runs: {line['n_seeds']}, {line['verdict']}"
                )
        except (OSError, ValueError, KeyError, TypeError, csv.Error, StopIteration):
            continue  # the coverage tells of a file that cannot be read
        name = f"{target.paper}/{target.name} {told['row']}, {told['column']}, {named(target.spec, told['metric'])}"
        yield f"{name}: {printed}; {here}"


def _by_origin(data: dict[str, dict]) -> dict[str, list[str]]:
    """The data sets by how real they are."""
    found: dict[str, list[str]] = {}
    for name, facts in sorted(data.items()):
        kind = "STAND-INS, synthetic: numbers on them are not the papers'" if facts["standin"] else "real data"
        found.setdefault("PART of the real data" if facts["partial"] else kind, []).append(name)
    return found
