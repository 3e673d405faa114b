"""The plan of a scale: all targets of some papers, the cells they need and the runs that serve them."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from pathlib import Path

from clpapers.config.facts import Facts
from clpapers.config.model import Cell, Selection, Target, digest
from clpapers.config.paths import RESULTS, block_name
from clpapers.config.refusals import ConfigError, names
from clpapers.config.targets import paper_file, read_paper
from clpapers.streams.orders import slug


class Plan:
    """All targets of the given papers at one scale, the cells they need and the runs that serve them.

    Parameters
    ----------
    scale: a file in config/scales/.
    papers: files in config/papers/.
    cuda: whether runs go to a GPU, which decides how many seeds a job trains where the scale says `auto`.

    Raises `ConfigError` for anything wrong in any of the files, before any work starts.
    """

    def __init__(self, scale: str, papers: list[str], *, cuda: bool = False):
        self.scale, self.cuda = scale, cuda
        facts = Facts(scale)
        self.settings, self.datasets, self.weights = facts.settings, facts.datasets, facts.weights
        self.titles: dict[str, str] = {}
        # `<paper>/<dataset>` or `<paper>/<dataset>-<learner>` → the net it is learnt with, and its outputs
        self.nets: dict[str, dict] = {}
        self.outputs: dict[str, int] = {}
        self.selections: dict[str, Selection] = {}  # by name
        self.targets: dict[str, Target] = {}  # by `<paper>/<name>`
        for name in papers:
            paper = read_paper(facts, name)
            self.titles[name] = paper.title
            self.nets |= {f"{name}/{key}": net for key, net in paper.nets.items()}
            self.outputs |= {f"{name}/{key}": outputs for key, outputs in paper.outputs.items()}
            self.selections |= paper.grid.selections
            self.targets |= {f"{name}/{target.name}": target for target in paper.targets}
        self._keep_apart()
        self.cells: dict[str, Cell] = {}
        self.orders: dict[tuple[str, str], dict] = {}  # (dataset, slug) → order
        self._wanted: dict[str, set[int]] = {}
        for target in self.targets.values():
            for dataset, order, _ in target.streams:
                self.orders[dataset, slug(order)] = order
        for user in (*self.targets.values(), *self.selections.values()):
            for _, cell in user.cells if isinstance(user, Target) else user.points:
                self.cells[cell.hash] = cell
                self.orders[cell.spec["dataset"], cell.slug] = cell.spec["order"]
                self._wanted.setdefault(cell.hash, set()).update(user.seeds)

    def _keep_apart(self) -> None:
        """Refuse to select on seeds that are reported."""
        for selection, target in itertools.product(self.selections.values(), self.targets.values()):
            if selection.paper == target.paper and target.cells and set(selection.seeds) & set(target.seeds):
                raise ConfigError(
                    f"{paper_file(target.paper)}: selection.seeds: {selection.spec['seeds']} shares seeds with "
                    f"targets.{target.name}, {target.seeds[0]}-{target.seeds[-1]}; select on others"
                )

    @property
    def digest(self) -> str:
        """Of the cells, their seeds and the targets they serve."""
        used = {name: sorted(c.hash for _, c in target.cells) for name, target in self.targets.items()}
        return digest([{key: sorted(seeds) for key, seeds in self._wanted.items()}, used])

    def chosen(self, wanted: Collection[str]) -> list[Target]:
        """The targets of papers and targets by name, `stf` and `stf/table1`; all of the plan's where none are."""
        known = [*self.titles, *self.targets]
        for name in wanted:
            if name not in known:
                raise ConfigError(f"{name}: no paper or target; there are: {names(known, name)}")
        return [t for name, t in self.targets.items() if not wanted or {name, t.paper} & set(wanted)]

    def net_file(self, paper: str, dataset: str) -> Path:
        """Where the description of the net that `paper` learns `dataset` with stands."""
        return RESULTS / self.scale / "runs" / "nets" / paper / f"{dataset}.json"

    def blocks(self, cell: Cell) -> list[range]:
        """The seeds of a cell, all targets taken together, in the fixed blocks that jobs train."""
        seeds = sorted(self._wanted[cell.hash])
        size = self.settings["seeds_per_job"]
        if size == "auto":
            size = 20 if self.cuda else 5 if cell.spec["net"]["name"] == "mlp" else 1
        starts = sorted({seed // size * size for seed in seeds})
        return [range(max(s, seeds[0]), min(s + size, seeds[-1] + 1)) for s in starts]

    def results(self, cell: Cell, seeds: range | None = None) -> list[Path]:
        """The result files that hold the given seeds of a cell (all wanted seeds if None)."""
        blocks = [b for b in self.blocks(cell) if seeds is None or (b[0] <= seeds[-1] and seeds[0] <= b[-1])]
        return [cell.folder / f"{block_name(block)}.json" for block in blocks]
