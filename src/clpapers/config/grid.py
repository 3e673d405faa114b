"""The cells of a paper: its content at a scale, resolved cell by cell, grid by grid and selection by selection."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from clpapers.catalogue import Method
from clpapers.config import checks, identity
from clpapers.config.facts import TOY, Facts
from clpapers.config.layers import Layer, flattened, merge, nested, of_dataset, of_learner, within
from clpapers.config.model import Cell, Selection
from clpapers.config.paths import seed_range
from clpapers.config.refusals import ConfigError, one_of


class Grid:
    """What one paper's `content`, complete with what the scale says, makes of data sets, learners and grids.

    file: what refusals name. selections: those that its cells wait for, by name, as far as cells were made.
    """

    def __init__(self, facts: Facts, paper: str, file: Path, content: dict):
        self.facts, self.paper, self.file, self.content = facts, paper, file, content
        self.selections: dict[str, Selection] = {}
        search = content.get("selection", {})
        for key, known in (("datasets", "datasets"), ("per_class", "datasets"), ("grid", "learners")):
            for name in search.get(key, []):
                one_of(f"{file}: selection.{key}", name, content.get(known, {}))

    def cells(self, at: str, spec: dict) -> Iterator[tuple[dict, Cell]]:
        """The factors and the cell of each combination that the grid of the target `spec` has."""
        grid, search = spec.get("grid", {}), self.content.get("selection", {})
        if not grid:
            return
        checks.grid(at, self.facts, spec, self.content)
        made = set()
        for values in itertools.product(*grid.values()):
            factors = dict(zip(grid, values))
            dataset, label = factors["dataset"], factors["learner"]
            varied = {key for key in grid if key.startswith("learner.") and not checks.takes(self.method(label), key)}
            factors = {key: value for key, value in factors.items() if key not in varied}
            if any(all(factors.get(k) in v for k, v in left_out.items()) for left_out in spec.get("without", [])):
                continue
            if repr(factors) in made:  # a learner that takes fewer options than another of the grid
                continue
            made.add(repr(factors))
            where = f"{at}, cell {' '.join(f'{k}={v}' for k, v in factors.items())}"
            cell = self.cell(where, dataset, label, *self.patches(at, spec, factors))
            if search.get("use") == "cross_validated" and label in search.get("grid", {}):
                for key in search["grid"][label]:
                    part, option = key.split(".")
                    if key in factors or option in spec.get("cell", {}).get(part, {}):
                        raise ConfigError(f"{where}: {key} is selected; leave it out here or out of selection.grid")
                cell = self.selection(dataset, label).to_fill(cell)
            yield factors, cell

    def patches(self, at: str, spec: dict, factors: dict) -> tuple[list[Layer], dict]:
        """What a target and the levels of its grid's factors lay over a cell, and over the learner's options."""
        name, over = spec["name"], {}
        layers = [Layer(("targets", name, "cell"), spec.get("cell", {}))]
        for key, value in factors.items():
            place = ("targets", name, "grid", key, spec["grid"][key].index(value))
            if key.startswith("learner."):
                over = merge(over, nested(key.removeprefix("learner."), value))
            elif key not in ("dataset", "learner"):
                layers.append(Layer(place, nested(key, value)))
        if over:
            usual = flattened(of_learner(self.content, factors["dataset"], factors["learner"]))
            over = merge({option: usual[option] for option in over if option in usual}, over)
            place = (*at.removeprefix(f"{self.file}: ").split("."), "grid", "learner")
            checks.learner(self.file, place, self.facts, factors["learner"], over, self.content["learners"])
        return layers, over

    def method(self, label: str) -> Method:
        """The method that a learner of the paper is."""
        return self.facts.methods[self.content["learners"][label].get("method", label)]

    def cell(self, at: str, dataset: str, label: str, over: Sequence[Layer] = (), options: dict | None = None) -> Cell:
        """One complete cell; `over` is laid over what data set and learner say, `options` over the learner's."""
        spec = self.written(dataset, label, over, options or {})
        checks.parts(at, self.facts, self.method(label), spec)
        spec["order"] = checks.order(at, self.facts, spec["order"], dataset)
        if "features" in self.facts.datasets[dataset]:
            spec["features"] = self.facts.datasets[dataset]["features"]
        checks.cell(at, self.facts, self.method(label).given(spec["learner"]), spec)
        return Cell.of(self.facts.scale, *self.seen(at, spec)[:2])

    def written(self, dataset: str, label: str, over: Sequence[Layer], options: dict) -> dict:
        """A cell as the files have it."""
        own = of_learner(self.content, dataset, label)
        spec = flattened([*of_dataset(self.content, dataset), *within(own, "cell"), *over])
        usual = {key: value for key, value in flattened(own).items() if key not in ("method", "cell")}
        return spec | {"dataset": dataset, "learner": {"name": self.method(label).name} | usual | options}

    def seen(self, at: str, spec: dict) -> identity.Seen:
        """A complete cell as its learner sees it."""

        def resolve(name: object, aligned: bool) -> dict:
            return self.oracle(at, name, spec["dataset"], aligned=aligned)

        method = self.facts.methods[spec["learner"]["name"]].given(spec["learner"])
        oracle = resolve(spec["oracle"], identity.RESTRICTIONS[spec["restriction"]["name"]].aligned)
        checks.told(at, method, spec, oracle)
        return identity.seen(at, method, spec, oracle, resolve)

    def oracle(self, at: str, oracle: str | dict, dataset: str, *, aligned: bool = True) -> dict:
        """A complete oracle, from the name that the paper's file gives it or from its description."""
        if isinstance(oracle, str):
            there = self.content.get("oracles", {})
            one_of(f"{at}: oracle", oracle, there)
            oracle = there[oracle]
        checks.oracle(at, self.facts, oracle, dataset)
        return oracle | ({"aligned": aligned} if oracle["name"] == "split" else {})

    def selection(self, dataset: str, label: str) -> Selection:
        """The selection of a learner on a data set: a cell for each point of its grid."""
        search, at = self.content.get("selection", {}), f"{self.file}: selection"
        for key in ("metric", "seeds", "datasets", "grid"):
            if key not in search:
                raise ConfigError(f"{at}: '{key}' is missing")
        for key, wanted in (("datasets", dataset), ("grid", label)):
            if wanted not in search[key]:
                raise ConfigError(f"{at}.{key}: '{wanted}' is missing, which a target asks for")
        grid, points, at = search["grid"][label], [], f"{at}.grid.{label}"
        published, usual = {}, self.cell(at, dataset, label).spec
        for key in grid:
            part, _, option = key.partition(".")
            if option not in usual.get(part, {}) or option == "name":
                raise ConfigError(f"{at}: '{key}' is no value of the learner's cell, such as budget.memory")
            published[key] = usual[part][option]
        for values in itertools.product(*grid.values()):
            values = dict(zip(grid, values))
            options = {key.removeprefix("learner."): value for key, value in values.items() if key[:8] == "learner."}
            place = ("selection", "grid", label)
            checks.learner(self.file, place, self.facts, label, options, self.content["learners"])
            layers = [Layer(("selection", "datasets", dataset), search["datasets"][dataset])]
            for key, value in values.items():
                if not key.startswith("learner."):
                    layers.append(Layer(("selection", "grid", label, key, grid[key].index(value)), nested(key, value)))
            checks.piece(at, flattened(layers))
            points.append((values, self.cell(at, dataset, label, layers, options)))
        made = Selection(
            scale=self.facts.scale,
            paper=self.paper,
            dataset=dataset,
            learner=label,
            metric=search["metric"],
            seeds=seed_range(search["seeds"], f"{self.file}: selection.seeds"),
            per_class=dataset in search.get("per_class", []),
            points=tuple(points),
            published=published,
        )
        return self.selections.setdefault(made.name, made)

    # what targets are made of besides runs

    def net(self, at: str, name: str) -> dict:
        """The net that a data set is learnt with, or, as `<data set>-<learner>`, that learner there."""
        dataset, dash, label = name.partition("-")
        one_of(at, dataset, self.content.get("datasets", {}))
        own = []
        if dash:
            one_of(at, label, self.content.get("learners", {}))
            own = within(of_learner(self.content, dataset, label), "cell")
        net = flattened([*of_dataset(self.content, dataset), *own]).get("net", {})
        checks.net(at, self.facts, net, dataset)
        return net

    def outputs(self, dataset: str) -> int:
        """How many outputs a data set's nets have."""
        order = flattened(of_dataset(self.content, dataset)).get("order", {})
        if order.keys() >= {"tasks", "per_task"}:  # split_overlapping, unless it is refused where a cell is made of it
            return order["tasks"] * order["per_task"]
        return self.facts.classes(dataset)

    def stream(self, at: str, stream: dict) -> tuple[str, dict, int]:
        """Data set, order and seed of a stream that a target shows."""
        dataset, order = stream["dataset"], {"order": stream.get("order", {})}
        if TOY.match(dataset):
            base = {"order": {"length": None}}
        else:
            one_of(f"{at}.dataset", dataset, self.content.get("datasets", {}))
            base = {"order": flattened(of_dataset(self.content, dataset)).get("order", {})}
        return dataset, checks.order(at, self.facts, merge(base, order)["order"], dataset), stream["seed"]
