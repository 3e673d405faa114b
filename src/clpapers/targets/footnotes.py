"""The marks and footnotes of a target: its scale, stand-in data, departures from the paper, and conditions."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clpapers.catalogue import methods
from clpapers.catalogue.names import OUTSIDE_SIGN, duration, named
from clpapers.metrics.factors import flat
from clpapers.provenance import ProvenanceError, is_imported, read_record
from clpapers.targets.unrun import Unrun

if TYPE_CHECKING:  # not imported, so that an edit of the configuration's messages makes no target stale
    from pathlib import Path

    import pandas as pd

    from clpapers.config.model import Target
    from clpapers.config.plan import Plan

STANDIN, REDUCED, NOT_RUN = "†", "‡", "–"
BANDS_FROM = 5  # runs; figures show fewer one by one, as their interval would fill the panel
FILLED = ("chunks", "points")  # keys of a target whose values its caption may name


@dataclass(frozen=True)
class Notes:
    """The circumstances of one target, from which its marks and footnotes are made.

    scale: its name.
    standins: kind of stand-in, by data set.
    reductions: one text for each departure from the paper's settings, such as "order.length 1000 (paper: whole set)".
    seeds: number of seeds asked for.
    conditions: the sentence on the conditions that the experiment meets (`conditions.sentence`).
    imported: number of runs that were trained elsewhere, by the commit of the code that trained them.
    unrun: the runs that the build leaves out.
    command: trains these runs.
    guesses: levels of `learner` that train nothing.
    shared: by data set, how many of its test images are training images too: `3 of 9`.
    """

    scale: str
    standins: dict[str, str] = field(default_factory=dict)
    reductions: list[str] = field(default_factory=list)
    seeds: int = 1
    conditions: str = ""
    imported: dict[str, int] = field(default_factory=dict)
    unrun: Unrun = field(default_factory=Unrun)
    command: str = ""
    guesses: frozenset[str] = frozenset()
    shared: dict[str, str] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """Whether runs are left out, so that cells differ in their number."""
        return self.unrun.runs > 0

    def left_out(self, levels: Mapping[str, object]) -> bool:
        """Whether the cell of these levels of factors was not run."""
        return any(levels.items() <= flat(factors).items() for factors in self.unrun.cells)

    def why_not_run(self) -> str:
        """Why the cell of a printed number has no run."""
        return f"not run yet: {self.command}" if self.partial else "not run at this scale"

    def mark(self, text: str, dataset: str | None = None) -> str:
        """`text` with † where `dataset` is a stand-in and ‡ where the scale is reduced."""
        standin = STANDIN if dataset in self.standins else ""
        return f"{text}{standin}{REDUCED if self.reductions else ''}"

    def caption(self, target: dict) -> str:
        """The target's caption, filled in: `{seeds}`, `{scale}`, `{spread}` (how a figure shows it) and `FILLED`."""
        dots = "each run a dot"
        shown = {"sd": "± one standard deviation", "se": "± one standard error"}
        intervals = shown.get(target.get("spread", ""), "95 % Student-t intervals")
        if self.seeds < BANDS_FROM:
            spread = dots
        else:
            spread = f"below {BANDS_FROM} runs {dots}, from there on {intervals}" if self.partial else intervals
        facts = {"seeds": f"up to {self.seeds}" if self.partial else self.seeds, "scale": self.scale, "spread": spread}
        text = target["caption"]
        for key, value in (facts | {key: target[key] for key in FILLED if key in target}).items():
            text = text.replace(f"{{{key}}}", str(value))
        return text

    def footnotes(self, target: dict, datasets: Iterable[str]) -> list[str]:
        """The texts behind the marks, and those on the runs behind the target. datasets: the target's."""
        return [*self.marks(target, datasets), *self.sources(target)]

    def marks(self, target: dict, datasets: Iterable[str]) -> list[str]:
        """The texts of † and ‡, where they are used. datasets: the target's."""
        standins = [f"{named(target, d)}: {self.standins[d]}" for d in dict.fromkeys(datasets) if d in self.standins]
        notes = [f"{STANDIN} Stand-in data, not the paper's. {'; '.join(standins)}."] if standins else []
        if self.reductions:
            notes.append(f"{REDUCED} Reduced scale ‘{self.scale}’: {'; '.join(self.reductions)}.")
        return notes

    def sources(self, target: dict) -> list[str]:
        """Test images among training images; methods from outside; runs left out, with their price; conditions."""
        notes = [_of_own(target, label, facts) for label, facts in target.get("own", {}).items()]
        for dataset, count in self.shared.items():
            notes.append(f"{named(target, dataset)}: {count} test images are training images too, to the pixel.")
        return [*notes, *self._left_out(target.get("kind", "table")), *filter(None, [self.conditions])]

    @property
    def commits(self) -> list[str]:
        """A line on the imported runs, if there are any."""
        commits = ", ".join(f"{commit[:10]} ({count})" for commit, count in self.imported.items())
        runs = sum(self.imported.values())
        return [f"Runs that were imported, not trained here: {runs}; commits of their code: {commits}."] if runs else []

    def _left_out(self, kind: str) -> list[str]:
        """The footnotes on runs that the build leaves out, with their price, and on data that could not be had."""
        left, notes = self.unrun, []
        absent = [f"{name}: {remedy}" for name, remedy in left.absent.items() if remedy]
        if left.runs:
            cells = f" ({NOT_RUN}: {len(left.cells):,} cells)" if left.cells else ""
            text = f"{left.wanted - left.runs:,} of {left.wanted:,} runs so far{cells}."
            if kind == "table" and left.runs < left.wanted:
                text += " In brackets: runs a cell."
            if left.hours > 0:
                some = f"Of the others, the {left.runs - left.lacking:,} whose data are at hand"
                who = some if left.lacking else "The others"
                text += f" {who} take {duration(3600 * left.hours)} of one core: {self.command}."
            notes.append(text)
        return notes + ([f"Not at hand: {'; '.join(absent)}."] if absent else [])


