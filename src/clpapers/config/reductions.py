"""How a target departs from the same target at the paper's scale."""

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

    def compare(key: str, value: object, original: object, skipped: Iterable[str] = (), dataset: str = "") -> None:
        if key in skipped:
            return
        if isinstance(value, dict) and isinstance(original, dict):
            for part in {**original, **value}:
                inner = value.get(part, "unset"), original.get(part, "unset")
                compare(f"{key}.{part}".lstrip("."), *inner, skipped, dataset)
        elif value != original and key != "selection.points":  # hashes; the values differ too and are listed
            ours, theirs = ("all" if each is None else str(each) for each in (value, original))
            line = lines.setdefault(f"{key} {ours} (paper: {theirs})", {})
            line.update({dataset: None} if dataset else {})

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
        like_it = (each for other, each in paper_scale.cells if new and shared == {k: other.get(k) for k in shared})
        original = originals.get(repr(factors)) or next(like_it, None)
        if original:
            compare("", cell.spec, original.spec, new, cell.spec["dataset"])
    searched = {repr(factors): selection for factors, selection in paper_scale.selections}
    if len(target.selections) < len(searched):
        lines[f"{len(target.selections)} selections (paper: {len(searched)})"] = {}
    for factors, selection in target.selections:
        if repr(factors) in searched:
            ours, theirs = (one.to_fill(one.points[0][1]).spec for one in (selection, searched[repr(factors)]))
            compare("", ours, theirs)
    for (_, order, _), (_, original_order, _) in zip(target.streams, paper_scale.streams):
        compare("order", order, original_order)
    for net, original_net in zip(target.nets, paper_scale.nets):
        compare("net", net, original_net)
    for key in ("simulations", "chunks", "points"):
        compare(key, target.spec.get(key), paper_scale.spec.get(key))
    general, by_dataset = [], dict[str, list[str]]()
    for line, holds_of in lines.items():
        if not holds_of or len(holds_of) == len(datasets):
            general.append(line)
        else:
            by_dataset.setdefault(", ".join(named(target.spec, dataset) for dataset in holds_of), []).append(line)
    return [*general, *(f"{names}: {', '.join(differences)}" for names, differences in by_dataset.items())]
