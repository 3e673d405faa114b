"""The page printed at the end of a build: targets built, their data, the time taken, where to look."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from clpapers.config.model import Target
from clpapers.config.plan import Plan
from clpapers.provenance import ProvenanceError, escaped, read_record


def page(plan: Plan) -> str:
    """The summary of a plan's targets that are built, and of files that could not be read."""
    lines = [f"clpapers, scale ‘{plan.scale}’: {plan.settings['description']}", ""]
    data: dict[str, dict] = {}
    unread: list[str] = []
    for paper in dict.fromkeys(target.paper for target in plan.targets.values()):
        lines += [f"{paper}: {plan.titles[paper]}"]
        for target in plan.targets.values():
            if target.paper == paper and not target.spec.get("extra"):
                lines.append(_line(target, unread))
                data |= _record(target.outputs[0]).get("data", {})
        lines.append("")
    lines += ["data sets"]
    lines += [f"  {name:14} {_origin(facts)}" for name, facts in sorted(data.items())] or ["  none"]
    lines += ["", *_times(plan, unread), "", "where a number came from: clpapers lineage FILE"]
    return "\n".join([*lines, *(["", "cannot be read"] if unread else []), *(f"  {each}" for each in unread)])


def _record(path: Path) -> dict:
    try:
        return read_record(path)
    except ProvenanceError:
        return {}


def _line(target: Target, unread: list[str]) -> str:
    if not _record(target.outputs[0]):
        return f"  {target.name:12} not built"
    shown = next(path for path in target.outputs if path.suffix in (".md", ".png"))
    text = f"  {target.name:12} {shown}"
    compared = target.stem.with_name(f"{target.name}.reported.csv")
    if compared.is_file():
        try:
            with compared.open(encoding="utf-8", newline="") as file:
                verdicts = Counter(row["verdict"] for row in csv.DictReader(file))
        except (OSError, ValueError, KeyError, csv.Error) as error:
            unread.append(f"{compared}: {escaped(error)}; snakemake {compared} --cores --force")
            return text
        text += "  (" + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()) + ")"
    return text


def _origin(facts: dict) -> str:
    if facts["standin"]:
        return "STAND-IN, synthetic: numbers on it are not the paper's"
    part = "PART of the real data" if facts["partial"] else "real data"
    return f"{part}, from {facts['source']}, proven by {facts['proof']}"


def _times(plan: Plan, unread: list[str]) -> list[str]:
    """The seconds of work by stage, from the records."""
    seconds: Counter[str] = Counter()
    for path in sorted(Path("results", plan.scale).rglob("[!.]*.record.json")):
        try:
            record = read_record(path)
            seconds[record["stage"]] += record["wall_seconds"]
        except ProvenanceError as error:
            unread.append(escaped(error))
    total = ", ".join(f"{stage} {value:.0f} s" for stage, value in seconds.most_common())
    return [f"work: {sum(seconds.values()) / 60:.1f} minutes of one process ({total})"]