def _of_own(target: dict, label: str, facts: Mapping) -> str:
    """The footnote on a method from outside: its file, and the cells that it does not fit, with the reasons."""
    digest = facts["file"].rpartition("-")[2].removesuffix(".py")
    text = f"{OUTSIDE_SIGN} Not of the paper: {label}, of a file with digest {digest}."
    for reason, cells in facts["misfits"].items():
        levels = {" ".join(named(target, level) for level in flat(factors).values()): None for factors in cells}
        text += f" Not on {', '.join(levels)}: {reason}."
    return text


def notes_on(plan: Plan, target: Target, reductions: list[str], conditions: str = "") -> Notes:
    """The circumstances of a target whose metrics exist; the metrics' record tells which data they descend from.

    reductions: `jobs.reduced`. conditions: `conditions.sentence`, if it is to be printed.
    """
    data = read_record(target.metrics).get("data", {})
    standins = {
        name: "synthetic" if facts["standin"] else "part of the real data"
        for name, facts in data.items()
        if facts["standin"] or facts["partial"]
    }
    cells = [cell for _, cell in (*target.cells, *(p for _, search in target.selections for p in search.points))]
    weights_of = [(cell.spec["dataset"], cell.weights.stem) for cell in cells if cell.weights]
    for name, facts in plan.datasets.items():
        if facts.get("features", {}).get("of") in data:
            weights_of.append((name, facts["features"]["weights"]))
            if facts["features"]["of"] in standins:
                standins[name] = standins[facts["features"]["of"]]
    for name in dict.fromkeys(name for name, weights in weights_of if weights in standins):
        standins[name] = ", ".join(filter(None, [standins.get(name), "random instead of trained weights"]))
    command = f"snakemake {target.outputs[0]} --cores"
    if own := target.spec.get("own"):
        command += f" --config 'methods=[{', '.join(facts['file'] for facts in own.values())}]'"
    learners = {factors["learner"]: cell for factors, cell in target.of_paper.cells if "learner" in factors}
    guesses = frozenset(label for label, cell in learners.items() if methods.method_of(cell.spec["learner"]).guesses)
    imported, unrun = _imported(target), plan.unrun(target)
    shared = {
        k: f"{facts['test_in_train']:,} of {facts['test']:,}" for k, facts in data.items() if facts.get("test_in_train")
    }
    return Notes(
        plan.scale, standins, reductions, len(target.seeds), conditions, imported, unrun, command, guesses, shared
    )


def _imported(target: Target) -> dict[str, int]:
    """How many runs behind a target's metrics were imported, by the commit of the code that trained them."""
    searches = [search for _, search in target.selections]
    files = [
        item["path"] for made in (target.metrics, *(search.file for search in searches)) for item in _read_by(made)
    ]
    wanted = [*target.seeds, *(seed for search in searches for seed in search.seeds)]
    found: Counter = Counter()
    for file in dict.fromkeys(files):
        if is_imported(file) and not file.endswith(".record.json"):
            with contextlib.suppress(ProvenanceError):  # as above
                record = read_record(file)
                found[record["git"]["commit"] or "unknown"] += sum(seed in wanted for seed in record.get("seeds", ()))
    return dict(found.most_common())


def _read_by(file: Path) -> list[dict]:
    """The inputs of a file by its record; none where the record cannot be read, which the audit reports."""
    try:
        return read_record(file)["inputs"]
    except ProvenanceError:
        return []


def levels(target: dict, data: pd.DataFrame, factor: str) -> list:
    """The levels in the column `factor` of `data`, in the order of the target's `grid` if the factor is there."""
    present = list(dict.fromkeys(data[factor]))
    return [level for level in _of_grid(target, factor, present) if level in present]


def all_levels(target: dict, data: pd.DataFrame, factor: str, notes: Notes) -> list:
    """The levels as in `levels`, and with them levels without any run that a build left out."""
    present = list(dict.fromkeys(data[factor]))
    order = _of_grid(target, factor, present)
    return [level for level in order if level in present or notes.left_out({factor: level})]


def _of_grid(target: dict, factor: str, present: list) -> list:
    return list(flat(dict(enumerate(target.get("grid", {}).get(factor, present)))).values())
