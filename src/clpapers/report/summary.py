"""The summary at the end of a build: how much is compared and decided, on which data, and which files to open."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from clpapers.catalogue.metrics import margins_told
from clpapers.catalogue.names import named
from clpapers.config.model import Target
from clpapers.config.paths import RESULTS
from clpapers.config.plan import Plan
from clpapers.graph.pages import targets_of
from clpapers.provenance import read_record
from clpapers.report.coverage import by_kind, coverage, lines_of, of_claims, of_sentences, table

UNBUILT = 5  # targets that are named


def summary_of(plan: Plan, papers: Collection[str], more: str = "") -> str:
    """The summary of the built files of some papers.

    more: the numbers and claims that one more hour of a core, or a card, would decide.
    """
    targets = targets_of(plan, papers)
    built = [target for target in targets if all(path.is_file() for path in target.outputs)]
    covered = coverage(plan, papers)
    lines = [f"clpapers, scale ‘{plan.scale}’: {plan.settings['description']}", ""]
    lines += [
        *_aligned(table(covered)),
        "",
        *_aligned(by_kind(covered[-1].numbers)),
        "",
        f"the margins are {margins_told()}",
        "",
    ]
    lines += [*_aligned(of_claims(covered)), "", *_aligned(of_sentences(covered))]
    if numbers := list(_headlines(built)):
        lines += ["", "a number of each paper, printed and ours:", *(f"  {each}" for each in numbers)]
    data: dict[str, dict] = {}
    for target in built:
        data |= read_record(target.outputs[0]).get("data", {})
    for kind, names in _by_origin(data).items():
        lines += ["", f"{kind}: {', '.join(names)}"]
    top = RESULTS / plan.scale
    lines += ["", f"rendered: {len(built)} of {len(targets)} tables and figures, below {top}/targets/<paper>/"]
    lines += _trained_again(top / "verified.csv")
    if more:
        processor = "card" if plan.cuda else "core"
        lines += [f"one {processor}-hour more would decide {more}: snakemake all --cores --config hours=1"]
    pages = top / "report" / "index.html"
    lines += [f"as pages: {pages}" if pages.is_file() else f"as pages: snakemake report --cores; then open {pages}"]
    lines += ["where a number came from: clpapers lineage FILE"]
    absent = [target for target in targets if target not in built]
    for text, some in (("not run yet", True), ("not built", False)):
        if named := [f"{t.paper}/{t.name}" for t in absent if t.note.is_file() is some]:
            more = f" and {len(named) - UNBUILT} more" if len(named) > UNBUILT else ""
            lines += [f"{text}: {', '.join(named[:UNBUILT])}{more}"]
    return "\n".join(lines)


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def _trained_again(file: Path) -> Iterator[str]:
    """The verdicts on published runs that were trained again (`clpapers verify --out`), if any were."""
    if outcomes := lines_of(file, proven=False):
        counts = Counter(line["verdict"] for line in outcomes)
        found = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        yield f"published runs trained again here, from the images on: {found}"
    yield from (f"  differs: {line['run']}" for line in outcomes if line["verdict"] == "differs")


def _headlines(targets: Iterable[Target]) -> Iterator[str]:
    """The printed number and ours of each target that has a `headline`."""
    for target in targets:
        if not (headline := target.spec.get("headline")) or not target.reported:
            continue
        lines = lines_of(target.stem.with_name(f"{target.name}.reported.csv"))
        line = next(each for each in lines if headline.items() <= each.items())
        decimals = int(line["decimals"])
        printed, ours = f"{float(line['printed']):.{decimals}f}", "not run"
        if line["ours"]:
            ours = f"{float(line['ours']):.{decimals}f}, runs: {line['n_seeds']}, {line['verdict']}"
        metric = named(target.spec, headline["metric"])
        name = f"{target.paper}/{target.name} {headline['row']}, {headline['column']}, {metric}"
        yield f"{name}: {printed}; {ours}"


def _by_origin(data: dict[str, dict]) -> dict[str, list[str]]:
    """The data sets by origin: real, partial or synthetic."""
    names: dict[str, list[str]] = {}
    for name, facts in sorted(data.items()):
        kind = "STAND-INS, synthetic: numbers on them are not the papers'" if facts["standin"] else "real data"
        names.setdefault("PART of the real data" if facts["partial"] else kind, []).append(name)
    return names
