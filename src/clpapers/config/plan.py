"""The plan of a scale: all targets of some papers, the cells they need and the runs that serve them."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import itertools
import sysconfig
from collections.abc import Collection
from pathlib import Path

from clpapers.cache import load_or_make
from clpapers.config import user_files
from clpapers.config.facts import Facts
from clpapers.config.files import CONFIG
from clpapers.config.model import Cell, Selection, Target, digest
from clpapers.config.paths import RESULTS, block_name, dataset_path, neighbours, seeds_text
from clpapers.config.refusals import ConfigError, names
from clpapers.config.schemas import SCHEMAS
from clpapers.config.selected_runs import SelectedRuns
from clpapers.config.targets import paper_file, read_paper
from clpapers.provenance import PACKAGE, record_path
from clpapers.streams.orders import slug
from clpapers.targets.unrun import Unrun


class Plan:
    """All targets of the given papers at one scale, the cells they need and the runs that serve them.

    Parameters
    ----------
    scale: a file in config/scales/.
    papers: files in config/papers/.
    cuda: whether runs go to a GPU, which decides how many seeds a job trains where the scale says `auto`.
    choice: the runs that a build uses; all runs of the targets if None.
    methods: methods from outside, as copies of their files (`user_methods.take_in`). With a choice, its methods count.

    Raises `ConfigError` for anything wrong in any of the files, before any work starts.
    """

    def __init__(
        self,
        scale: str,
        papers: list[str],
        *,
        cuda: bool = False,
        choice: SelectedRuns | None = None,
        methods: Collection[str] = (),
    ):
        self.scale, self.cuda, self.choice = scale, cuda, choice
        self.methods = tuple(methods if choice is None else choice.methods)
        self.state = ""  # of code and configuration, where it is kept
        self.facts = facts = Facts(scale, self.methods)
        self.settings, self.datasets, self.weights = facts.settings, facts.datasets, facts.weights
        self.titles: dict[str, str] = {}
        self.about: dict[str, dict] = {}  # by paper, who wrote it, when, and where to read it
        # `<paper>/<dataset>` or `<paper>/<dataset>-<learner>` → the net it is learnt with, and its outputs
        self.nets: dict[str, dict] = {}
        self.outputs: dict[str, int] = {}
        self.selections: dict[str, Selection] = {}  # by name
        self.targets: dict[str, Target] = {}  # by `<paper>/<name>`
        for name in papers:
            try:
                paper = read_paper(facts, name)
            except ConfigError as error:
                raise ConfigError(f"{error}{user_files.remedy(name)}") from None
            self.titles[name], self.about[name] = paper.title, paper.about
            self.nets |= {f"{name}/{key}": net for key, net in paper.nets.items()}
            self.outputs |= {f"{name}/{key}": outputs for key, outputs in paper.outputs.items()}
            self.selections |= paper.grid.selections
            self.targets |= {f"{name}/{target.name}": target for target in paper.targets}
        self._keep_apart()
        self.cells: dict[str, Cell] = {}
        self.orders: dict[tuple[str, str], dict] = {}  # (dataset, slug) → order
        self._seeds: dict[str, set[int]] = {}
        for target in self.targets.values():
            for dataset, order, _ in target.streams:
                self.orders[dataset, slug(order)] = order
        users = [(target.cells, target.seeds) for target in self.targets.values()]
        users += [(search.points, search.seeds) for search in self.selections.values()]
        for cells, seeds in users:
            for _, cell in cells:
                self.cells[cell.hash] = cell
                self.orders[cell.spec["dataset"], cell.slug] = cell.spec["order"]
                self._seeds.setdefault(cell.hash, set()).update(seeds)

    @classmethod
    def load(
        cls,
        scale: str,
        papers: list[str],
        *,
        cuda: bool = False,
        choice: SelectedRuns | None = None,
        methods: Collection[str] = (),
    ) -> Plan:
        """The same plan, as an earlier process left it where neither code nor configuration has changed since.

        One with methods from outside is made anew, and so is one of files that are read in the place of their copies.
        """
        if methods or (choice is not None and choice.methods) or user_files.tried():
            return cls(scale, papers, cuda=cuda, choice=choice, methods=methods)
        now = state()
        plan = load_or_make(f"plan of {scale}: {papers}", now, lambda: cls(scale, papers))
        plan.cuda, plan.choice, plan.state = cuda, choice, now
        return plan

    def classes(self, dataset: str) -> int:
        """How many classes a data set, or a toy, has."""
        return self.facts.classes(dataset)

    def class_sizes(self, dataset: str) -> dict[str, list[int]] | None:
        """Items of each class by split, where they are known without files (`Facts.class_sizes`)."""
        return self.facts.class_sizes(dataset)

    def _keep_apart(self) -> None:
        """Refuse to select on seeds that are reported."""
        for selection, target in itertools.product(self.selections.values(), self.targets.values()):
            if selection.paper == target.paper and target.cells and set(selection.seeds) & set(target.seeds):
                raise ConfigError(
                    f"{paper_file(target.paper)}: selection.seeds: {selection.spec['seeds']} shares seeds with "
                    f"targets.{target.name}, {seeds_text(target.seeds)}; select on others"
                )

    @property
    def digest(self) -> str:
        """The digest of the cells, their seeds and the targets they serve."""
        used = {name: sorted(c.hash for _, c in target.cells) for name, target in self.targets.items()}
        return digest([{key: sorted(seeds) for key, seeds in self._seeds.items()}, used])

    def named_targets(self, named: Collection[str]) -> list[Target]:
        """The targets of papers and targets by name, `stf` and `stf/table1`; all of the plan's where none are."""
        allowed = [*self.titles, *self.targets]
        for name in named:
            if name not in allowed:
                raise ConfigError(f"{name}: no paper or target; there are: {names(allowed, name)}")
        return [t for name, t in self.targets.items() if not named or {name, t.paper} & set(named)]

    def net_file(self, paper: str, dataset: str) -> Path:
        """The path of the description of the net that `paper` learns `dataset` with."""
        return RESULTS / self.scale / "runs" / "nets" / paper / f"{dataset}.json"

    def using(self, choice: SelectedRuns | None) -> Plan:
        """The same plan for a build that uses other runs."""
        if choice is not None and choice.methods != self.methods:
            return Plan(self.scale, list(self.titles), cuda=self.cuda, choice=choice)
        other = copy.copy(self)
        other.choice = choice
        return other

    def seeds_of(self, cell: Cell) -> list[int]:
        """The seeds of a cell, all targets and selections taken together, ascending."""
        return sorted(self._seeds[cell.hash])

    def blocks(self, cell: Cell) -> list[range]:
        """The seeds of a cell in the fixed blocks that jobs train."""
        seeds = self.seeds_of(cell)
        size = self.settings["seeds_per_job"]
        if size == "auto":
            size = 20 if self.cuda else 5 if cell.spec["net"]["name"] == "mlp" else 1
        return [block for _, each in itertools.groupby(seeds, lambda seed: seed // size) for block in neighbours(each)]

    def results(self, cell: Cell, seeds: Collection[int] | None = None) -> dict[Path, list[int]]:
        """The result files of a cell that hold any of the given seeds (all of its seeds if None): which each gives."""
        if self.choice is None:
            files = {cell.folder / f"{block_name(block)}.json": list(block) for block in self.blocks(cell)}
        else:
            files = dict(self.choice.runs.get(cell.hash, {}))
        if seeds is None:
            return files
        found = {path: [seed for seed in of_file if seed in seeds] for path, of_file in files.items()}
        return {path: of_file for path, of_file in found.items() if of_file}

    def complete(self, search: Selection) -> bool:
        """Whether every run that a selection is made of is among those used."""
        if self.choice is None:
            return True
        return all(set(search.seeds) <= self.choice.seeds(cell.hash) for _, cell in search.points)

    def present(self, target: Target) -> Target:
        """A target without the cells, selections and streams that the build lacks."""
        if self.choice is None:
            return target
        cells = tuple((factors, cell) for factors, cell in target.cells if self._chosen_seeds(target, factors, cell))
        selections = tuple((factors, search) for factors, search in target.selections if self.complete(search))
        kept = [i for i, stream in enumerate(target.streams) if not self._absent(stream[0])]
        streams, spec = tuple(target.streams[i] for i in kept), target.spec
        if len(kept) < len(target.streams):
            spec = spec | {"streams": [spec["streams"][i] for i in kept]}
        return dataclasses.replace(target, cells=cells, selections=selections, streams=streams, spec=spec)

    def waits(self, target: Target) -> bool:
        """Whether the build has nothing that a target is made of."""
        there = self.present(target)
        made_of = [(target.cells, there.cells), (target.selections, there.selections), (target.streams, there.streams)]
        return any(whole for whole, _ in made_of) and not any(left for _, left in made_of)

    def rendered(self, target: Target) -> list[Path]:
        """The files that the build renders of a target: of a figure that waits a note, and no picture."""
        if target.spec["kind"] == "table" or not self.waits(target):
            return target.outputs
        of_figure = record_path(target.note)
        return [target.note, *(path for path in target.outputs if record_path(path) != of_figure)]

    def unrun(self, target: Target) -> Unrun:
        """The runs that the build leaves out of a target."""
        if self.choice is None:
            return Unrun()
        users = [
            (factors, cell, target.seeds, self._chosen_seeds(target, factors, cell)) for factors, cell in target.cells
        ]
        for factors, search in target.selections:
            users += [(factors, cell, search.seeds, self.choice.seeds(cell.hash)) for _, cell in search.points]
        cells, missing, lacking, absent = [], 0, 0, dict[str, str]()
        for factors, cell, seeds, chosen in users:
            if not chosen & set(seeds):
                cells.append(factors)
            waits = {name: self.choice.absent[name] for name in self.data_of(cell) if name in self.choice.absent}
            absent, left_out = absent | waits, len(set(seeds) - chosen)
            missing, lacking = missing + left_out, lacking + (left_out if waits else 0)
        for dataset in (stream[0] for stream in target.streams):
            absent |= {name: self.choice.absent[name] for name in [self._absent(dataset)] if name}
        hours = self.choice.prices.get(f"{target.paper}/{target.name}", 0.0)
        return Unrun(tuple(cells), missing, sum(len(seeds) for _, _, seeds, _ in users), lacking, hours, absent)

    def _chosen_seeds(self, target: Target, factors: dict, cell: Cell) -> set[int]:
        """The chosen seeds of a target's cell; with an ideal, only seeds whose ideal's run was chosen too."""
        assert self.choice is not None
        seeds = self.choice.seeds(cell.hash) & set(target.seeds)
        return seeds.intersection(*(self.choice.seeds(each.hash) for each in target.divisors(factors)))

    def _absent(self, dataset: str) -> str | None:
        """The data set, or its images or weights, if streams need it and it cannot be had."""
        if self.choice is None or not self.drawn_from(dataset):
            return None
        return next((name for name in self.made_from(dataset) if name in self.choice.absent), None)

    def drawn_from(self, dataset: str) -> list[Path]:
        """The files that streams over a data set are drawn from: none where the sizes of its classes are known."""
        return [] if self.class_sizes(dataset) else [dataset_path(self.scale, dataset)]

    def made_from(self, dataset: str) -> list[str]:
        """A data set and, of features, the images and weights that they are made from, by name."""
        features = self.datasets[dataset].get("features")
        return [dataset, *([features["of"], features["weights"]] if features else [])]

    def data_of(self, cell: Cell) -> list[str]:
        """The data sets and weights that a cell's runs descend from, by name."""
        return [*self.made_from(cell.spec["dataset"]), *([cell.weights.stem] if cell.weights else [])]


def state() -> str:
    """Digest of all that a plan is made of: code and folders of packages by date, config/ and schemas by content.

    Raises `OSError` where something cannot be read.
    """
    digest = hashlib.sha256()
    packages = (Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))
    for path in (*sorted(PACKAGE.rglob("*.py")), *packages):
        facts = path.stat()
        digest.update(f"{path}\0{facts.st_mtime_ns} {facts.st_size} {facts.st_ino}\0".encode())
    for path in sorted(path for folder in (CONFIG, SCHEMAS) for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
