"""How a target departs from the same target at the paper's scale."""

from __future__ import annotations

from collections.abc import Iterable

from clpapers.catalogue.names import named
from clpapers.config.model import Target


def reductions(target: Target, paper_scale: Target) -> list[str]:
    """List how a target departs from the same target at the paper's scale: one line a difference.

    A departure of some data sets stands in one line, under their names. The number of seeds is not listed: it stands
    beside every interval, and intervals account for it.
    """
    lines: dict[str, dict[str, None]] = {}  # by difference, the data sets that it holds of; none if it is of all
    datasets = dict.fromkeys(cell.spec["dataset"] for _, cell in target.cells)

    def differ(at: str, mine: object, theirs: object, told: Iterable[str] = (), of: str = "") -> None:
        if at in told:
            return
        if isinstance(mine, dict) and isinstance(theirs, dict):
            for key in {**theirs, **mine}:
                differ(f"{at}.{key}".lstrip("."), mine.get(key, "unset"), theirs.get(key, "unset"), told, of)
        elif mine != theirs and at != "selection.points":  # hashes; the values differ too and are listed
            shown = ["all" if value is None else str(value) for value in (mine, theirs)]
            line = lines.setdefault(f"{at} {shown[0]} (paper: {shown[1]})", {})
            line.update({of: None} if of else {})

    originals = {repr(factors): cell for factors, cell in paper_scale.cells}
    if len(target.cells) < len(originals):
        lines[f"{len(target.cells)} cells (paper: {len(originals)})"] = {}
    levels = paper_scale.spec.get("grid", {})
    for factors, cell in target.cells:
        # Levels that the paper's grid lacks are listed; the rest is compared with any cell that shares the others.
        new = [key for key, value in factors.items() if value not in levels.get(key, [])]
        for key in new:
            lines[f"{key} {factors[key]} (paper: {', '.join(map(str, levels.get(key, ['unset'])))})"] = {}
        shared = {key: value for key, value in factors.items() if key not in new}
        alike = (each for given, each in paper_scale.cells if new and shared == {key: given.get(key) for key in shared})
        original = originals.get(repr(factors)) or next(alike, None)
        if original:
            differ("", cell.spec, original.spec, new, cell.spec["dataset"])
    searched = {repr(factors): selection for factors, selection in paper_scale.selections}
    if len(target.selections) < len(searched):
        lines[f"{len(target.selections)} selections (paper: {len(searched)})"] = {}
    for factors, selection in target.selections:
        if repr(factors) in searched:
            each = [one.to_fill(one.points[0][1]).spec for one in (selection, searched[repr(factors)])]
            differ("", *each)
    for (_, order, _), (_, original, _) in zip(target.streams, paper_scale.streams):
        differ("order", order, original)
    for mine, theirs in zip(target.nets, paper_scale.nets):
        differ("net", mine, theirs)
    for key in ("simulations", "chunks", "points"):
        differ(key, target.spec.get(key), paper_scale.spec.get(key))
    general, by_dataset = [], dict[str, list[str]]()
    for line, of in lines.items():
        if not of or len(of) == len(datasets):
            general.append(line)
        else:
            by_dataset.setdefault(", ".join(named(target.spec, dataset) for dataset in of), []).append(line)
    return [*general, *(f"{names}: {', '.join(differences)}" for names, differences in by_dataset.items())]
