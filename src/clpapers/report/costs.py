"""What each target costs: the seconds of all the jobs behind it, read from their records."""

from __future__ import annotations

from pathlib import Path

from clpapers.config import Plan
from clpapers.provenance import ProvenanceError, read_record, record_path


def ancestry(*paths: Path) -> dict[Path, dict]:
    """The records behind files, their own included: record path → record."""
    found: dict[Path, dict] = {}
    queue = list(paths)
    while queue:
        file = queue.pop()
        place = record_path(file)
        if place in found:
            continue
        try:
            found[place] = read_record(file)
        except ProvenanceError:
            continue
        queue += [Path(item["path"]) for item in found[place]["inputs"]]
    return found


def table(plan: Plan) -> str:
    """A Markdown table of a plan's targets: the command that makes each, its runs, and its cost where it was built."""
    lines = [f"| target | command | runs | cost at `{plan.scale}` |", "|---|---|---:|---:|"]
    for name, target in plan.targets.items():
        runs = sum(len(plan.results(cell, target.seeds)) for _, cell in target.cells)
        runs += sum(len(plan.results(cell)) for _, search in target.selections for _, cell in search.points)
        seconds = sum(record["wall_seconds"] for record in ancestry(target.outputs[0]).values())
        cost = f"{seconds:.0f} s" if seconds else "not built"
        lines.append(f"| {name} | `snakemake {target.outputs[0]} --cores` | {runs} | {cost} |")
    return "\n".join(lines)
