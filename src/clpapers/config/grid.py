"""The cells of a paper: its content at a scale, resolved cell by cell, grid by grid and selection by selection."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from clpapers.catalogue.methods import Method
from clpapers.config import checks, identity
from clpapers.config.facts import TOY, Facts
from clpapers.config.layers import Layer, flattened, levels, merge, of_dataset, of_learner, within
from clpapers.config.model import Cell, Selection
from clpapers.config.paths import seeds_of
from clpapers.config.refusals import ConfigError, one_of, required
from clpapers.streams.chunks import DOMAINS
from clpapers.streams.restrictions import RESTRICTIONS


class Grid:
    """Makes the cells of one paper from its `content`, the paper's file with the scale's part laid over it.

    file: named in refusals.
    selections: by name, the selections that the cells made so far wait for.
    misfits: by method from outside, the factors of cells of the last grid that it does not fit, and why.
    """

    def __init__(self, facts: Facts, paper: str, file: Path, content: dict):
        self.facts, self.paper, self.file, self.content = facts, paper, file, content
        self.selections: dict[str, Selection] = {}
        self.misfits: dict[str, list[tuple[dict, str]]] = {}
        search = content.get("selection", {})
        for key, block in (("datasets", "datasets"), ("per_class", "datasets"), ("grid", "learners")):
            for name in search.get(key, []):
                one_of(f"{file}: selection.{key}", name, content.get(block, {}))

    def cells(self, where: str, spec: dict) -> Iterator[tuple[dict, Cell]]:
        """The factors and the cell of each combination that the grid of the target `spec` has."""
        grid, self.misfits = spec.get("grid", {}), {label: [] for label in self.facts.user_methods}
        if not grid:
            return
        checks.grid(where, self.facts, spec, self.content)
        made = set()
        for values in itertools.product(*grid.values()):
            factors = dict(zip(grid, values))
            label = factors["learner"]
            varied = {key for key in grid if key.startswith("learner.") and not checks.takes(self.method(label), key)}
            factors = {key: value for key, value in factors.items() if key not in varied}
            if any(all(factors.get(k) in v for k, v in left_out.items()) for left_out in spec.get("without", [])):
                continue
            if repr(factors) in made:  # a learner that takes fewer options than another of the grid
                continue
            made.add(repr(factors))
            of_cell = f"{where}, cell {' '.join(f'{k}={v}' for k, v in factors.items())}"
            try:
                cell = self.of_grid(of_cell, spec, factors)
            except ConfigError as error:
                if label not in self.misfits:
                    raise
                self.misfits[label].append((factors, str(error).removeprefix(f"{of_cell}: ")))
                continue
            yield factors, cell

    def of_grid(self, where: str, spec: dict, factors: dict) -> Cell:
        """The cell of a combination of levels of a target's grid; its selected values are still to be filled in."""
        search, dataset, label = self.content.get("selection", {}), factors["dataset"], factors["learner"]
        cell = self.cell(where, dataset, label, self.of_target(spec, factors))
        selects = (
            search.get("use") == "cross_validated" or label in self.facts.user_methods
        )  # of which nothing is published
        if not selects or label not in search.get("grid", {}):
            return cell
        for key in search["grid"][label]:
            part, option = key.split(".")
            if key in factors or option in spec.get("cell", {}).get(part, {}):
                raise ConfigError(f"{where}: {key} is selected; leave it out here or out of selection.grid")
        return self.selection(dataset, label).to_fill(cell)

    def of_target(self, spec: dict, factors: dict) -> list[Layer]:
        """The layers that a target and the levels of its grid lay over a cell."""
        name = spec["name"]
        own = Layer(("targets", name, "cell"), spec.get("cell", {}))
        options = {"learner": spec.get("learners", {}).get(factors["learner"], {})}
        of_learner = Layer(("targets", name, "learners", factors["learner"]), options, 1)
        return [own, of_learner, *levels(("targets", name, "grid"), factors, spec["grid"])]

    def of_point(self, dataset: str, label: str, values: dict) -> list[Layer]:
        """The layers that a learner's selection and the values at a point of its grid lay over a cell."""
        search = self.content["selection"]
        own = Layer(("selection", "datasets", dataset), search["datasets"][dataset])
        return [own, *levels(("selection", "grid", label), values, search["grid"][label])]

    def method(self, label: str) -> Method:
        """The method of a learner of the paper."""
        return self.facts.methods[self.content["learners"][label].get("method", label)]

    def cell(self, where: str, dataset: str, label: str, over: Sequence[Layer] = ()) -> Cell:
        """One complete cell: `over` laid over the values of data set and learner."""
        spec, method = self.written(dataset, label, over), self.method(label)
        checks.parts(where, self.facts, method, spec)
        spec = self.complete(where, spec)
        method = method.with_options(spec["learner"])
        checks.cell(where, self.facts, method, spec)
        return Cell.make(self.facts.scale, *self.seen(where, method, spec)[:2])

    def written(self, dataset: str, label: str, over: Sequence[Layer]) -> dict:
        """A cell's values as they are in the files."""
        own = of_learner(self.content, dataset, label)
        spec = flattened([*of_dataset(self.content, dataset), *within(own, "cell"), *over])
        options = flattened([*own, *within(over, "learner")])
        given = {key: value for key, value in options.items() if key not in ("method", "cell")}
        spec, method = {key: value for key, value in spec.items() if key != "learner"}, self.method(label)
        defaults = {key: rules["default"] for key, rules in method.options.items() if "default" in rules}
        if method.file:
            given = defaults | given
        else:  # so that a cell without a later option keeps its hash
            given = {key: value for key, value in given.items() if key not in defaults or value != defaults[key]}
        named = {"name": method.name} | ({"file": method.file} if method.file else {})
        return spec | {"dataset": dataset, "learner": named | given}

    def complete(self, where: str, spec: dict) -> dict:
        """A cell with its order in canonical form, its memory in items, and with the recipe of its features."""
        order = checks.order(where, self.facts, spec["order"], spec["dataset"], spec["budget"].get("batch"))
        entry = self.facts.datasets[spec["dataset"]]
        budget = checks.budget(where, self.facts, spec["budget"], order, spec["dataset"])
        return (
            spec | {"order": order, "budget": budget} | ({"features": entry["features"]} if "features" in entry else {})
        )

    def seen(self, where: str, method: Method, spec: dict) -> identity.CanonicalRun:
        """A complete cell as its learner sees it; `method` has the learner's options."""

        def resolve(name: str | dict, aligned: bool) -> dict:
            return self.oracle(where, name, spec["dataset"], aligned=aligned)

        oracle = resolve(spec["oracle"], RESTRICTIONS[spec["restriction"]["name"]].aligned)
        checks.knowledge(where, method, spec, oracle)
        sizes = (self.facts.class_sizes(spec["dataset"]) or {}).get("train", [])
        return identity.canonical_run(where, method, spec, oracle, resolve, even=len(set(sizes)) == 1)

    def oracle(self, where: str, oracle: str | dict, dataset: str, *, aligned: bool = True) -> dict:
        """A complete oracle, from the name that the paper's file gives it or from its description."""
        oracles = self.content.get("oracles", {})
        if isinstance(oracle, str):
            one_of(f"{where}: oracle", oracle, oracles)
        found = oracles[oracle] if isinstance(oracle, str) else oracle
        checks.oracle(where, self.facts, found, dataset)
        return found | ({"aligned": aligned} if found["name"] == "split" else {})

    def selection(self, dataset: str, label: str) -> Selection:
        """The selection of a learner on a data set: a cell for each point of its grid."""
        search, where = self.content.get("selection", {}), f"{self.file}: selection"
        required(where, search, ("metric", "seeds", "datasets", "grid"))
        for key, name in (("datasets", dataset), ("grid", label)):
            if name not in search[key]:
                raise ConfigError(f"{where}.{key}: '{name}' is missing; a target asks for it")
        grid, points, where = search["grid"][label], [], f"{where}.grid.{label}"
        published, usual = {}, self.cell(where, dataset, label).spec
        for key in grid:
            part, _, option = key.partition(".")
            if option not in usual.get(part, {}) or option == "name":
                raise ConfigError(f"{where}: '{key}' is no value of the learner's cell, such as budget.memory")
            published[key] = None if label in self.facts.user_methods else usual[part][option]
        for point in itertools.product(*grid.values()):
            values = dict(zip(grid, point))
            layers = self.of_point(dataset, label, values)
            points.append((values, self.cell(where, dataset, label, layers)))
        for _, cell in points:
            checks.defined(f"{self.file}: selection", [search["metric"]], cell.spec, self.facts.classes(dataset))
        seeds = seeds_of(search["seeds"], f"{self.file}: selection.seeds")
        chosen = search["metric"], seeds, dataset in search.get("per_class", [])
        made = Selection(self.facts.scale, self.paper, dataset, label, *chosen, tuple(points), published)
        return self.selections.setdefault(made.name, made)

    # nets and streams that targets show

    def net(self, where: str, name: str) -> dict:
        """The net of a data set or, for `<data set>-<learner>`, of that learner there."""
        dataset, dash, label = name.partition("-")
        one_of(where, dataset, self.content.get("datasets", {}))
        own = []
        if dash:
            one_of(where, label, self.content.get("learners", {}))
            own = within(of_learner(self.content, dataset, label), "cell")
        net = flattened([*of_dataset(self.content, dataset), *own]).get("net", {})
        checks.net(where, self.facts, net, dataset)
        return net

    def outputs(self, dataset: str) -> int:
        """How many outputs a data set's nets have."""
        order = flattened(of_dataset(self.content, dataset)).get("order", {})
        if order.keys() >= {"tasks", "per_task"}:  # split_overlapping; a cell refuses others
            return order["tasks"] * order["per_task"]
        classes = self.facts.classes(dataset)
        return -(-classes // order["tasks"]) if order.get("name") == DOMAINS and "tasks" in order else classes

    def usual_order(self, dataset: str) -> dict:
        """The order that the file gives all streams over a data set or a toy; it may lack the name."""
        if TOY.fullmatch(dataset):
            return {"length": None}
        written = flattened(of_dataset(self.content, dataset))
        where, batch = f"{self.file}: datasets.{dataset}", written.get("budget", {}).get("batch")
        return checks.in_items(where, written.get("order", {}), batch)

    def stream(self, where: str, stream: dict) -> tuple[str, dict, int]:
        """Data set, order and seed of a stream that a target shows."""
        dataset, order = stream["dataset"], {"order": stream.get("order", {})}
        if not TOY.fullmatch(dataset):
            one_of(f"{where}.dataset", dataset, self.content.get("datasets", {}))
        base = {"order": self.usual_order(dataset)}
        return dataset, checks.order(where, self.facts, merge(base, order)["order"], dataset), stream["seed"]
